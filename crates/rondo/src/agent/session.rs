use super::typed::{Typed, TypedError, decoded};
use super::{Agent, Run, TurnError, parts};
use crate::schema::AnswerSchema;
use rondo_core::Journal;
use rondo_core::ports::MemoryJournal;
use rondo_types::{Message, Outcome, SessionId, Transcript};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Mutex;

/// A conversation: it keeps the messages of its turns and sends them with the next one.
///
/// Its turns run one at a time, in the order they are started: each waits for the end of the one
/// before it. A turn that stopped early or failed leaves what there is of it; one whose [`Run`] was
/// dropped leaves nothing. Clones are the same conversation.
///
/// Nothing bounds the history but the model's context: the transcript can be taken, shortened and
/// given to another session.
#[derive(Clone)]
pub struct Session {
    agent: Agent,
    id: SessionId,
    journal: Option<Arc<dyn Journal>>,
    history: Arc<Mutex<Transcript>>,
    turns: Arc<AtomicU32>,
}

impl Session {
    pub(super) fn new(agent: Agent, id: SessionId) -> Self {
        Self {
            agent,
            id,
            journal: None,
            history: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// Begins with messages of before, in place of none.
    #[must_use]
    pub fn with_history(self, history: Transcript) -> Self {
        Self {
            turns: Arc::new(AtomicU32::new(parts::after(&history))),
            history: Arc::new(Mutex::new(history)),
            ..self
        }
    }

    /// Records every turn in a journal, which is this session's alone.
    ///
    /// Without one, each turn is recorded in memory until it ends.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        Self {
            journal: Some(journal),
            ..self
        }
    }

    /// Returns the session's name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the messages so far, once the turn that runs has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn transcript(&self) -> Transcript {
        self.history.lock().await.clone()
    }

    /// Answers a message.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn, and the session goes on as if it had not been.
    pub async fn run(&self, message: impl Into<Message>) -> Result<Outcome, TurnError> {
        self.start(message).outcome().await
    }

    /// Answers a message with a value of a type, as [`Agent::run_typed`] does.
    ///
    /// # Errors
    /// When the turn failed, or ended without such a value. The outcome is in the error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn, and the session goes on as if it had not been.
    pub async fn run_typed<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<Message>,
    ) -> Result<Typed<T>, TypedError> {
        let answer = AnswerSchema::of::<T>();
        let run = self.start_turn(message.into(), Some(answer.schema.clone()));
        decoded(&answer, run.outcome().await)
    }

    /// Starts a turn and returns its handle. The session has its messages when the outcome is there.
    ///
    /// Where another turn runs, this one begins after it, and so does whatever the handle is told.
    pub fn start(&self, message: impl Into<Message>) -> Run {
        self.start_turn(message.into(), None)
    }

    fn start_turn(&self, message: Message, answer: Option<Value>) -> Run {
        let task = parts::Task {
            session: self.id.clone(),
            // A turn that is dropped has used its number too, since its calls may have run.
            turn_number: self.turns.fetch_add(1, Ordering::Relaxed).saturating_add(1),
            journal: match &self.journal {
                Some(journal) => Arc::clone(journal),
                None => Arc::new(MemoryJournal::default()),
            },
            answer,
        };
        let setup = self.agent.parts.setup(task);
        Run::start(setup, message, Arc::clone(&self.history))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
