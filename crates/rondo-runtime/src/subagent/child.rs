//! Begins or resumes the session of a child, and runs its turn.

use super::asking::SubagentApprover;
use super::end;
use super::parent::{ChildTools, ParentTurn};
use super::relay::{ChildSummary, Relay};
use super::task::Task;
use crate::agents::Agent;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::parking::unkept;
use crate::session::Session;
use crate::sessions;
use crate::spec::{ConnectedModel, TurnSpec};
use crate::turn::{Turn, TurnBuilder, TurnStart};
use rondo_core::clock::Clock;
use rondo_core::history::History;
use rondo_core::ports::{CallEnd, Entry, MailBody, NewMail, ToolInvocation};
use rondo_core::replay::{Changes, Replayer};
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_core::{OutsideText, TurnEnd};
use rondo_types::{Answer, Message, Outcome, QuestionId, RemainingLimits, SessionId, ToolOutcome};
use std::sync::Arc;
use std::time::Duration;

/// The share of a child's time that its parent keeps for its end: one in so many, at most [`MARGIN_MAX`].
const MARGIN_SHARE: u32 = 20;
const MARGIN_MAX: Duration = Duration::from_secs(5);

/// A child, where it is or will be.
pub(super) struct Child<'a> {
    pub(super) parent: &'a Arc<ParentTurn>,
    pub(super) id: SessionId,
    pub(super) agent: Option<&'a Agent>,
}

/// A child's turn, ready to run.
struct ReadyTurn {
    session: Session,
    turn: Turn,
    /// Set if another process ran it before.
    is_resumed: bool,
}

impl Child<'_> {
    /// Returns how its turn ended; none if it has not, or there is no such session.
    ///
    /// # Errors
    /// When its records cannot be read.
    pub(super) fn recorded_end(&self) -> Result<Option<ToolOutcome>> {
        let Some((store, info)) = self.stored()? else {
            return Ok(None);
        };
        let ended = recorded(store, &info)?;
        Ok(ended.map(|(outcome, seen)| end::outcome(&self.id, &outcome, &seen)))
    }

    /// Returns whether it has begun.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn has_begun(&self) -> Result<bool> {
        Ok(self.stored()?.is_some())
    }

    fn stored(&self) -> Result<Option<(&Store, SessionInfo)>> {
        let Some(store) = &self.parent.store else {
            return Ok(None);
        };
        match store.session(&self.id) {
            // A file could be imported under the id of a call that is yet to come.
            Ok(info) if info.imported => {
                let id = &self.id;
                let message = format!("session `{id}` was imported, and is not the call's own");
                Err(SetupError::new(SetupErrorKind::Journal, message))
            }
            Ok(info) => Ok(Some((store, info))),
            Err(StoreError::Unknown { .. }) => Ok(None),
            Err(error) => Err(sessions::failed(error)),
        }
    }

    /// Runs its turn to the end, from its beginning or from its records, or until it is parked.
    ///
    /// # Errors
    /// When it cannot begin or continue.
    ///
    /// # Cancel safety
    /// As [`Turn::run`]: dropping ends everything at once, and what is recorded can be resumed.
    pub(super) async fn run(
        &self,
        task: &Task,
        tools: ChildTools,
        invocation: ToolInvocation,
    ) -> Result<CallEnd> {
        if let Some(outcome) = self.recorded_end()? {
            return Ok(CallEnd::Done(outcome));
        }
        self.hand_on_answers().await?;
        let ready = self.ready(task, tools, invocation.allowance).await?;
        let (mut session, turn) = (ready.session, ready.turn);
        let mut relay = Relay::new(invocation.progress);
        let runtime = &self.parent.runtime;
        let ended = turn
            .run_within(runtime, &invocation.cancel, |event| relay.take(event))
            .await?;
        match ended {
            TurnEnd::Parked(parked) => Ok(CallEnd::Waiting {
                child: self.id.clone(),
                questions: parked.questions,
            }),
            TurnEnd::Done(outcome) => {
                session.finished(&outcome);
                // The events of other processes are in the records alone.
                let seen = match (ready.is_resumed, self.stored()?) {
                    (true, Some((store, info))) => recorded(store, &info)?.map(|(_, seen)| seen),
                    _ => None,
                };
                let seen = seen.unwrap_or(relay.seen);
                Ok(CallEnd::Done(end::outcome(&self.id, &outcome, &seen)))
            }
        }
    }

    async fn ready(
        &self,
        task: &Task,
        tools: ChildTools,
        left: RemainingLimits,
    ) -> Result<ReadyTurn> {
        let parent = self.parent;
        let stored = self.stored()?.map(|(store, info)| (store.clone(), info));
        let mut session = Session::new_as(
            self.id.clone(),
            parent.runtime.clone(),
            parent.settings.clone(),
            parent.store.clone(),
        );
        let (spec, start) = match &stored {
            None => {
                let mut spec = parent.spec(self.agent, &tools);
                let profile = Arc::make_mut(&mut spec.profile);
                profile.limits = kept_back(left).applied_to(profile.limits.clone());
                spec.target.check(&spec.profile, spec.tool_names.len())?;
                let mut message = Message::user(&task.task);
                // So that its records say so, too: a person may continue in its session.
                message.from_outside = parent
                    .outside_text
                    .as_ref()
                    .is_some_and(OutsideText::is_present);
                let message = message.into();
                (spec, TurnStart::Message { message, row: None })
            }
            Some((_, info)) => {
                session.take(info)?;
                session.cut_off()?.ok_or_else(|| {
                    let message = format!("session `{}` has no turn to resume", self.id);
                    SetupError::new(SetupErrorKind::NoSession, message)
                })?
            }
        };
        let connected = self.connected(&spec).await?;
        let builder = TurnBuilder {
            live: parent.live.clone(),
            extensions: tools.extensions,
            workdir: parent.workdir.clone(),
            outside_text: parent.outside_text.clone(),
            parent: Some(Arc::clone(parent)),
            ..TurnBuilder::new(
                spec,
                start,
                connected,
                self.approver(task),
                parent.secrets.clone(),
            )
        };
        let turn = session.turn(builder)?;
        Ok(ReadyTurn {
            session,
            turn,
            is_resumed: stored.is_some(),
        })
    }

    fn approver(&self, task: &Task) -> Arc<SubagentApprover> {
        Arc::new(SubagentApprover {
            approver: Arc::clone(&self.parent.approver),
            agent: task.agent.clone(),
        })
    }

    /// Connects the model, or takes its parent's connection if that is the same.
    async fn connected(&self, spec: &TurnSpec) -> Result<ConnectedModel> {
        let parent = self.parent;
        if spec.connected_from(&parent.settings) == parent.connected_from {
            return Ok(parent.connected.clone());
        }
        let (notices, limits) = (parent.runtime.notices(), parent.runtime.request_limits());
        spec.connect(&parent.settings, notices, limits).await
    }

    /// Moves what was answered in the parent's mailbox to the child's. A crash in between leaves it in both, and the
    /// second time the child has it already.
    async fn hand_on_answers(&self) -> Result<()> {
        let Some((store, info)) = self.stored()? else {
            return Ok(());
        };
        let prefix = format!("{}:", self.id);
        let parent = &self.parent.session;
        for (answer, _) in &self.parent.answers {
            let Some(own) = answer.question.0.strip_prefix(&prefix) else {
                continue;
            };
            let answer = Answer {
                question: QuestionId(own.to_owned()),
                ..answer.clone()
            };
            let mail = NewMail {
                session: self.id.clone(),
                key: format!("parent-{}-{own}", info.head.0),
                actor: answer.actor.clone(),
                at_ms: Clock::system().now(),
                body: MailBody::Answer { answer },
            };
            store.push(mail).await.map_err(unkept)?;
        }
        for mail in store.mail(parent).map_err(unkept)? {
            let MailBody::Answer { answer } = &mail.body else {
                continue;
            };
            let is_handed_on = self.parent.answers.iter().any(|it| it.0 == *answer);
            if is_handed_on && answer.question.0.starts_with(&prefix) {
                let withdrawn = store.withdraw(parent, &mail.key).await;
                withdrawn.map_err(unkept)?;
            }
        }
        Ok(())
    }
}

/// Leaves the parent some of the time: to hear that the child's is over.
fn kept_back(left: RemainingLimits) -> RemainingLimits {
    let time = left.time.map(|time| {
        let margin = (time / MARGIN_SHARE).min(MARGIN_MAX);
        time.saturating_sub(margin)
    });
    RemainingLimits { time, ..left }
}

/// Returns how the latest turn of a child ended, by its records; `None` if it has not.
fn recorded(store: &Store, info: &SessionInfo) -> Result<Option<(Outcome, ChildSummary)>> {
    let history: History = store.history(&info.id).map_err(sessions::failed)?;
    if history.open_turn().is_some() || history.turns() == 0 {
        return Ok(None);
    }
    let entries = store.read(&info.id, rondo_core::ports::Seq(1), usize::MAX);
    let records: Vec<_> = entries
        .map_err(sessions::failed)?
        .into_iter()
        .filter_map(Entry::into_record)
        .filter(|it| it.body.is_of_turn())
        .collect();
    // A person may have gone on in it: what its parent asked for is the first turn.
    let first = records.first().map(|it| it.turn.clone());
    let of_first = records
        .into_iter()
        .filter(|it| Some(&it.turn) == first.as_ref());
    let records: Vec<_> = of_first.collect();
    let mut replayer = Replayer::new(info.id.clone(), Changes::default());
    let played = replayer.turn(&records).map_err(sessions::unreadable)?;
    let mut seen = ChildSummary::default();
    for event in played.streams.iter().flatten() {
        seen.take(&event.body);
    }
    Ok(played.outcome.map(|outcome| (outcome, seen)))
}
