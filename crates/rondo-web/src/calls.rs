//! One call of a tool of the web, from its arguments to its outcome.

use rondo_core::ports::ToolInvocation;
use rondo_types::{
    Concurrency, Effects, Recovery, ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolOutput,
    ToolSpec,
};
use serde::de::DeserializeOwned;

/// Returns what the tools have in common. They read only, and again changes nothing more, but their arguments leave this
/// machine.
pub(crate) fn asking_outside() -> ToolSpec {
    ToolSpec {
        effects: Effects::Writes,
        concurrency: Concurrency::Shared,
        recovery: Recovery::ReadOnly,
        kind: ToolKind::Fetch,
        hints: ToolHints::new(false, true, true),
        ..ToolSpec::default()
    }
}

/// Reads the arguments and does the work until it ends or the call is cancelled. A message is a failure.
///
/// # Cancel safety
/// As the work.
pub(crate) async fn called<A, F>(
    invocation: ToolInvocation,
    work: impl FnOnce(A) -> F,
) -> ToolOutcome
where
    A: DeserializeOwned,
    F: Future<Output = Result<ToolOutput, String>>,
{
    let args = match serde_json::from_value(invocation.arguments) {
        Ok(args) => args,
        Err(err) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, err.to_string()),
    };
    match invocation.cancel.run_until_cancelled(work(args)).await {
        Some(Ok(output)) => ToolOutcome::Ok(output),
        Some(Err(problem)) => ToolOutcome::error(ToolErrorCode::Failed, problem),
        None => ToolOutcome::error(ToolErrorCode::Cancelled, "cancelled"),
    }
}
