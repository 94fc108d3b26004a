//! The tools of an agent.

use async_trait::async_trait;
use rondo_core::ToolInvocation;
use rondo_types::{Concurrency, Effects, Recovery, ToolErrorCode};
use rondo_types::{ToolOutcome, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// Something that an agent can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name, such as `execute_command`.
    fn name(&self) -> &str;

    /// Returns the specification of the tool that the model reads.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of its arguments, an object schema.
    fn parameters(&self) -> Value;

    /// Runs one call, whose arguments fit the schema.
    ///
    /// # Errors
    /// When it failed; the model reads the message, with its causes, and may try again.
    ///
    /// # Cancel safety
    /// Dropped when the call's time is over or the run is cancelled; it must end what it began.
    async fn execute(&self, args: Value) -> anyhow::Result<String>;

    /// Returns the tool of this crate behind it, if there is one: it is then run as that, with
    /// live output and an orderly end.
    fn as_native(&self) -> Option<Arc<dyn rondo_core::Tool>> {
        None
    }
}

/// Returns a tool of the design as one of ours.
pub(super) fn native(tool: &Arc<dyn Tool>) -> Arc<dyn rondo_core::Tool> {
    let wrapped = || Arc::new(WrappedTool(Arc::clone(tool))) as Arc<dyn rondo_core::Tool>;
    tool.as_native().unwrap_or_else(wrapped)
}

struct WrappedTool(Arc<dyn Tool>);

#[async_trait]
impl rondo_core::Tool for WrappedTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.0.name().to_owned(),
            description: self.0.description().to_owned(),
            parameters: self.0.parameters(),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::AtMostOnce,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        tokio::select! {
            result = self.0.execute(invocation.arguments) => match result {
                Ok(text) => ToolOutcome::text(text),
                Err(error) => ToolOutcome::error(ToolErrorCode::Failed, format!("{error:#}")),
            },
            () = invocation.cancel.cancelled() => {
                ToolOutcome::error(ToolErrorCode::Cancelled, "the call was ended")
            }
        }
    }
}
