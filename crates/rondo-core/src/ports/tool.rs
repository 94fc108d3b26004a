use async_trait::async_trait;
use rondo_types::{CallId, SessionId, ToolOutcome, ToolSpec, TurnId};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Something a model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns what the model is told of it. The same at every call.
    fn spec(&self) -> ToolSpec;

    /// Runs one call, whose arguments already fit the schema.
    ///
    /// The model's mistakes and the world's failures are outcomes, not panics; a panic becomes an
    /// `internal` outcome.
    ///
    /// # Cancel safety
    /// When [`ToolInvocation::cancel`] fires, for a timeout or a cancelled turn, the tool ends what
    /// it started and returns what it has, with code `cancelled` (the driver makes it `timeout`
    /// where that was the reason). One that does not return within the grace period is dropped.
    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome;
}

/// One call, ready to run.
#[derive(Debug, Clone)]
pub struct ToolInvocation {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The call.
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
    /// Where live output goes.
    pub output: OutputSink,
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
