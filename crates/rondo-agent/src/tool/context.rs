//! The context of a typed tool's call.

use rondo_core::ToolInvocation;
use rondo_core::clock::Clock;
use rondo_types::{CallId, SessionId, TurnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The context of a call: its ids, its deadline, and the output for the user. Clones belong to the
/// same call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    call: Arc<ToolInvocation>,
    deadline: Option<Instant>,
    watched: Arc<AtomicBool>,
}

impl ToolContext {
    pub(super) fn new(call: ToolInvocation) -> Self {
        let clock = Clock::system();
        Self {
            deadline: call.timeout.map(|it| clock.instant(clock.now().after(it))),
            call: Arc::new(call),
            watched: Arc::default(),
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
