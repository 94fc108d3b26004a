//! `rondo ask` as host of its session, following its turns.

use super::unless_stopped;
use crate::approver::TerminalApprover;
use crate::changes::Changes;
use crate::cli::OutputFormat;
use crate::error::Result;
use crate::exit::{Exit, ExitFacts, Stop};
use crate::hosted::{HostEvent, NEWS_MAX, end_of_turn, next_news, stopped_elsewhere, tell};
use crate::output::Output;
use crate::process_end;
use crate::screen::Screen;
use crate::show_turn::{Brake, Signals};
use async_trait::async_trait;
use rondo_core::ports::ProcessEnd;
use rondo_core::{EventSender, TurnEnd, TurnHandle};
use rondo_runtime::service::{
    AskedTurn, OpenedSession, SessionHandle, SessionHost, SessionService, Subscription,
};
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::{SetupError, Turn, TurnBuilder, parking};
use rondo_types::{Outcome, SessionId, TurnId};
use serde_json::Value;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{Semaphore, mpsc};

/// A turn that begins, with what shows it and stops it.
pub(super) struct BegunTurn {
    pub(super) session: SessionId,
    pub(super) id: TurnId,
    pub(super) spec: TurnSpec,
    /// Set for the turn of the command, and not for one that has to end before.
    pub(super) is_new: bool,
    pub(super) screen: Screen,
    pub(super) changes: Changes,
    pub(super) approver: Arc<TerminalApprover>,
    pub(super) brake: Brake,
}

/// The session of the command, in which one turn after another runs.
pub(super) struct HostedSession {
    handle: SessionHandle,
    updates: Subscription,
    news: mpsc::Receiver<HostEvent<BegunTurn>>,
    /// One for each turn that may begin.
    permits: Arc<Semaphore>,
    /// It ends with this.
    _service: SessionService,
}

/// Provides the turns with the command's input, and passes on their events.
struct AskHost {
    schema: Option<Value>,
    output: Output,
    /// Set if text is printed only when the turn is over.
    text_is_unseen: bool,
    permits: Arc<Semaphore>,
    news: mpsc::Sender<HostEvent<BegunTurn>>,
    /// The parts of the turn that is being built.
    parts: Mutex<Option<Parts>>,
}

struct Parts {
    spec: TurnSpec,
    is_new: bool,
    screen: Screen,
    changes: Changes,
    approver: Arc<TerminalApprover>,
    brake: Arc<OnceLock<Brake>>,
}

impl HostedSession {
    /// Starts a service on the session. The first turn waits until [`next_turn`](Self::next_turn) lets it begin.
    ///
    /// # Errors
    /// When there is no room for what the session keeps in memory.
    pub(super) fn begin(
        opened: OpenedSession,
        schema: Option<Value>,
        (output, format): (Output, OutputFormat),
    ) -> Result<Self> {
        let permits = Arc::new(Semaphore::new(0));
        let (sender, news) = mpsc::channel(NEWS_MAX);
        let host = AskHost {
            schema,
            text_is_unseen: match format {
                OutputFormat::Text => !output.stdout_terminal,
                OutputFormat::Json => true,
                OutputFormat::StreamJson => false,
            },
            output,
            permits: Arc::clone(&permits),
            news: sender,
            parts: Mutex::default(),
        };
        let (service, handle) = SessionService::of_opened(opened, host)?;
        let updates = handle.subscribe_to_next();
        handle.resume();
        Ok(Self {
            handle,
            updates,
            news,
            permits,
            _service: service,
        })
    }

    /// Lets the next turn begin, and waits until it does, unless a signal or the deadline comes first.
    ///
    /// # Errors
    /// When it cannot begin.
    pub(super) async fn next_turn(&mut self, signals: &mut Signals) -> Result<Box<BegunTurn>> {
        self.permits.add_permits(1);
        let begun = async {
            loop {
                match next_news(&mut self.news, &self.handle).await {
                    Some(HostEvent::Begun(begun)) => return Ok(begun),
                    Some(HostEvent::Failed(error)) => return Err((*error).into()),
                    Some(HostEvent::Ended(_)) => {}
                    None => return Err(stopped_elsewhere()),
                }
            }
        };
        unless_stopped(signals, begun).await
    }

    /// Passes on the events of the turn that runs, and returns how it ended.
    ///
    /// # Errors
    /// When it could not be resumed.
    pub(super) async fn end(&mut self, events: EventSender) -> Result<TurnEnd> {
        end_of_turn(&mut self.news, &mut self.updates, &self.handle, &events).await
    }
}

impl AskHost {
    fn parts(&self) -> std::sync::MutexGuard<'_, Option<Parts>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionHost for AskHost {
    async fn turn(
        &self,
        turn: &AskedTurn<'_>,
        builder: &mut TurnBuilder,
    ) -> rondo_runtime::error::Result<()> {
        // The turn before is shown to its end first. It is not closed early.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
        let (settings, screen, changes) = (turn.settings, Screen::new(), Changes::default());
        let shown = (screen.clone(), changes.clone());
        let approver = TerminalApprover::new(settings, &self.output, shown.0, shown.1);
        let approver = Arc::new(approver);
        builder.approver = parking::approver(settings, Arc::clone(&approver) as _);
        builder.schema.clone_from(&self.schema);
        builder.text_is_unseen = self.text_is_unseen;
        if turn.is_of_host {
            let limits = &mut Arc::make_mut(&mut builder.spec.profile).limits;
            limits.turn_timeout = process_end::shortened(limits.turn_timeout);
        }
        let brake = Arc::default();
        let strict = settings.values.strict_complete == Some(true);
        builder.end_note = Some(Box::new(end_note(&approver, &brake, strict)));
        *self.parts() = Some(Parts {
            spec: builder.spec.clone(),
            is_new: turn.is_of_host,
            screen,
            changes,
            approver,
            brake,
        });
        Ok(())
    }

    fn begins(&self, turn: &Turn, handle: &TurnHandle) {
        let Some(parts) = self.parts().take() else {
            return;
        };
        let shows_changes = self.output.stderr_terminal;
        parts.changes.watch(turn, shows_changes);
        let brake = parts.brake.get_or_init(|| Brake::new(handle.clone()));
        tell(
            &self.news,
            HostEvent::Begun(Box::new(BegunTurn {
                session: turn.session().clone(),
                id: turn.id(),
                spec: parts.spec,
                is_new: parts.is_new,
                screen: parts.screen,
                changes: parts.changes,
                approver: parts.approver,
                brake: brake.clone(),
            })),
        );
    }

    fn ended(&self, _: &SessionId, end: &rondo_runtime::error::Result<TurnEnd>) {
        tell(&self.news, HostEvent::Ended(Box::new(end.clone())));
    }

    fn failed(&self, _: &SessionId, _: Option<&str>, error: &SetupError) {
        tell(&self.news, HostEvent::Failed(Box::new(error.clone())));
    }
}

/// Says how the process ends by an outcome, for the record of the turn's end: as it will be decided before
/// anything is shown.
fn end_note(
    approver: &Arc<TerminalApprover>,
    brake: &Arc<OnceLock<Brake>>,
    strict_complete: bool,
) -> impl FnOnce(&Outcome) -> ProcessEnd + use<> {
    let (approver, brake) = (Arc::clone(approver), Arc::clone(brake));
    move |outcome| {
        let denied = approver.denied().into_iter();
        let stopped_by = brake.get().and_then(Brake::stopped_by);
        let mut process = ProcessEnd {
            exit_code: 0,
            strict_complete,
            needed_approval: denied.map(|call| call.id).collect(),
            stopped_by: stopped_by.map(Stop::record),
        };
        let exit = Exit::of_outcome(outcome, ExitFacts::recorded(&process));
        process.exit_code = i32::from(exit.code());
        process
    }
}
