//! Commands: the tool `execute_command`.

use super::super::super::run::{fresh_session, text_of};
use super::super::tool::Tool;
use crate::tools::{ExecOptions, ExecTool};
use crate::{OutputSink, Tool as _, ToolInvocation, ToolOutcome, ToolSpec, TurnId};
use anyhow::bail;
use async_trait::async_trait;
use rondo_types::CallId;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs shell commands, on a terminal of their own, under a supervisor.
///
/// The model reads `{"stdout": string, "exitCode": integer}`, whatever the exit code.
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
        let outcome = self.exec.call(invocation(args, cancel)).await;
        match outcome {
            ToolOutcome::Ok(output) => Ok(text_of(output.value)),
            ToolOutcome::Error(error) => bail!(error.message),
        }
    }

    fn as_native(&self) -> Option<Arc<dyn crate::Tool>> {
        Some(Arc::new(self.exec.clone()))
    }
}

/// A call that belongs to no session.
fn invocation(arguments: Value, cancel: CancellationToken) -> ToolInvocation {
    let session = fresh_session("execute_command");
    ToolInvocation {
        idempotency_key: session.to_string(),
        session,
        turn: TurnId::new("1"),
        call_id: CallId::generated(0, 0, 0),
        arguments,
        timeout: None,
        cancel,
        output: OutputSink::discard(),
    }
}
