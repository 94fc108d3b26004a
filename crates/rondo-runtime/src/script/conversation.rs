//! Conversations of a script: sessions below its own, one turn for each message.

use super::agent::ScriptAgent;
use super::recorded::{self, TurnState};
use super::session::ScriptSession;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::session::Session;
use crate::sessions;
use crate::turn::{TurnBuilder, TurnStart};
use rondo_core::session_store::StoreError;
use rondo_core::{Approver, TurnEnd};
use rondo_types::{CallId, Message, Outcome, Question, SessionId, Transcript, TurnEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A conversation of a script with an agent.
pub struct AgentConversation {
    id: SessionId,
    /// Messages of another conversation that its first turn follows.
    before: Transcript,
    /// The session, from the first turn that this process works on.
    session: Option<Session>,
}

/// How a turn of a conversation ended in this process.
pub enum ConversationEnd {
    /// It is over.
    Done(Box<Outcome>),
    /// It waits for answers.
    Parked(Vec<Question>),
}

/// Returns the failure of a turn that could not be recorded to its end.
fn unrecorded(outcome: &Outcome) -> SetupError {
    let why = outcome.error.as_ref().map(|error| error.message.clone());
    let why = why.unwrap_or_else(|| "the journal could not be written".to_owned());
    SetupError::new(SetupErrorKind::Journal, why)
}

impl AgentConversation {
    /// Names the conversation that a call of a script begins.
    ///
    /// # Errors
    /// When the session's id is too long for one below it.
    pub fn new(script: &ScriptSession, call: &CallId) -> Result<Self> {
        let id = script.id().child(call).ok_or_else(|| {
            let message = "the session's id is too long for a conversation below it";
            SetupError::new(SetupErrorKind::Other, message)
        })?;
        Ok(Self {
            id,
            before: Transcript::new(),
            session: None,
        })
    }

    /// Lets its first turn follow these messages.
    #[must_use]
    pub fn after(self, before: Transcript) -> Self {
        Self { before, ..self }
    }

    /// Returns the id of its session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the recorded state of the turn with this number, from 1.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn state(&self, script: &ScriptSession, number: u32) -> Result<TurnState> {
        let Some(store) = script.store().await? else {
            return Ok(TurnState::New);
        };
        match store.session(&self.id) {
            Ok(info) => {
                let history = store.history(&self.id).map_err(sessions::failed)?;
                if history.has_outside_text() {
                    script.outside_text().note();
                }
                recorded::turn(&store, &info, number)
            }
            Err(StoreError::Unknown { .. }) => Ok(TurnState::New),
            Err(error) => Err(sessions::failed(error)),
        }
    }

    /// Asks the agent, or continues what was cut off.
    ///
    /// # Errors
    /// When the turn cannot begin or continue. One that began ends or is parked whatever happens.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn at once; what is recorded of it is resumed when it is asked again.
    pub async fn builder(
        &mut self,
        script: &ScriptSession,
        agent: &ScriptAgent,
        mut message: Message,
        time: Option<Duration>,
        approver: Arc<dyn Approver>,
    ) -> Result<TurnBuilder> {
        let settings = agent.settings(script.settings());
        let session = self.opened(script, settings).await?;
        let (spec, start) = match session.cut_off()? {
            Some(cut_off) => cut_off,
            None => {
                let spec = agent.spec(script, &session.settings, time)?;
                message.from_outside |= script.outside_text().is_present();
                let message = message.into();
                (spec, TurnStart::Message { message, row: None })
            }
        };
        let connected = session.connect(&spec).await?;
        self.session = Some(session);
        let secrets = script.secrets().clone();
        Ok(TurnBuilder {
            schema: agent.schema.clone(),
            outside_text: Some(script.outside_text().clone()),
            ..TurnBuilder::new(spec, start, connected, approver, secrets)
        })
    }

    /// Runs a turn that [`builder`](Self::builder) began to build, and hands on its events.
    ///
    /// # Errors
    /// When the turn cannot begin or continue. One that began ends or is parked whatever happens.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn at once; what is recorded of it is resumed when it is asked again.
    pub async fn run(
        &mut self,
        script: &ScriptSession,
        builder: TurnBuilder,
        cancel: &CancellationToken,
        on_event: impl FnMut(TurnEvent),
    ) -> Result<ConversationEnd> {
        let session = self.session.take();
        let mut session = session.ok_or_else(|| {
            let message = "the conversation has no turn to run";
            SetupError::new(SetupErrorKind::Other, message)
        })?;
        let turn = session.turn(builder)?;
        let ended = turn.run_within(script.runtime(), cancel, on_event).await?;
        match ended {
            TurnEnd::Parked(parked) => Ok(ConversationEnd::Parked(parked.questions)),
            TurnEnd::Done(outcome) => {
                session.finished(&outcome);
                if session.has_journal_failed() {
                    return Err(unrecorded(&outcome));
                }
                self.session = Some(session);
                Ok(ConversationEnd::Done(outcome))
            }
        }
    }

    async fn opened(
        &mut self,
        script: &ScriptSession,
        settings: crate::settings::Settings,
    ) -> Result<Session> {
        if let Some(mut session) = self.session.take() {
            session.settings = settings;
            return Ok(session);
        }
        let store = script.store().await?;
        let runtime = script.runtime().clone();
        let mut session = Session::new_as(self.id.clone(), runtime, settings, store.clone());
        let known = match &store {
            Some(store) => match store.session(&self.id) {
                Ok(info) => Some(info),
                Err(StoreError::Unknown { .. }) => None,
                Err(error) => return Err(sessions::failed(error)),
            },
            None => None,
        };
        match known {
            Some(info) => session.take(&info).map(drop)?,
            None if self.before.is_empty() => {}
            None => session.begin_after(self.before.clone(), String::new())?,
        }
        Ok(session)
    }
}
