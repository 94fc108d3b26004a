//! The port to tools: what a model can call, and what a call gets.

use super::ask::Asker;
use async_trait::async_trait;
#[cfg(doc)]
use rondo_types::Recovery;
use rondo_types::{
    CallId, Question, RemainingLimits, SessionId, ToolOutcome, ToolProgress, ToolSpec, TurnEvent,
    TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Something a model can call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "build one from a function with `rondo::tool(name, description, function)`, or implement `Tool` with `#[async_trait]`"
)]
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns its name, description, schema and hints, as the model and the gate read them. The same at every call.
    fn spec(&self) -> ToolSpec;

    /// Runs one call, whose arguments already fit the schema.
    ///
    /// The model's mistakes and the world's failures are outcomes, not panics; a panic becomes an
    /// `internal` outcome.
    ///
    /// # Cancel safety
    /// When [`ToolInvocation::cancel`] fires, for a timeout or a cancelled turn, the tool ends what
    /// it started and returns what it has, with code `cancelled` (the driver makes it `timeout`
    /// if that was the reason). One that does not return within the grace period is dropped.
    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome;

    /// Runs one call as [`Self::call`] does, and may leave it waiting for a session that it started, whose turn is
    /// parked. The driver calls this one.
    ///
    /// The turn is parked as soon as nothing else of it runs. When it continues, [`Self::reconcile`] is asked, which
    /// says [`Running`](Reconciled::Running) as long as the child's turn is not over; this is called again then, with
    /// the same key, and carries the child's turn on. So only a tool that declares [`Recovery::Checkable`] can leave a
    /// call waiting; that of any other fails. A child whose parent is stopped stays parked.
    ///
    /// # Cancel safety
    /// As [`Self::call`].
    async fn run(&self, invocation: ToolInvocation) -> CallEnd {
        CallEnd::Done(self.call(invocation).await)
    }

    /// Returns evidence that shows after a crash whether a call was done, such as the hash of a file before it.
    ///
    /// Called only for tools that declare [`Recovery::Checkable`], before the call is recorded as
    /// begun; it is stored in that record, so at most about a kilobyte. It must not have an effect.
    async fn evidence(&self, _arguments: &Value) -> Option<Value> {
        None
    }

    /// As [`Self::evidence`], of the call with this key. The driver calls this one: a tool may note under the key that
    /// nothing of the call was done yet.
    async fn evidence_of(&self, _idempotency_key: &str, arguments: &Value) -> Option<Value> {
        self.evidence(arguments).await
    }

    /// Finds out the state of a call that was begun and whose end was not recorded.
    ///
    /// Called only for tools that declare [`Recovery::Checkable`], after a crash. It does not wait for a call that
    /// still runs, under a supervisor of its own: it returns [`Reconciled::Running`], and [`Self::call`] with the
    /// same key waits for the end.
    async fn reconcile(&self, _call: &InterruptedCall) -> Reconciled {
        Reconciled::Unknown
    }
}

/// Questions of one child that a call can wait with; those beyond are asked when these are answered.
pub const CHILD_QUESTIONS_MAX: usize = 64;

/// How the work on a call ended in this process.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// The call ended.
    Done(ToolOutcome),
    /// It waits for a session that it started.
    Waiting {
        /// The session.
        child: SessionId,
        /// Open questions of its turn; never empty.
        questions: Vec<Question>,
    },
}

/// A call that a crash or a kill of the process interrupted: it was recorded as begun, and its end was not recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptedCall {
    /// Its key, the same as that of [`ToolInvocation::idempotency_key`].
    pub idempotency_key: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Value that [`Tool::evidence`] returned before it.
    pub evidence: Option<Value>,
}

/// State of a call that was begun before a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each interrupted call, and it is read at once"
)]
pub enum Reconciled {
    /// It was done: this is how it ended.
    Done(ToolOutcome),
    /// It had no effect yet: it can be called again with the same key, if it may still run.
    NotDone,
    /// It continues by itself: a call with the same key waits for its end, and begins nothing.
    Running,
    /// It cannot be found out.
    Unknown,
}

/// One call, ready to run.
#[derive(Debug, Clone)]
pub struct ToolInvocation {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Id of the call.
    pub call_id: CallId,
    /// Stable over repetitions of the same call after a crash; unique to it otherwise. Safe as a
    /// file name.
    pub idempotency_key: String,
    /// The arguments: an object that fits the tool's schema.
    pub arguments: Value,
    /// How long the call may run, everything considered; the driver holds it to this.
    pub timeout: Option<Duration>,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
    /// Sink of live output.
    pub output: OutputSink,
    /// Sink of progress messages.
    pub progress: ProgressSink,
    /// Limits of a turn that the call starts.
    pub allowance: RemainingLimits,
    /// Puts the call's questions to a person, who is waited for within the call's time.
    pub asker: Asker,
}

impl ToolInvocation {
    /// Returns a call outside of turns: its output and progress go nowhere, and its questions find nobody.
    #[must_use]
    pub fn new(session: SessionId, arguments: Value) -> Self {
        Self {
            idempotency_key: session.to_string(),
            session,
            turn: TurnId::new("1"),
            call_id: CallId::generated(0, 0, 0),
            arguments,
            timeout: None,
            cancel: CancellationToken::new(),
            output: OutputSink::discard(),
            progress: ProgressSink::discard(),
            allowance: RemainingLimits::default(),
            asker: Asker::nobody(),
        }
    }
}

/// Takes how far a running call is, and what happens in a session that it started, for people to watch. Never blocks. A
/// listener that is slow reads the latest only.
#[derive(Clone)]
pub struct ProgressSink {
    take: Arc<dyn Fn(ToolProgress) + Send + Sync>,
    take_event: Option<Arc<dyn Fn(TurnEvent) + Send + Sync>>,
}

impl ProgressSink {
    /// Wraps a function that takes each report; it must not block.
    pub fn new(take: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self {
            take: Arc::new(take),
            take_event: None,
        }
    }

    /// Takes events of sessions that the call started, too; `take` must not block.
    #[must_use]
    pub fn with_events(self, take: impl Fn(TurnEvent) + Send + Sync + 'static) -> Self {
        Self {
            take_event: Some(Arc::new(take)),
            ..self
        }
    }

    /// Returns one that takes reports elsewhere, and events as this one does.
    pub(crate) fn reporting(&self, take: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self {
            take: Arc::new(take),
            take_event: self.take_event.clone(),
        }
    }

    /// Returns a sink that discards everything.
    #[must_use]
    pub fn discard() -> Self {
        Self::new(drop)
    }

    /// Hands over an event of a session that the call started. An event longer than
    /// [`CHILD_EVENT_BYTES_MAX`](crate::events::CHILD_EVENT_BYTES_MAX) as JSON is left out.
    pub fn child_event(&self, event: TurnEvent) {
        if let Some(take) = &self.take_event {
            take(event);
        }
    }

    /// Says how far the call is. Numbers that are none are left out, and long words are cut.
    pub fn report(&self, progress: ToolProgress) {
        (self.take)(progress.within_bounds());
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Takes live output of a running call, for people to watch. Never blocks.
#[derive(Clone)]
pub struct OutputSink(Arc<dyn Fn(String) + Send + Sync>);

impl OutputSink {
    /// Wraps a function that takes each piece; it must not block.
    pub fn new(take: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Returns a sink that discards everything.
    #[must_use]
    pub fn discard() -> Self {
        Self::new(drop)
    }

    /// Hands over one piece of output.
    pub fn push(&self, text: String) {
        (self.0)(text);
    }
}

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputSink")
    }
}
