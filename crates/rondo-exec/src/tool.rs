//! The tool that runs a command.

use crate::denial;
use crate::environment::{kept_outside_from_env, variables_from_env};
use crate::follow::{CommandOutcome, StopCause, follow};
use crate::form::{Form, SHELL_COMMAND};
use crate::interrupted::CallsFoundRunning;
use crate::outcome::{
    Refusal, TimeLimit, could_not_run, cut_off, internal, invalid, outcome, refusal,
};
use async_trait::async_trait;
use rondo_core::FROM_OUTSIDE;
use rondo_core::ports::{InterruptedCall, Reconciled, Tool, ToolInvocation};
use rondo_core::redact::Secrets;
use rondo_launch::{
    CallSpec, CallStatus, CommandState, PtySize, RecalledCall, StartError, SupervisedCommand,
    SupervisorCommand,
};
use rondo_policy::analysis::{fetches, may_fetch};
use rondo_policy::{CommandEnvironment, LookingCalls, OUTSIDE_SANDBOX, Workdir};
use rondo_sandbox::{Enforcement, SandboxSpec, SandboxSupport};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolSpec,
};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
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
    form: Form,
    options: ExecOptions,
    found_running: CallsFoundRunning,
    /// Commands begun so far.
    begun: Arc<AtomicU32>,
}

/// The bound on the memory of a command that runs without asking, in bytes: the user has not allowed more.
const LOOKING_BYTES_MAX: u64 = 1 << 30;

/// Access of a call.
#[derive(Default)]
struct CallAccess {
    /// Everything if there is none.
    spec: Option<SandboxSpec>,
    /// Set if it runs without asking because it is read-only.
    is_looking: bool,
}

/// How many commands are begun between two looks at what earlier ones left.
const TIDIED_EVERY: u32 = 16;

/// How commands are run.
#[derive(Debug, Clone)]
pub struct ExecOptions {
    /// Program to start as supervisor.
    pub supervisor: SupervisorCommand,
    /// Default directory of commands; absolute.
    pub directory: PathBuf,
    /// Directory and environment of the user's shell, used from each call on in place of [`Self::directory`] and of
    /// this process's environment beneath [`Self::environment`].
    pub workdir: Option<Workdir>,
    /// Directory of status files and whole outputs; created if missing.
    pub state_dir: PathBuf,
    /// Keeps them, which is the default. If not set, nothing of a call is on the
    /// disk: output that is too long for the model is left out, and a call cannot be found again.
    pub is_kept: bool,
    /// How long a command may continue when its agent was killed. A session that can be resumed then
    /// finds it again; zero, the default, ends it with its agent.
    pub outlive: Duration,
    /// How long a command may run when neither the call nor the turn says.
    pub timeout: Duration,
    /// The bound on the output given to the model, in bytes.
    pub output_bytes_max: usize,
    /// The bound on the file that holds a whole output, in bytes.
    pub spill_bytes_max: u64,
    /// The bound on the memory of all processes of a command, in bytes; `None`, the default, for half of the machine's, and
    /// at least 2 GiB. A command that runs without asking has at most 1 GiB.
    pub memory_bytes_max: Option<u64>,
    /// Environment of commands.
    pub environment: Arc<CommandEnvironment>,
    /// The terminal they see.
    pub pty: PtySize,
    /// Limits of their access; `None` for no limits.
    pub sandbox: Option<SandboxSpec>,
    /// Limits of their access once they are set, in place of [`Self::sandbox`].
    pub chosen_sandbox: Option<Arc<OnceLock<SandboxSpec>>>,
    /// Counts what commands reach of other machines, if that is known: what is printed meanwhile is from outside.
    pub reached: Option<NetworkCounter>,
    /// Limits for calls that the gate allowed because they are read-only, if the system enforces them; `None` for the
    /// same limits as others.
    pub looking: Option<(LookingCalls, SandboxSpec)>,
    /// Secrets to remove from their output, live or kept, and from their records.
    pub secrets: Secrets,
}

/// Counts what commands reach of other machines.
#[derive(Clone)]
pub struct NetworkCounter(Arc<dyn Fn() -> u64 + Send + Sync>);

impl NetworkCounter {
    /// Wraps what returns the count so far.
    pub fn new(count: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(count))
    }

    fn count(&self) -> u64 {
        (self.0)()
    }
}

impl std::fmt::Debug for NetworkCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reached").field(&self.count()).finish()
    }
}

impl ExecOptions {
    /// Value of [`Self::outlive`] for sessions that can be resumed: a working day.
    pub const OUTLIVE: Duration = Duration::from_hours(8);
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
            workdir: None,
            state_dir,
            is_kept: true,
            outlive: Duration::ZERO,
            timeout: Self::TIMEOUT,
            output_bytes_max: Self::OUTPUT_BYTES,
            spill_bytes_max: Self::SPILL_BYTES,
            memory_bytes_max: None,
            environment: Arc::default(),
            pty: PtySize::default(),
            sandbox: None,
            chosen_sandbox: None,
            reached: None,
            looking: None,
            secrets: Secrets::default(),
        }
    }
}

impl ExecOptions {
    fn current_directory(&self) -> PathBuf {
        let workdir = self.workdir.as_ref().map(Workdir::directory);
        workdir.unwrap_or_else(|| self.directory.clone())
    }

    /// Returns the current sandbox of commands; `None` if they reach everything.
    fn sandbox_now(&self) -> Option<&SandboxSpec> {
        let chosen = self.chosen_sandbox.as_ref().and_then(|it| it.get());
        chosen.or(self.sandbox.as_ref())
    }
}

const EXEC_DESCRIPTION: &str = "Execute a shell command and return the output. Use this to run commands, scripts, or interact with the system.";
const EXECUTE_COMMAND_DESCRIPTION: &str =
    "Execute a shell command safely. Use this to run system commands.";
const PROGRAM_DESCRIPTION: &str = "Runs a program with arguments, without a shell: pipes, redirections, variables and \
                                   patterns are not expanded. Programs that interpret their arguments as code are refused.";

impl ExecTool {
    /// The names of [`Self::exec`] and [`Self::execute_command`].
    pub const NAMES: [&str; 2] = ["exec", "execute_command"];
    /// The longest `timeout` argument, in seconds.
    pub const TIMEOUT_SECONDS_MAX: u64 = 24 * 60 * 60;

    /// Builds the tool `exec`, with `working_directory` and `timeout` as optional arguments.
    #[must_use]
    pub fn exec(options: ExecOptions) -> Self {
        Self::new("exec", EXEC_DESCRIPTION, Form::Line, options)
    }

    /// Builds the tool `exec` with a command as its only argument.
    #[must_use]
    pub fn exec_command_only(options: ExecOptions) -> Self {
        let form = Form::BareLine(SHELL_COMMAND);
        Self::new("exec", EXEC_DESCRIPTION, form, options)
    }

    /// Builds the tool `execute_command`, which takes a command and nothing else.
    #[must_use]
    pub fn execute_command(options: ExecOptions) -> Self {
        let (description, form) = (
            EXECUTE_COMMAND_DESCRIPTION,
            Form::BareLine("The command to run"),
        );
        Self::new("execute_command", description, form, options)
    }

    /// Builds [`Self::exec`] and [`Self::execute_command`] without a shell: `argv`, a program and its arguments, takes the
    /// place of `command`, and each word reaches the program as it is.
    #[must_use]
    pub fn without_shell(options: &ExecOptions) -> [Self; 2] {
        Self::NAMES.map(|name| Self::new(name, PROGRAM_DESCRIPTION, Form::Argv, options.clone()))
    }

    fn new(name: &str, description: &str, form: Form, options: ExecOptions) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            form,
            options,
            found_running: CallsFoundRunning::default(),
            begun: Arc::default(),
        }
    }

    /// Gives the tool another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn call_spec(
        &self,
        invocation: &ToolInvocation,
        time: TimeLimit,
        sandbox: CallAccess,
    ) -> Result<CallSpec, Refusal> {
        let options = &self.options;
        if !CallSpec::is_key(&invocation.idempotency_key) {
            return Err(internal("the call's key cannot be used as a file name"));
        }
        let program = self.form.program(&invocation.arguments)?;
        Ok(CallSpec {
            key: invocation.idempotency_key.clone(),
            state_dir: options.state_dir.clone(),
            command: program.line,
            argv: program.argv,
            directory: self.directory(&invocation.arguments)?,
            timeout_ms: millis(time.limit),
            outlive_ms: match options.is_kept {
                true => millis(options.outlive),
                false => 0,
            },
            output_bytes_max: options.output_bytes_max,
            spill_bytes_max: options.spill_bytes_max,
            pty: options.pty,
            is_kept: options.is_kept,
            memory_bytes_max: match (sandbox.is_looking, options.memory_bytes_max) {
                (false, max) => max,
                (true, None) => Some(LOOKING_BYTES_MAX),
                (true, Some(max)) => Some(max.min(LOOKING_BYTES_MAX)),
            },
            sandbox: sandbox.spec,
            secrets: options.secrets.clone(),
        })
    }

    fn timeout(&self, invocation: &ToolInvocation) -> Result<TimeLimit, Refusal> {
        let asked = match invocation.arguments.get("timeout") {
            None | Some(Value::Null) => None,
            // Small models fill in every argument; with zero they mean none.
            Some(value) => Some(seconds(value)?).filter(|asked| !asked.is_zero()),
        };
        let bounds = [asked, invocation.timeout];
        let least = bounds.into_iter().flatten().min();
        let limit = least.unwrap_or(self.options.timeout);
        Ok(TimeLimit {
            limit,
            asked: asked.filter(|asked| *asked > limit),
        })
    }

    fn directory(&self, arguments: &Value) -> Result<PathBuf, Refusal> {
        let current = self.options.current_directory();
        let asked = match arguments.get("working_directory") {
            None | Some(Value::Null) => return Ok(current),
            Some(Value::String(asked)) => asked,
            Some(_) => return Err(invalid("`working_directory` must be a string")),
        };
        let directory = current.join(asked);
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

    /// Returns the reach of a call.
    async fn sandbox(&self, invocation: &ToolInvocation) -> CallAccess {
        let arguments = &invocation.arguments;
        if arguments.get(OUTSIDE_SANDBOX) == Some(&Value::Bool(true)) {
            return CallAccess::default();
        }
        if let Some((calls, spec)) = &self.options.looking
            && calls.take(&invocation.session, &invocation.call_id, arguments)
            && let Some(enforcement) = support().await.and_then(SandboxSupport::enforcement)
        {
            let spec = SandboxSpec {
                enforcement,
                ..spec.clone()
            };
            return CallAccess {
                spec: Some(spec),
                is_looking: true,
            };
        }
        CallAccess {
            spec: self.options.sandbox_now().cloned(),
            is_looking: false,
        }
    }

    async fn run(
        &self,
        invocation: &ToolInvocation,
        time: TimeLimit,
    ) -> Result<CallStatus, Refusal> {
        if self.found_running.take(&invocation.idempotency_key)
            && let Some(status) = self.go_on(invocation, time).await?
        {
            return Ok(status);
        }
        let sandbox = self.sandbox(invocation).await;
        let spec = self.call_spec(invocation, time, sandbox)?;
        if was_begun(&spec) {
            return Err(refusal(ToolErrorCode::InDoubt, BEGUN_BEFORE));
        }
        self.tidy().await;
        let options = &self.options;
        let variables = options.workdir.as_ref().and_then(Workdir::environment);
        let is_confined = spec.sandbox.is_some();
        let variables = variables_from_env(&options.environment, variables.as_ref(), is_confined);
        let cancelled = invocation.cancel.cancelled();
        let running =
            SupervisedCommand::run(&options.supervisor, &variables, &spec, cancelled).await;
        let followed = match running {
            Ok(running) => follow(running, invocation, Some(spec.timeout())).await,
            Err(err) => CommandOutcome::Refused(err),
        };
        match followed {
            CommandOutcome::Ended(status) => Ok(*status),
            CommandOutcome::Refused(err) => Err(could_not_run(&err)),
            CommandOutcome::Lost { cause, cut } => {
                let cut = cut.map(|cut| (cut, time));
                self.take_lost(&spec.key, &cause, cut).await
            }
        }
    }

    /// Names the hooks of `git` and the files that the sandbox hid from a command, if it may have needed them.
    async fn hidden_from(
        &self,
        invocation: &ToolInvocation,
        status: &CallStatus,
    ) -> [Option<String>; 2] {
        let looking = self.options.looking.as_ref().map(|(_, spec)| spec);
        let (sandbox, directory) = match self.directory(&invocation.arguments) {
            Ok(directory) if status.sandbox.is_some() => (self.options.sandbox_now(), directory),
            _ => return [None, None],
        };
        let enforcement = match sandbox {
            Some(spec) => Some(spec.enforcement),
            None => support().await.and_then(SandboxSupport::enforcement),
        };
        // Without namespaces nothing is hidden.
        let hiding = sandbox.or(looking);
        let hiding = hiding.filter(|_| enforcement == Some(Enforcement::Full));
        [
            hiding.and_then(|spec| denial::of_hidden(spec, &directory, status)),
            sandbox.and_then(|spec| denial::of_hooks(spec, &directory, &status.command)),
        ]
    }

    /// Names the user's variables that a command in the sandbox did not get, if the command or its output names them.
    fn missed_variables(&self, status: &CallStatus) -> Option<String> {
        status.sandbox.as_ref()?;
        if status.exit_code == Some(0) && !status.command.contains(['$', '_']) {
            // It names none, as most commands do; to look at each variable takes time.
            return None;
        }
        let options = &self.options;
        let variables = options.workdir.as_ref().and_then(Workdir::environment);
        let kept = kept_outside_from_env(&options.environment, variables.as_ref());
        denial::of_variables(&kept, status)
    }

    /// Reports the state of a command whose supervisor and processes are gone: what is
    /// recorded, and nothing more.
    async fn take_lost(
        &self,
        key: &str,
        cause: &StartError,
        cut: Option<(StopCause, TimeLimit)>,
    ) -> Result<CallStatus, Refusal> {
        let known = match self.options.is_kept {
            true => rondo_launch::end(&self.options.state_dir, key).await,
            false => RecalledCall::Lost { mark: None },
        };
        match (known, cut) {
            (RecalledCall::Ended(status), _) => Ok(*status),
            (RecalledCall::NeverBegun { is_recorded: true }, Some((StopCause::Cancelled, _))) => {
                Err(could_not_run(&StartError::Cancelled))
            }
            (RecalledCall::NeverBegun { is_recorded: true }, _) => Err(could_not_run(cause)),
            (_, Some((cut, time))) => Err(cut_off(cut, time)),
            (_, None) => Err(refusal(ToolErrorCode::InDoubt, LOST)),
        }
    }
}

impl ExecTool {
    async fn tidy(&self) {
        if !self.options.is_kept {
            return;
        }
        // It may have been removed, and a call that leaves no trace would be in doubt after a crash.
        let _ = private_dir(&self.options.state_dir);
        if self
            .begun
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(TIDIED_EVERY)
        {
            let dir = self.options.state_dir.clone();
            // Whether it could be tidied makes no difference to the command.
            let _ = tokio::task::spawn_blocking(move || rondo_launch::remove_oldest(&dir)).await;
        }
    }

    /// Follows a command that an earlier agent started, or returns how it ended; nothing if
    /// it never began.
    async fn go_on(
        &self,
        invocation: &ToolInvocation,
        time: TimeLimit,
    ) -> Result<Option<CallStatus>, Refusal> {
        let (dir, key) = (&self.options.state_dir, &invocation.idempotency_key);
        let mut known = rondo_launch::look(dir, key).await;
        if let RecalledCall::Running(status) = &known {
            // Its supervisor may be stopped, with no process left to wake it.
            let left = time.limit.saturating_sub(CallStatus::age(dir, key));
            if let Ok(found) = SupervisedCommand::attach(dir, key, status).await
                && let CommandOutcome::Ended(status) = follow(found, invocation, Some(left)).await
            {
                return Ok(Some(*status));
            }
            // It ends, or it cannot be reached.
            known = rondo_launch::end(dir, key).await;
        }
        match known {
            RecalledCall::Ended(status) => Ok(Some(*status)),
            RecalledCall::NeverBegun { .. } => Ok(None),
            RecalledCall::Lost { mark } => {
                if let Some(mark) = mark {
                    rondo_launch::end_orphans(mark).await;
                }
                Err(refusal(ToolErrorCode::InDoubt, LOST))
            }
            RecalledCall::Running(_) => Err(refusal(ToolErrorCode::InDoubt, LOST)),
        }
    }
}

/// Message to the model about a command that the journal takes to be new, and that was begun before.
const BEGUN_BEFORE: &str = "a command of this call was started before, and its records are lost: check its effects before you \
                            repeat it";

/// Message to the model about a command whose end is unknown.
const LOST: &str = "the supervisor of the command does not answer, and it is not known whether the command was \
                    finished: check its effects before you repeat it";

#[async_trait]
impl Tool for ExecTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.form.parameters(self.options.sandbox_now().is_some()),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
            kind: ToolKind::Execute,
            hints: ToolHints::new(true, false, true),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let reached = || self.options.reached.as_ref().map(NetworkCounter::count);
        let before = reached();
        let ended = match self.timeout(&invocation) {
            Ok(time) => self.run(&invocation, time).await.map(|it| (it, time)),
            Err(error) => Err(error),
        };
        let (status, time) = match ended {
            Ok(ended) => ended,
            Err(error) => return ToolOutcome::Error(*error),
        };
        let is_confined = status.sandbox.is_some();
        let hidden = self.hidden_from(&invocation, &status).await;
        let variables = self.missed_variables(&status);
        let mut outcome = outcome(status, Some(time));
        for sentence in hidden.into_iter().chain([variables]).flatten() {
            denial::add(&mut outcome, &sentence);
        }
        match reached() != before {
            true => from_outside(outcome),
            // It reaches other machines by the proxy alone, which counts.
            false if is_confined => outcome,
            false => marked(outcome, &invocation.arguments).await,
        }
    }

    async fn evidence(&self, _arguments: &Value) -> Option<Value> {
        let dir = &self.options.state_dir;
        match self.options.is_kept {
            true => crate::interrupted::evidence(dir, None),
            false => None,
        }
    }

    async fn evidence_of(&self, idempotency_key: &str, _arguments: &Value) -> Option<Value> {
        let dir = &self.options.state_dir;
        match self.options.is_kept {
            true => crate::interrupted::evidence(dir, Some(idempotency_key)),
            false => None,
        }
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        match self.options.is_kept {
            true => {
                let state_dir = &self.options.state_dir;
                match self.found_running.reconcile(state_dir, call).await {
                    Reconciled::Done(outcome) => {
                        Reconciled::Done(marked(outcome, &call.arguments).await)
                    }
                    other => other,
                }
            }
            false => Reconciled::Unknown,
        }
    }
}

/// Returns the protection that the system enforces, if it is known.
async fn support() -> Option<&'static SandboxSupport> {
    match rondo_sandbox::known_support() {
        Some(support) => Some(support),
        // The first time, it starts a process.
        None => {
            let trying = tokio::task::spawn_blocking(rondo_sandbox::support);
            trying.await.ok()
        }
    }
}

/// Marks the output of a command that brings text from another machine.
async fn marked(outcome: ToolOutcome, arguments: &Value) -> ToolOutcome {
    let command = ToolKind::Execute.command_line(arguments);
    let command = command.unwrap_or_default();
    if !may_fetch(&command) {
        return outcome;
    }
    let command = command.into_owned();
    let fetches = tokio::task::spawn_blocking(move || fetches(&command)).await;
    match fetches.unwrap_or(true) {
        true => from_outside(outcome),
        false => outcome,
    }
}

/// Marks an outcome as text from another machine.
fn from_outside(mut outcome: ToolOutcome) -> ToolOutcome {
    match &mut outcome {
        ToolOutcome::Ok(output) => output.from_outside = true,
        ToolOutcome::Error(error) => {
            if let Some(details) = error.details.as_object_mut() {
                details.insert(FROM_OUTSIDE.to_owned(), true.into());
            }
        }
    }
    outcome
}

/// Makes a directory that is its owner's alone, unless it is there.
fn private_dir(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
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

/// Returns whether a command of this call was begun before, by what its state says, or cannot be read
/// to say.
fn was_begun(spec: &CallSpec) -> bool {
    match CallStatus::read(&spec.state_dir, &spec.key) {
        Ok(None) => false,
        Ok(Some(status)) => matches!(status.state, CommandState::Running | CommandState::Ended),
        Err(_) => true,
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
