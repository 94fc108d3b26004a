//! Runs the work of a call on a blocking thread.

use crate::change::{ChangeLog, FileChange};
use crate::failure::Failure;
use crate::workspace::Workspace;
use rondo_core::ports::ToolInvocation;
use rondo_types::{CallId, ToolErrorCode, ToolOutcome, ToolOutput};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What the work of a call needs besides its arguments.
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) cancel: CancellationToken,
    pub(crate) idempotency_key: String,
    id: CallId,
    log: ChangeLog,
}

impl Call {
    /// Fails once the call was cancelled; every loop asks before it goes on.
    pub(crate) fn proceed(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        Ok(())
    }

    /// Returns whether what the call makes of its file is noted.
    pub(crate) fn is_watched(&self) -> bool {
        self.log.is_enabled()
    }

    /// Notes what the call made of its file.
    pub(crate) fn note(&self, change: impl FnOnce() -> FileChange) {
        if self.is_watched() {
            self.log.note(self.id.clone(), change());
        }
    }
}

/// Runs the work of a call that changes no file on a thread that may block.
///
/// # Cancel safety
/// As [`run_noted`].
pub(crate) async fn run<A>(
    workspace: &Arc<Workspace>,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    run_noted(workspace, &ChangeLog::default(), invocation, work).await
}

/// Runs the work of a call on a thread that may block; the work notes in the log what it changed.
///
/// # Cancel safety
/// Dropping it cancels the work, which ends at its next look at the token.
pub(crate) async fn run_noted<A>(
    workspace: &Arc<Workspace>,
    log: &ChangeLog,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    let args: A = match serde_json::from_value(invocation.arguments) {
        Ok(args) => args,
        Err(err) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, err.to_string()),
    };
    let cancel = invocation.cancel.child_token();
    let _on_drop = cancel.clone().drop_guard();
    let call = Call {
        workspace: Arc::clone(workspace),
        cancel,
        idempotency_key: invocation.idempotency_key,
        id: invocation.call_id,
        log: log.clone(),
    };
    let done = tokio::task::spawn_blocking(move || {
        call.proceed()?;
        work(&args, &call)
    })
    .await;
    match done {
        Ok(Ok(output)) => ToolOutcome::Ok(output),
        Ok(Err(failure)) => failure.into_outcome(),
        Err(_) => ToolOutcome::error(ToolErrorCode::Internal, "the tool failed unexpectedly"),
    }
}

/// Returns an optional text argument that says something. Small models fill in every argument;
/// with an empty text they mean none, as with zero for a number.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}
