//! Runs a command for the design's `exec` tool, and defines that tool.

use super::ShellError;
use crate::run::fresh_session;
use rondo_core::ports::{Asker, OutputSink, ProgressSink};
use rondo_core::{Tool as _, ToolInvocation};
use rondo_exec::{ExecOptions, ExecTool};
use rondo_types::{CallId, RemainingLimits};
use rondo_types::{ToolOutcome, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExecResult {
    /// Output; a terminal does not tell output from errors.
    pub stdout: String,
    /// Always empty.
    #[serde(default)]
    pub stderr: String,
    /// Its exit code; not 0 is a result, too. 128 and the signal's number if one ended it.
    pub exit_code: i32,
}

/// Result of the tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    stdout: String,
    exit_code: i32,
}

/// Returns the definition of `exec` that the model reads: its name, description and the JSON Schema of its
/// arguments.
#[must_use]
pub fn exec_tool_definition() -> Value {
    json!({
        "name": "exec",
        "description": "Execute a shell command and return the output. Use this to run commands, scripts, or interact with the system.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The shell command to execute" }
            },
            "required": ["command"]
        }
    })
}

/// Runs one command by `bash -c` on a terminal of its own, and hands over its output as it comes.
///
/// In a program whose `main` begins with [`run_if_requested`](rondo_exec::supervisor::run_if_requested):
///
/// ```standalone_crate
/// use rondo::{CancellationToken, OutputSink};
/// use rondo::design::shell::{ExecResult, execute_command};
/// use rondo::tools::{ExecOptions, SupervisorCommand};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     rondo::supervisor::run_if_requested();
///     let state = std::env::temp_dir();
///     let options = ExecOptions::new(SupervisorCommand::CurrentExe, "/".into(), state);
///     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
///     let never = CancellationToken::new();
///     let run = execute_command(&never, "echo from $PWD; exit 3", options, OutputSink::discard());
///     let result = runtime.block_on(run)?;
///     assert_eq!(result.stdout.trim_end(), "from /");
///     assert_eq!((result.stderr.as_str(), result.exit_code), ("", 3));
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`ShellError::Exec`] when it could not be started, or was ended by its time or by `cancel`.
///
/// # Cancel safety
/// Dropping the future ends the command and what it started.
pub async fn execute_command(
    cancel: &CancellationToken,
    command: &str,
    options: ExecOptions,
    output: OutputSink,
) -> Result<ExecResult, ShellError> {
    let session = fresh_session("exec");
    let call = ToolInvocation {
        idempotency_key: session.to_string(),
        session,
        turn: TurnId::new("1"),
        call_id: CallId::generated(0, 0, 0),
        arguments: json!({ "command": command }),
        timeout: None,
        cancel: cancel.clone(),
        output,
        progress: ProgressSink::discard(),
        allowance: RemainingLimits::default(),
        asker: Asker::nobody(),
    };
    match ExecTool::exec(options).call(call).await {
        ToolOutcome::Ok(output) => {
            let wire: Wire = serde_json::from_value(output.value)
                .map_err(|error| ShellError::Exec(error.to_string()))?;
            Ok(ExecResult {
                stdout: wire.stdout,
                stderr: String::new(),
                exit_code: wire.exit_code,
            })
        }
        ToolOutcome::Error(error) => Err(ShellError::Exec(error.message)),
    }
}
