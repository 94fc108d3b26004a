use crate::environment::Environment;
use crate::supervisor::{
    CallSpec, CallState, CallStatus, Ended, PtySize, StartError, Supervised, SupervisorCommand,
};
use async_trait::async_trait;
use rondo_core::ports::{OutputSink, Tool, ToolInvocation};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolError, ToolErrorCode, ToolOutcome, ToolOutput, ToolSpec,
};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

/// Runs shell commands on a terminal of their own.
///
/// A successful result is `{"stdout": string, "exitCode": integer}`, whatever the exit code; where
/// they apply with `"signal"` (a name), `"truncated": true` and `"full_output"` (a path). What a
/// command leaves running is ended when it ends.
#[derive(Debug, Clone)]
pub struct ExecTool {
    name: String,
    description: String,
    is_extended: bool,
    options: ExecOptions,
}

/// How commands are run.
#[derive(Debug, Clone)]
pub struct ExecOptions {
    /// What is started as supervisor.
    pub supervisor: SupervisorCommand,
    /// Where commands run unless they say otherwise; absolute.
    pub directory: PathBuf,
    /// Where status files and whole outputs are kept; must exist.
    pub state_dir: PathBuf,
    /// How long a command may run when neither the call nor the turn says.
    pub timeout: Duration,
    /// The bound on the output given to the model, in bytes.
    pub output_bytes_max: usize,
    /// The bound on the file that holds a whole output, in bytes.
    pub spill_bytes_max: u64,
    /// What commands find in their environment.
    pub environment: Environment,
    /// The terminal they see.
    pub pty: PtySize,
}

impl ExecOptions {
    /// The default of [`Self::timeout`].
    pub const TIMEOUT: Duration = Duration::from_mins(1);
    /// The default of [`Self::output_bytes_max`].
    pub const OUTPUT_BYTES: usize = 50_000;
    /// The default of [`Self::spill_bytes_max`].
    pub const SPILL_BYTES: u64 = 64 << 20;

    /// Returns the defaults for commands in `directory`.
    #[must_use]
    pub fn new(supervisor: SupervisorCommand, directory: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            supervisor,
            directory,
            state_dir,
            timeout: Self::TIMEOUT,
            output_bytes_max: Self::OUTPUT_BYTES,
            spill_bytes_max: Self::SPILL_BYTES,
            environment: Environment::default(),
            pty: PtySize::default(),
        }
    }
}

type Refusal = Box<ToolError>;

const EXEC_DESCRIPTION: &str = "Execute a shell command and return the output. Use this to run commands, scripts, or interact with the system.";
const EXECUTE_COMMAND_DESCRIPTION: &str =
    "Execute a shell command safely. Use this to run system commands.";
const COMMAND_MISSING: &str = "exec tool requires 'command' argument as string";

impl ExecTool {
    /// The longest `timeout` argument, in seconds.
    pub const TIMEOUT_SECONDS_MAX: u64 = 24 * 60 * 60;

    /// Builds the tool `exec`, with `working_directory` and `timeout` as optional arguments.
    #[must_use]
    pub fn exec(options: ExecOptions) -> Self {
        Self {
            name: "exec".to_owned(),
            description: EXEC_DESCRIPTION.to_owned(),
            is_extended: true,
            options,
        }
    }

    /// Builds the tool `execute_command`, which takes a command and nothing else.
    #[must_use]
    pub fn execute_command(options: ExecOptions) -> Self {
        Self {
            name: "execute_command".to_owned(),
            description: EXECUTE_COMMAND_DESCRIPTION.to_owned(),
            is_extended: false,
            options,
        }
    }

    /// Gives the tool another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn parameters(&self) -> Value {
        if !self.is_extended {
            return json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command to run" }
                },
                "required": ["command"]
            });
        }
        json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The shell command to execute" },
                "working_directory": {
                    "type": "string",
                    "description": "Where to run it; the current directory if left out"
                },
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": Self::TIMEOUT_SECONDS_MAX,
                    "description": "Seconds after which the command is ended; the default if left out"
                }
            },
            "required": ["command"]
        })
    }

    fn call_spec(&self, invocation: &ToolInvocation) -> Result<CallSpec, Refusal> {
        let options = &self.options;
        if !CallSpec::is_key(&invocation.idempotency_key) {
            return Err(internal("the call's key is not usable as a file name"));
        }
        let timeout = self.timeout(invocation)?;
        Ok(CallSpec {
            key: invocation.idempotency_key.clone(),
            state_dir: options.state_dir.clone(),
            command: command(&invocation.arguments)?,
            directory: self.directory(&invocation.arguments)?,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: options.output_bytes_max,
            spill_bytes_max: options.spill_bytes_max,
            pty: options.pty,
        })
    }

    fn timeout(&self, invocation: &ToolInvocation) -> Result<Duration, Refusal> {
        let asked = match invocation.arguments.get("timeout") {
            None | Some(Value::Null) => None,
            // Small models fill in every argument; with zero they mean none.
            Some(value) => Some(seconds(value)?).filter(|asked| !asked.is_zero()),
        };
        let bounds = [asked, invocation.timeout];
        Ok(bounds
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.options.timeout))
    }

    fn directory(&self, arguments: &Value) -> Result<PathBuf, Refusal> {
        let asked = match arguments.get("working_directory") {
            None | Some(Value::Null) => return Ok(self.options.directory.clone()),
            Some(Value::String(asked)) => asked,
            Some(_) => return Err(invalid("`working_directory` must be a string")),
        };
        let directory = self.options.directory.join(asked);
        if directory.is_dir() {
            Ok(directory)
        } else if directory.exists() {
            Err(invalid(format!(
                "`working_directory` `{asked}` is not a directory"
            )))
        } else {
            Err(invalid(format!(
                "`working_directory` `{asked}` does not exist"
            )))
        }
    }

    async fn run(&self, invocation: &ToolInvocation) -> Result<CallStatus, Refusal> {
        let spec = self.call_spec(invocation)?;
        if is_still_running(&spec) {
            return Err(refusal(
                ToolErrorCode::InDoubt,
                "the same call is still running under an earlier supervisor",
            ));
        }
        let options = &self.options;
        let starting = Supervised::start(&options.supervisor, &options.environment, &spec);
        let mut running = tokio::select! {
            started = starting => started.map_err(|err| could_not_run(&err))?,
            () = invocation.cancel.cancelled() => return Err(refusal(
                ToolErrorCode::Cancelled,
                "the command was not started",
            )),
        };
        running.go().map_err(|err| could_not_run(&err))?;
        follow(running, invocation)
            .await
            .map_err(|err| could_not_run(&err))
    }
}

#[async_trait]
impl Tool for ExecTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters(),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        match self.run(&invocation).await {
            Ok(status) => outcome(status),
            Err(error) => ToolOutcome::Error(*error),
        }
    }
}

/// Relays output until the end. The reader is never dropped between two parts of a frame: a cancel
/// only tells the supervisor to end the command, which is then waited for.
async fn follow(
    mut running: Supervised,
    invocation: &ToolInvocation,
) -> Result<CallStatus, StartError> {
    let mut live = LiveText::new(&invocation.output);
    let mut ender = running.ender()?;
    let watch = async {
        invocation.cancel.cancelled().await;
        ender.end();
        std::future::pending::<Infallible>().await
    };
    tokio::pin!(watch);
    loop {
        let next = running.next();
        tokio::pin!(next);
        let event = tokio::select! {
            event = &mut next => event,
            never = &mut watch => match never {},
        };
        match event? {
            Ended::Output(bytes) => live.push(&bytes),
            Ended::Status(status) => {
                live.finish();
                return Ok(*status);
            }
        }
    }
}

/// Turns bytes into text for people, characters that are split between pieces included.
struct LiveText<'a> {
    sink: &'a OutputSink,
    partial: Vec<u8>,
}

impl<'a> LiveText<'a> {
    fn new(sink: &'a OutputSink) -> Self {
        Self {
            sink,
            partial: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let incomplete = incomplete_tail(&self.partial);
        let rest = self.partial.split_off(self.partial.len() - incomplete);
        let whole = std::mem::replace(&mut self.partial, rest);
        if !whole.is_empty() {
            self.sink.push(String::from_utf8_lossy(&whole).into_owned());
        }
    }

    fn finish(&mut self) {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.sink.push(String::from_utf8_lossy(&rest).into_owned());
        }
    }
}

/// Returns how many bytes at the end begin a character without ending it; 0 to 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    bytes
        .utf8_chunks()
        .last()
        .map(|chunk| chunk.invalid())
        .filter(|tail| std::str::from_utf8(tail).is_err_and(|err| err.error_len().is_none()))
        .map_or(0, <[u8]>::len)
}

fn command(arguments: &Value) -> Result<String, Refusal> {
    let command = arguments.get("command").and_then(Value::as_str);
    let command = command.ok_or_else(|| invalid(COMMAND_MISSING))?;
    if command.contains('\0') {
        return Err(invalid("the command contains a NUL character"));
    }
    Ok(command.to_owned())
}

fn seconds(value: &Value) -> Result<Duration, Refusal> {
    value
        .as_f64()
        .filter(|seconds| *seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|timeout| *timeout <= Duration::from_secs(ExecTool::TIMEOUT_SECONDS_MAX))
        .ok_or_else(|| {
            invalid(format!(
                "`timeout` must be a number of seconds from 0 to {}",
                ExecTool::TIMEOUT_SECONDS_MAX
            ))
        })
}

fn is_still_running(spec: &CallSpec) -> bool {
    CallStatus::read(&spec.state_dir, &spec.key)
        .ok()
        .flatten()
        .is_some_and(|status| status.state == CallState::Running && status.supervisor_is_alive())
}

fn outcome(status: CallStatus) -> ToolOutcome {
    let truncated = status.omitted_bytes > 0;
    let spill = status
        .full_output
        .as_ref()
        .map(|path| path.display().to_string());
    let is_cut_short = status.timed_out || status.cancelled || status.exit_code.is_none();
    let (timed_out, value) = (status.timed_out, render(status, spill.as_ref()));
    if !is_cut_short {
        return ToolOutcome::Ok(ToolOutput {
            value,
            truncated,
            spill,
            ..ToolOutput::default()
        });
    }
    let (code, message) = if timed_out {
        (
            ToolErrorCode::Timeout,
            "the command ran longer than it may and was ended",
        )
    } else {
        (
            ToolErrorCode::Cancelled,
            "the command was ended before it was done",
        )
    };
    ToolOutcome::Error(ToolError {
        code,
        message: message.to_owned(),
        details: value,
    })
}

fn render(status: CallStatus, spill: Option<&String>) -> Value {
    let mut result = Map::new();
    result.insert("stdout".to_owned(), Value::String(status.stdout));
    if let Some(code) = status.exit_code {
        result.insert("exitCode".to_owned(), code.into());
    }
    if let Some(signal) = status.signal {
        result.insert("signal".to_owned(), signal.into());
    }
    if status.omitted_bytes > 0 {
        result.insert("truncated".to_owned(), true.into());
    }
    if let Some(path) = spill {
        result.insert("full_output".to_owned(), path.clone().into());
    }
    if status.timed_out {
        result.insert("timed_out".to_owned(), true.into());
    }
    if status.survivors {
        result.insert("survivors".to_owned(), true.into());
    }
    Value::Object(result)
}

fn could_not_run(err: &StartError) -> Refusal {
    let cause = err
        .source()
        .map_or_else(String::new, |cause| format!(": {cause}"));
    let code = match err {
        StartError::Refused(_) | StartError::TooLong => ToolErrorCode::Failed,
        StartError::NoSupervisor
        | StartError::NotAbsolute(_)
        | StartError::Spawn(_)
        | StartError::Lost(_) => ToolErrorCode::Internal,
    };
    refusal(code, format!("Error executing command: {err}{cause}"))
}

fn refusal(code: ToolErrorCode, message: impl Into<String>) -> Refusal {
    Box::new(ToolError {
        code,
        message: message.into(),
        details: Value::Null,
    })
}

fn invalid(message: impl Into<String>) -> Refusal {
    refusal(ToolErrorCode::InvalidArgs, message)
}

fn internal(message: &str) -> Refusal {
    refusal(ToolErrorCode::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_text_joins_characters_that_were_split() {
        let whole = "a\u{e4}\u{20ac}\u{1f600}b";
        for cut in 0..=whole.len() {
            let (tx, rx) = std::sync::mpsc::channel();
            let sink = OutputSink::new(move |text| drop(tx.send(text)));
            let mut live = LiveText::new(&sink);
            live.push(&whole.as_bytes()[..cut]);
            live.push(&whole.as_bytes()[cut..]);
            live.finish();
            drop(sink);
            assert_eq!(rx.iter().collect::<String>(), whole, "cut at {cut}");
        }
    }
}
