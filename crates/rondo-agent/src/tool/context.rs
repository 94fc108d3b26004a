//! What a typed tool is told of its call.

use rondo_core::ToolInvocation;
use rondo_core::clock::Clock;
use rondo_types::{CallId, SessionId, TurnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a call knows besides its arguments. Clones belong to the same call.
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

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.call.session
    }

    /// Returns the turn.
    #[must_use]
    pub fn turn(&self) -> &TurnId {
        &self.call.turn
    }

    /// Returns the call's id, as in events and in the transcript.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call.call_id
    }

    /// Returns a key that is the same when this call is repeated after a crash, and no other call's;
    /// for services that want one. Letters, digits, `-` and `_`: safe as a file name.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// Returns when the call will be told to end, everything considered; `None` where nothing
    /// bounds it.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the token that fires when the call must end.
    ///
    /// Asking for it promises to watch it: the call is then no longer dropped at once, but given
    /// the profile's `cancel_grace` to end what it started and to return what it has.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.watched.store(true, Ordering::Release);
        self.call.cancel.clone()
    }

    /// Shows a piece of live output to whoever watches. Never blocks; the model does not read it.
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
