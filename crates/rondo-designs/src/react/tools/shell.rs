//! Commands: the tool `execute_command`.

use super::super::tool::Tool;
use crate::run::invocation;
use anyhow::bail;
use async_trait::async_trait;
use rondo_core::Tool as _;
use rondo_exec::{ExecOptions, ExecTool};
use rondo_types::{ToolOutcome, ToolSpec};
use rondo_wire::output_text;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs shell commands, on a terminal of their own, under a supervisor.
///
/// The model reads what the command printed, as it is, and an exit code that is not zero as a last line.
///
/// In a program whose `main` begins with [`run_if_requested`](rondo_exec::supervisor::run_if_requested):
///
/// ```standalone_crate
/// use rondo::design::react::Tool;
/// use rondo::design::react::tools::shell::ShellTool;
/// use rondo::tools::{ExecOptions, SupervisorCommand};
/// use serde_json::json;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     rondo::supervisor::run_if_requested();
///     let state = std::env::temp_dir();
///     let tool = ShellTool::new(ExecOptions::new(SupervisorCommand::CurrentExe, "/".into(), state));
///     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
///     let output = runtime.block_on(tool.execute(json!({"command": "pwd"})))?;
///     assert_eq!(output.trim_end(), "/");
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ShellTool {
    exec: ExecTool,
    spec: ToolSpec,
}

impl ShellTool {
    /// Takes how commands are run.
    #[must_use]
    pub fn new(options: ExecOptions) -> Self {
        let exec = ExecTool::execute_command(options);
        let spec = exec.spec();
        Self { exec, spec }
    }
}

#[async_trait]
impl Tool for ShellTool {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn description(&self) -> &str {
        &self.spec.description
    }

    fn parameters(&self) -> Value {
        self.spec.parameters.clone()
    }

    /// Runs one command outside of any agent. Dropping the future ends the command.
    async fn execute(&self, args: Value) -> anyhow::Result<String> {
        let cancel = CancellationToken::new();
        let outcome = self
            .exec
            .call(invocation(&self.spec.name, args, cancel))
            .await;
        match outcome {
            ToolOutcome::Ok(output) => Ok(output_text(&output.value)),
            ToolOutcome::Error(error) => bail!(error.message),
        }
    }

    fn as_native(&self) -> Option<Arc<dyn rondo_core::Tool>> {
        Some(Arc::new(self.exec.clone()))
    }
}
