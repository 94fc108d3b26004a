//! Test of Rondo's own sandbox: commands of many kinds, and all attempts to pass the gate, run in it as the product
//! runs them, none of them judged, and after each everything is inspected that it could have changed.
//!
//! All of it is within a machine of the fuzzer's own, made of namespaces: a command that leaves the sandbox changes
//! nothing of the real one, and each change of the root file system lands where it is seen.

mod cases;
mod ground;
mod judge;
mod killed;
mod known;
mod look;
mod machine;
mod processes;
mod repositories;
mod templates;

use super::bypasses::{self, Class};
use anyhow::{Context, Result, bail, ensure};
use cases::Victim;
use judge::{Fault, Finding};
use known::Circumstances;
use machine::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const NET: &str = include_str!("confined/net.sh");
/// The user of `--as-user`: a number that no user has.
const USER: u32 = 64_321;
/// Cases of [`run_short`].
const SHORT: u64 = 96;
/// The seed of [`run_short`].
const SHORT_SEED: u64 = 42;
/// How often the machine is started again after a command ended it, at the most.
const RESTARTS_MAX: u64 = 100;
/// The bound on the processes of a machine: a storm of forks should be seen, and not stop everything else.
const PROCESSES_MAX: u32 = 2_000;
/// Mount points of cgroups of processes: of version 1, and of version 2.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
/// The longest that is printed of one finding, in characters.
const DETAIL_MAX: usize = 240;

/// Which cases run, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) seed: u64,
    /// The number of the first case.
    pub(super) from: u64,
    pub(super) commands: u64,
    /// Set if they are confined without namespaces.
    pub(super) is_partial: bool,
    /// Set if they run as an ordinary user.
    pub(super) is_as_user: bool,
}

/// Runs the cases within this machine, which the fuzzer made.
///
/// # Errors
/// When it is not the fuzzer's own.
pub(super) fn serve(options: &Options) -> Result<()> {
    machine::serve(options)
}

/// Runs the cases; true when each finding is known.
///
/// # Errors
/// When this system has no sandbox, or no machine of its own can be made.
pub(super) fn run(options: &Options) -> Result<bool> {
    try_machine(options)?;
    let summary = run_all(options, true)?;
    summary.print(options);
    Ok(summary.is_clean())
}

/// Runs a few cases; true when each finding is known. If no machine can be made, it says so and is true.
///
/// # Errors
/// When the corpus cannot be read.
pub(super) fn run_short() -> Result<bool> {
    let options = Options {
        seed: SHORT_SEED,
        from: 0,
        commands: SHORT,
        is_partial: false,
        is_as_user: false,
    };
    if let Err(error) = machine::probe(false).and_then(|()| try_machine(&options)) {
        println!("fuzz-gate --confined: not run: {error:#}");
        return Ok(true);
    }
    let summary = run_all(&options, false)?;
    summary.print(&options);
    Ok(summary.is_clean())
}

/// Summary of a run.
#[derive(Default)]
struct Summary {
    cases: u64,
    not_started: u64,
    time: Duration,
    is_partial: bool,
    /// By its kind, and whether it is known: how many there are, and the shortest command that came to it.
    kinds: BTreeMap<(Fault, bool), (u64, Example)>,
}

/// A command that came to a finding.
#[derive(Clone)]
struct Example {
    number: u64,
    commands: Vec<String>,
    detail: String,
}

impl Example {
    fn length(&self) -> usize {
        self.commands.iter().map(String::len).sum()
    }
}

impl Summary {
    /// Counts the outcome of a case, and reports it.
    fn take(&mut self, outcome: &Outcome, is_said: bool) {
        self.cases += 1;
        self.not_started += u64::from(!outcome.has_run);
        let faults = outcome.findings.iter().map(|it| it.fault);
        let circumstances = Circumstances {
            is_partial: self.is_partial,
            is_lost: faults.clone().any(|it| it == Fault::SupervisorLost),
            is_unwatched: outcome.killed == Some(Victim::Both),
        };
        for finding in &outcome.findings {
            let is_known = known::is_known(finding.fault, circumstances);
            let Finding { fault, detail } = finding;
            let mut detail: String = detail.chars().take(DETAIL_MAX).collect();
            if let Some(victim) = outcome.killed {
                let _ = write!(detail, " (killed meanwhile: {})", victim.name());
            }
            if is_said {
                println!("number {}: {fault:?}: {detail}", outcome.number);
            }
            let example = Example {
                number: outcome.number,
                commands: outcome.commands.clone(),
                detail,
            };
            let (count, shortest) = self
                .kinds
                .entry((*fault, is_known))
                .or_insert_with(|| (0, example.clone()));
            *count += 1;
            if example.length() < shortest.length() {
                *shortest = example;
            }
        }
    }

    fn is_clean(&self) -> bool {
        self.kinds.keys().all(|(_, is_known)| *is_known)
    }

    fn print(&self, options: &Options) {
        for ((fault, is_known), (count, example)) in &self.kinds {
            let known = if *is_known {
                ", which docs/sandbox.md names"
            } else {
                ""
            };
            println!("\n{fault:?}: {count}{known}");
            let (seed, number) = (options.seed, example.number);
            println!(
                "    the shortest: --seed {seed} --from {number} --commands 1: {}",
                example.detail
            );
            for command in &example.commands {
                println!("    {command:?}");
            }
        }
        let seconds = self.time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "it is a rate to read")]
        let rate = self.cases as f64 / seconds.max(0.001);
        println!(
            "\nfuzz-gate --confined: seed {}, {} commands from {} in {seconds:.1} s ({rate:.1} a second), {} not started, {} kinds of findings",
            options.seed,
            self.cases,
            options.from,
            self.not_started,
            self.kinds.len()
        );
    }
}

/// Makes a machine in which nothing runs.
fn try_machine(options: &Options) -> Result<()> {
    let nothing = Options {
        commands: 0,
        ..*options
    };
    let status = run_machine(&nothing, |_| ())?;
    ensure!(
        status.success(),
        "no machine of the fuzzer's own can be made here: {status}"
    );
    Ok(())
}

/// Runs all cases, in as many machines as it takes.
fn run_all(options: &Options, is_said: bool) -> Result<Summary> {
    let mut summary = Summary {
        is_partial: options.is_partial,
        ..Summary::default()
    };
    let begun = Instant::now();
    let end = options.from.saturating_add(options.commands);
    let mut rest = *options;
    for _ in 0..RESTARTS_MAX {
        let mut next = rest.from;
        let status = run_machine(&rest, |outcome| {
            next = outcome.number + 1;
            summary.take(outcome, is_said);
        })?;
        summary.time = begun.elapsed();
        if next >= end {
            return Ok(summary);
        }
        summary.take(&ended_by(options.seed, next, status)?, is_said);
        rest.from = next + 1;
        rest.commands = end - rest.from;
        if rest.commands == 0 {
            return Ok(summary);
        }
    }
    bail!("the machine was ended more than {RESTARTS_MAX} times")
}

/// Returns the outcome of a case that ended the machine.
fn ended_by(seed: u64, number: u64, status: ExitStatus) -> Result<Outcome> {
    let case = cases::make(seed, number, &attempts()?);
    Ok(Outcome {
        number,
        commands: case.commands,
        findings: vec![Finding::new(Fault::FuzzerEnded, status.to_string())],
        has_run: true,
        killed: case.killing.map(|it| it.victim),
    })
}

/// Returns the attempts to pass the gate, with what the fuzzer of the gate starts from.
fn attempts() -> Result<Vec<Class>> {
    let mut attempts = bypasses::corpus()?;
    attempts.push(Class::unprepared(
        "seeds of the fuzzer",
        super::beginnings()?,
    ));
    Ok(attempts)
}

/// Makes a machine, and runs cases in it until they are done or it ends.
fn run_machine(options: &Options, mut take: impl FnMut(&Outcome)) -> Result<ExitStatus> {
    // In a namespace of users, the kernel refuses an overlay over a root that has other mounts in it.
    ensure!(
        rustix::process::geteuid().is_root(),
        "root starts it, for ordinary users with `--as-user`"
    );
    let user = if options.is_as_user { USER } else { 0 };
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--mount",
        "--pid",
        "--net",
        "--ipc",
        "--fork",
        "--kill-child=KILL",
    ]);
    unshare
        .args(["bash", "-c", NET, "net"])
        .arg(user.to_string())
        .args(["--confined", "--within"])
        .arg(format!("--seed={}", options.seed))
        .arg(format!("--from={}", options.from))
        .arg(format!("--commands={}", options.commands));
    if options.is_partial {
        unshare.arg("--partial");
    }
    let groups = CGROUPS.map(|it| format!("{it}/rondo-fuzz-gate-{}", std::process::id()));
    unshare
        .env("GROUPS_OF_PROCESSES", groups.join(" "))
        .env("PROCESSES_MAX", PROCESSES_MAX.to_string());
    // `cargo` builds this program again while it runs: its path may name another one.
    unshare
        .stdin(File::open("/proc/self/exe")?)
        .stdout(Stdio::piped());
    let mut child = unshare.spawn().context("failed to start `unshare`")?;
    let output = child.stdout.take().context("the machine has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        match serde_json::from_str::<Outcome>(&line) {
            Ok(outcome) => take(&outcome),
            Err(_) => println!("{line}"),
        }
    }
    let status = child.wait()?;
    // Those that were not made are not there.
    let _ = groups.map(std::fs::remove_dir);
    Ok(status)
}
