use crate::failure::Failure;
use crate::workspace::Workspace;
use rondo_core::ports::ToolInvocation;
use rondo_types::{ToolErrorCode, ToolOutcome, ToolOutput};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What the work of a call needs besides its arguments.
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) cancel: CancellationToken,
    pub(crate) idempotency_key: String,
}

impl Call {
    /// Fails once the call was cancelled; every loop asks before it goes on.
    pub(crate) fn proceed(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        Ok(())
    }
}

/// Runs the work of a call on a thread that may block.
///
/// # Cancel safety
/// Dropping it cancels the work, which ends at its next look at the token.
pub(crate) async fn run<A>(
    workspace: &Arc<Workspace>,
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
