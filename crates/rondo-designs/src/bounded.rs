//! Calls that end at their limit, whatever their tool does.
//!
//! A recorded turn waits for a call that was asked to end, so that the record says what the call did. The designs
//! `stream` and `hub` record nothing and promise the limit itself: here a call is asked to end and then left behind.

use async_trait::async_trait;
use rondo_core::ports::CallEnd;
use rondo_core::{Tool, ToolInvocation};
use rondo_types::units::seconds;
use rondo_types::{Concurrency, ToolErrorCode, ToolOutcome, ToolSpec};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long a call that was asked to end may take to return an error of its own.
const END_GRACE: Duration = Duration::from_millis(50);
/// How long a call that was left behind may take to end what it began.
const TEARDOWN: Duration = Duration::from_secs(5);

/// A tool whose calls end at their limit and when they are cancelled. A result that comes later is dropped.
pub(crate) struct BoundedTool {
    pub(crate) tool: Arc<dyn Tool>,
    /// Lets calls of a tool that does not declare it run beside others.
    pub(crate) shares_undeclared: bool,
}

#[async_trait]
impl Tool for BoundedTool {
    fn spec(&self) -> ToolSpec {
        let mut spec = self.tool.spec();
        if self.shares_undeclared && spec.concurrency == Concurrency::Undeclared {
            spec.concurrency = Concurrency::Shared;
        }
        spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let (tool, bounds) = (Arc::clone(&self.tool), Bounds::of(&invocation));
        let ended = bounds
            .hold(async move { tool.call(invocation).await })
            .await;
        ended.unwrap_or_else(|error| error)
    }

    async fn run(&self, invocation: ToolInvocation) -> CallEnd {
        let (tool, bounds) = (Arc::clone(&self.tool), Bounds::of(&invocation));
        let work = async move {
            match tool.run(invocation).await {
                CallEnd::Done(outcome) => outcome,
                // Nothing here is recorded, so no call can continue in another turn.
                CallEnd::Waiting { .. } => ToolOutcome::error(
                    ToolErrorCode::Failed,
                    "the call waits for another session, which this loop cannot do",
                ),
            }
        };
        CallEnd::Done(bounds.hold(work).await.unwrap_or_else(|error| error))
    }
}

/// Conditions that end a call.
struct Bounds {
    begun: Instant,
    limit: Option<Duration>,
    cancel: CancellationToken,
}

impl Bounds {
    fn of(invocation: &ToolInvocation) -> Self {
        Self {
            begun: Instant::now(),
            limit: invocation.timeout,
            cancel: invocation.cancel.clone(),
        }
    }

    /// Returns the result of the work if it came in time, or the error that its call ends with.
    ///
    /// The work is a task of its own, so that a thread that it blocks is not the one that watches its limit.
    async fn hold<W>(self, work: W) -> Result<ToolOutcome, ToolOutcome>
    where
        W: Future<Output = ToolOutcome> + Send + 'static,
    {
        let mut task = JoinSet::new();
        task.spawn(work.in_current_span());
        tokio::select! {
            biased;
            Some(ended) = task.join_next() => return match ended {
                Ok(outcome) if self.passed_limit().is_none() => Ok(outcome),
                Ok(outcome) => Err(self.error(Some(outcome))),
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(_) => Err(self.error(None)),
            },
            () = self.cancel.cancelled() => {}
            () = sleep(self.limit.unwrap_or(Duration::MAX)) => self.cancel.cancel(),
        }
        let returned = match timeout(END_GRACE, task.join_next()).await {
            Ok(ended) => ended.and_then(Result::ok),
            Err(_) => {
                tokio::spawn(async move {
                    let _ = timeout(TEARDOWN, task.join_next()).await;
                });
                None
            }
        };
        Err(self.error(returned))
    }

    /// Returns the limit, once it is reached.
    fn passed_limit(&self) -> Option<Duration> {
        self.limit.filter(|&limit| self.begun.elapsed() >= limit)
    }

    /// Returns why the call ended early, with the message of its tool if it returned an error.
    fn error(&self, returned: Option<ToolOutcome>) -> ToolOutcome {
        let (code, message) = match self.passed_limit() {
            Some(limit) => (
                ToolErrorCode::Timeout,
                format!("the call did not end within {}", seconds(limit)),
            ),
            None => (
                ToolErrorCode::Cancelled,
                "the call was cancelled".to_owned(),
            ),
        };
        match returned {
            Some(ToolOutcome::Error(mut error)) => {
                error.code = code;
                ToolOutcome::Error(error)
            }
            _ => ToolOutcome::error(code, message),
        }
    }
}
