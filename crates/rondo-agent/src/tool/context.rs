//! The context of a typed tool's call.

use rondo_core::ToolInvocation;
use rondo_core::clock::Clock;
use rondo_core::ports::Asker;
use rondo_types::{CallId, RemainingLimits, SessionId, ToolOutput, ToolProgress, TurnId};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The context of a call: its ids, its deadline, and the output for the user. Clones belong to the
/// same call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    call: Arc<ToolInvocation>,
    deadline: Option<Instant>,
    watched: Arc<AtomicBool>,
    output: Arc<Mutex<ToolOutput>>,
}

impl ToolContext {
    pub(super) fn new(call: ToolInvocation) -> Self {
        let clock = Clock::system();
        Self {
            deadline: call.timeout.map(|it| clock.instant(clock.now().after(it))),
            call: Arc::new(call),
            watched: Arc::default(),
            output: Arc::default(),
        }
    }

    /// Returns the session of the call.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.call.session
    }

    /// Returns the turn of the call.
    #[must_use]
    pub fn turn(&self) -> &TurnId {
        &self.call.turn
    }

    /// Returns the call's id, as in events and in the transcript.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call.call_id
    }

    /// Returns the idempotency key of the call: unique to it, and the same when it runs again after
    /// a crash. It has only letters, digits, `-` and `_`, so it is safe as a file name.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// Returns when the call will be cancelled for its timeout or the turn's deadline; `None` when
    /// it has neither.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the token that is cancelled when the call must end.
    ///
    /// A tool that takes the token must watch it: its future is then not dropped at once, but has
    /// the profile's `cancel_grace` to clean up and return what it has.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.watched.store(true, Ordering::Release);
        self.call.cancel.clone()
    }

    /// Sends a piece of live output to the listener. Never blocks; the model does not read it.
    pub fn show(&self, text: impl Into<String>) {
        self.call.output.push(text.into());
    }

    /// Says how far the call is, for the listener. Never blocks; the model does not read it.
    pub fn report(&self, progress: ToolProgress) {
        self.call.progress.report(progress);
    }

    /// Returns the allowance of an agent that the call starts, from the rest of this turn's.
    #[must_use]
    pub fn allowance(&self) -> RemainingLimits {
        self.call.allowance
    }

    /// Returns the asker for questions to a person, which uses the agent's approver and waits for the answer within the
    /// call's time.
    #[must_use]
    pub fn asker(&self) -> &Asker {
        &self.call.asker
    }

    /// Says more about the output than its value, which the function returns: the files that the call changed, the
    /// session or job that it started, whether it holds text from outside, and what becomes durable together with it.
    /// Counts only if the call succeeds.
    ///
    /// ```
    /// # use rondo::ToolContext;
    /// # fn f(cx: &ToolContext) {
    /// cx.describe(|output| output.from_outside = true);
    /// # }
    /// ```
    pub fn describe(&self, describe: impl FnOnce(&mut ToolOutput)) {
        describe(&mut self.output.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the output with this value.
    pub(super) fn output(&self, value: Value) -> ToolOutput {
        let described =
            std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner));
        ToolOutput { value, ..described }
    }

    pub(super) async fn cancelled(&self) {
        self.call.cancel.cancelled().await;
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }
}
