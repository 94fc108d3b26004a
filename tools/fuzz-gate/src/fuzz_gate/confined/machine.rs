//! Runs cases as the product runs commands, under a supervisor; within the machine of the fuzzer's own.

use super::Options;
use super::cases::{self, Case, Killing, Victim};
use super::ground::{self, ELSEWHERE, GROUND, HOME, PROJECT, READABLE, WORLD};
use super::judge::{After, Before, Fault, Finding, judge};
use super::killed;
use super::look::{Snapshot, differences, look};
use super::processes::Processes;
use anyhow::{Context, Result, ensure};
use rondo_core::redact::Secrets;
use rondo_launch::{
    CallSpec, CallStatus, CommandEvent, PtySize, StartError, SupervisedCommand, SupervisorCommand,
};
use rondo_sandbox::{Enforcement, Ledger, SandboxSpec, readable_roots};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Ledger of the protected files of running commands.
const LEDGER: &str = "/mnt/state/ledger";
/// The port that attempts connect to.
const PORT: u16 = 7777;
/// Directory of the status of each command.
const STATE: &str = "/mnt/state";
/// Bytes of a command's output that are kept.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The bound on the memory of a command, in bytes.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Search path of programs.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Outcome of a case: one line of the machine's output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) number: u64,
    pub(super) commands: Vec<String>,
    pub(super) findings: Vec<Finding>,
    /// Set if the commands ran to their end, whatever that was.
    pub(super) has_run: bool,
    /// Process that was killed meanwhile.
    pub(super) killed: Option<Victim>,
}

/// The place where cases run.
struct Machine {
    processes: Processes,
    listener: TcpListener,
    readable: Arc<Vec<PathBuf>>,
    enforcement: Enforcement,
    before: Option<Snapshot>,
}

/// Runs the cases, and prints the outcome of each.
///
/// # Errors
/// When this is not the fuzzer's own machine, or it is broken.
pub(super) fn serve(options: &Options) -> Result<()> {
    ensure!(
        std::path::Path::new("/mnt/changed").is_dir(),
        "this is no machine of its own: it is started by `cargo xtask fuzz-gate --confined`"
    );
    probe(options.is_partial)?;
    ground::make()?;
    let attempts = super::attempts()?;
    let mut machine = Machine::new(options.is_partial)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for number in options.from..options.from.saturating_add(options.commands) {
            let case = cases::make(options.seed, number, &attempts);
            let outcome = machine.run(number, &case).await?;
            let mut line = serde_json::to_vec(&outcome)?;
            line.push(b'\n');
            let mut out = std::io::stdout().lock();
            out.write_all(&line)?;
            out.flush()?;
        }
        Ok(())
    })
}

impl Machine {
    fn new(is_partial: bool) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", PORT))?;
        listener.set_nonblocking(true)?;
        let path = OsString::from(SEARCH_PATH);
        let mut readable = readable_roots(None, Some(&path));
        readable.extend(READABLE.map(PathBuf::from));
        Ok(Self {
            processes: Processes::new()?,
            listener,
            readable: Arc::new(readable),
            enforcement: match is_partial {
                true => Enforcement::Partial,
                false => Enforcement::Full,
            },
            before: None,
        })
    }

    async fn run(&mut self, number: u64, case: &Case) -> Result<Outcome> {
        let files = match self.before.take() {
            Some(files) => files,
            None => {
                ground::restore()?;
                look_everywhere()?
            }
        };
        let files = match case.setup.is_empty() {
            true => files,
            false => {
                prepare(&case.setup)?;
                look_everywhere()?
            }
        };
        let roots: &[&str] = match case.is_wide {
            true => &[PROJECT, GROUND],
            false => &[PROJECT],
        };
        let before = Before::new(files, roots);
        let commands: Vec<String> = case
            .commands
            .iter()
            .map(|it| self.with_processes(it))
            .collect();
        let specs = commands.iter().enumerate();
        let specs: Vec<CallSpec> = specs
            .map(|(nth, command)| self.spec(&format!("c{number}-{nth}"), case, roots, command))
            .collect();
        let ended = run_at_once(&specs, case.killing).await?;
        let mut findings = self.processes.judge()?;
        let mut statuses = Vec::new();
        let (mut has_run, mut is_reported) = (true, true);
        for end in ended {
            match end {
                End::Reported(status) => statuses.push(*status),
                End::Unreported => is_reported = false,
                // It has no effect.
                End::Refused => has_run = false,
                End::Lost(detail) => findings.push(Finding::new(Fault::SupervisorLost, detail)),
            }
        }
        if self.listener.accept().is_ok() {
            findings.push(Finding::new(Fault::NetworkReached, ""));
        }
        let after = After {
            files: look_everywhere()?,
            statuses,
            is_reported,
            review: differences_of_the_next_start(roots),
        };
        findings.extend(judge(case, &before, &after));
        let is_same = differences(&before.files, &after.files).is_empty();
        self.before = (is_same && case.setup.is_empty()).then_some(before.files);
        forget(&specs);
        Ok(Outcome {
            number,
            commands: case.commands.clone(),
            findings,
            has_run,
            killed: case.killing.map(|it| it.victim),
        })
    }

    /// Fills in the numbers of processes.
    fn with_processes(&self, command: &str) -> String {
        if !command.contains('@') {
            return command.to_owned();
        }
        let own = std::process::id();
        let keeper = self.processes.keeper().unwrap_or(own);
        command
            .replace("@BYSTANDER@", &self.processes.bystander().to_string())
            .replace("@AGENT@", &own.to_string())
            .replace("@KEEPER@", &keeper.to_string())
            // The next processes, of which the command's supervisor is one.
            .replace("@INIT@", "$(($$ - 1))")
    }

    fn spec(&self, key: &str, case: &Case, roots: &[&str], command: &str) -> CallSpec {
        let sandbox = SandboxSpec {
            enforcement: self.enforcement,
            readable: Arc::clone(&self.readable),
            home: Some(PathBuf::from(HOME)),
            ledger: Some(PathBuf::from(LEDGER)),
            ..SandboxSpec::new(case.mode, roots.iter().map(PathBuf::from))
        };
        CallSpec {
            key: key.to_owned(),
            state_dir: PathBuf::from(STATE),
            command: command.to_owned(),
            argv: None,
            directory: PathBuf::from(PROJECT),
            timeout_ms: u64::try_from(case.time.as_millis()).unwrap_or(u64::MAX),
            outlive_ms: 0,
            output_bytes_max: OUTPUT_BYTES_MAX,
            spill_bytes_max: 1 << 20,
            pty: PtySize::default(),
            is_kept: true,
            memory_bytes_max: Some(MEMORY_BYTES_MAX),
            sandbox: Some(sandbox),
            secrets: Secrets::default(),
        }
    }
}

/// How a command ended.
pub(super) enum End {
    Reported(Box<CallStatus>),
    /// No process was left to report.
    Unreported,
    /// It was not started.
    Refused,
    /// Its supervisor did not say how it ended, for this reason.
    Lost(String),
}

/// Runs one command, or two at once.
async fn run_at_once(specs: &[CallSpec], killing: Option<Killing>) -> Result<Vec<End>> {
    Ok(match specs {
        [one, other] => {
            let (one, other) = tokio::join!(run(one, killing), run(other, None));
            vec![one?, other?]
        }
        [one] => vec![run(one, killing).await?],
        _ => Vec::new(),
    })
}

/// Removes what is kept of commands.
fn forget(specs: &[CallSpec]) {
    for spec in specs {
        for ending in ["json", "out"] {
            let _ = std::fs::remove_file(spec.state_dir.join(format!("{}.{ending}", spec.key)));
        }
    }
    let _ = std::fs::remove_dir_all(LEDGER);
}

/// Runs a command under its supervisor.
async fn run(spec: &CallSpec, killing: Option<Killing>) -> Result<End> {
    let variables = [
        ("PATH", SEARCH_PATH),
        ("HOME", HOME),
        ("LANG", "C.UTF-8"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("PAGER", "cat"),
    ];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    if let Some(killing) = killing {
        let spec = spec.clone();
        let run = move || killed::run(&spec, &variables, killing);
        return tokio::task::spawn_blocking(run).await?;
    }
    Ok(match run_to_the_end(spec, &variables).await {
        Ok(status) => End::Reported(Box::new(status)),
        Err(StartError::Refused(_)) => End::Refused,
        Err(error) => End::Lost(format!("{:#}", anyhow::Error::new(error))),
    })
}

async fn run_to_the_end(
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
) -> Result<CallStatus, StartError> {
    let never = std::future::pending();
    let mut running =
        SupervisedCommand::run(&SupervisorCommand::CurrentExe, variables, spec, never).await?;
    loop {
        if let CommandEvent::Status(status) = running.next().await? {
            return Ok(*status);
        }
    }
}

/// Returns the differences that the next start of Rondo in these directories reports, by the code that it asks.
fn differences_of_the_next_start(roots: &[&str]) -> Vec<PathBuf> {
    let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    let differences = Ledger::at(PathBuf::from(LEDGER)).differences(&roots);
    differences.into_iter().map(|it| it.path).collect()
}

fn look_everywhere() -> Result<Snapshot> {
    let mut places = ELSEWHERE.to_vec();
    places.push(WORLD);
    look(&places)
}

/// Does what stands before an attempt.
fn prepare(setup: &str) -> Result<()> {
    let status = Command::new("bash")
        .args(["-ec", setup])
        .current_dir(PROJECT)
        .env("HOME", HOME)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.context("failed to start `bash`")?;
    Ok(())
}

/// Returns whether a command is confined here at all.
///
/// # Errors
/// Why not.
pub(super) fn probe(is_partial: bool) -> Result<()> {
    let enforcement = match is_partial {
        true => Enforcement::Partial,
        false => Enforcement::Full,
    };
    rondo_sandbox::probe(enforcement).context("commands cannot be confined here")
}
