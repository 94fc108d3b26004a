//! Cost of running a command under a supervisor, next to running it bare, one after the other.
//!
//! Prints lines of a name and figures, separated by tabs: of `bare` and `call` the nanoseconds of the median and of the
//! fastest, and of the processor for each, all processes together, if the system counts that; with `, later` those of
//! commands that do not follow at once, also of one that only looks and of one that writes; of `running` the bytes of
//! memory that a call's supervisor and guard have to themselves while it runs. `cargo xtask bench --call` makes a table
//! of it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks on the terminal and fails like a test does"
)]

use rondo_core::redact::Secrets;
use rondo_exec::SupervisorCommand;
use rondo_exec::supervisor::{CallSpec, CallStatus, CommandEvent, PtySize, SupervisedCommand};
use rondo_launch::unix::{open_pair, own_session, stat_fields};
use rondo_sandbox::{NetworkAccess, SandboxMode, SandboxSpec, readable_roots};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Commands of each kind.
const ROUNDS: usize = 300;
/// The first ones are not counted.
const WARM_UP: usize = 10;
/// Commands of each kind between which time passes.
const LATER_ROUNDS: usize = 100;
/// Least pause between two calls of a turn.
const PAUSE: Duration = Duration::from_millis(10);
/// A file system in memory.
const MEMORY: &str = "/dev/shm";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let place = match Path::new(MEMORY).is_dir() {
        true => tempfile::tempdir_in(MEMORY).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let mut calls = Calls::in_directory(place.path());
    let (mut bare, mut called) = (Figures::default(), Figures::default());
    for round in 0..ROUNDS + WARM_UP {
        let counts = round >= WARM_UP;
        bare.take(counts, || async { run_bare() }).await;
        called.take(counts, || calls.run("true")).await;
    }
    println!("bare\t{}", bare.told());
    println!("call\t{}", called.told());
    let project = tempfile::tempdir_in(place.path()).unwrap();
    let confined = |mode| Some(sandbox_of(mode, project.path()));
    let mut later = [
        ("call, later", None),
        ("looking, later", confined(SandboxMode::ReadOnly)),
        ("writing, later", confined(SandboxMode::WorkspaceWrite)),
    ]
    .map(|(name, sandbox)| (name, sandbox, Figures::default()));
    let mut bare = Figures::default();
    for round in 0..LATER_ROUNDS + WARM_UP {
        let counts = round >= WARM_UP;
        tokio::time::sleep(PAUSE).await;
        bare.take(counts, || async { run_bare() }).await;
        for (_, sandbox, figures) in &mut later {
            calls.spec.sandbox.clone_from(sandbox);
            // So that a supervisor waits for this kind.
            for _ in 0..2 {
                tokio::time::sleep(PAUSE).await;
                calls.run("true").await;
            }
            tokio::time::sleep(PAUSE).await;
            figures.take(counts, || calls.run("true")).await;
        }
    }
    println!("bare, later\t{}", bare.told());
    for (name, _, figures) in later {
        println!("{name}\t{}", figures.told());
    }
    calls.spec.sandbox = None;
    println!("running\t{}", calls.memory_while_running().await);
}

fn sandbox_of(mode: SandboxMode, directory: &Path) -> SandboxSpec {
    let home = std::env::home_dir();
    let search_path = std::env::var_os("PATH");
    SandboxSpec {
        readable: Arc::new(readable_roots(home.as_deref(), search_path.as_deref())),
        home,
        network: match mode {
            SandboxMode::ReadOnly => NetworkAccess::Nothing,
            SandboxMode::WorkspaceWrite => NetworkAccess::Loopback,
        },
        ..SandboxSpec::new(mode, vec![directory.to_owned()])
    }
}

/// Wall clock and processor of commands of one kind.
#[derive(Default)]
struct Figures {
    times: Vec<Duration>,
    processor: Option<Duration>,
}

impl Figures {
    async fn take<F: Future<Output = ()>>(&mut self, counts: bool, run: impl FnOnce() -> F) {
        let (processor, begun) = (processor(), Instant::now());
        run().await;
        if counts {
            self.times.push(begun.elapsed());
            let used = processor
                .zip(crate::processor())
                .map(|(before, now)| now - before);
            self.processor = used.map(|it| self.processor.unwrap_or_default() + it);
        }
    }

    fn told(mut self) -> String {
        self.times.sort();
        let (median, fastest) = (self.times[self.times.len() / 2], self.times[0]);
        let rounds = u32::try_from(self.times.len()).unwrap();
        let processor = self.processor.map(|it| (it / rounds).as_nanos());
        let processor = processor.map_or("-".to_owned(), |it| it.to_string());
        format!("{}\t{}\t{processor}", median.as_nanos(), fastest.as_nanos())
    }
}

/// Returns the processor time of this process and all that it started, if it could be put into a control
/// group of its own.
fn processor() -> Option<Duration> {
    static GROUP: OnceLock<Option<PathBuf>> = OnceLock::new();
    let group = GROUP.get_or_init(own_group).as_ref()?;
    let nanoseconds = match std::fs::read_to_string(group.join("cpuacct.usage")) {
        Ok(used) => used.trim().parse().ok()?,
        Err(_) => {
            let used = std::fs::read_to_string(group.join("cpu.stat")).ok()?;
            let mut lines = used.lines();
            let microseconds = lines.find_map(|line| line.strip_prefix("usage_usec "))?;
            microseconds.parse::<u64>().ok()? * 1000
        }
    };
    Some(Duration::from_nanos(nanoseconds))
}

fn own_group() -> Option<PathBuf> {
    let own = format!("rondo-bench-{}", std::process::id());
    for root in ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"] {
        let group = Path::new(root).join(&own);
        let entered = std::fs::create_dir(&group).and_then(|()| {
            std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
        });
        if entered.is_ok() {
            return Some(group);
        }
        let _ = std::fs::remove_dir(&group);
    }
    None
}

/// As little as a command on a terminal can cost.
fn run_bare() {
    let pty = open_pair(PtySize::default()).unwrap();
    let end = || pty.slave.try_clone().unwrap();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "true"])
        .stdin(end())
        .stdout(end())
        .stderr(end());
    own_session(&mut command);
    let mut child = command.spawn().unwrap();
    drop((command, pty.slave));
    let (mut master, mut buffer) = (File::from(pty.master), [0; 4096]);
    while matches!(master.read(&mut buffer), Ok(1..)) {}
    child.wait().unwrap();
}

struct Calls {
    spec: CallSpec,
    supervisor: SupervisorCommand,
    variables: Vec<(OsString, OsString)>,
    count: usize,
}

impl Calls {
    fn in_directory(directory: &Path) -> Self {
        let spec = CallSpec {
            key: String::new(),
            state_dir: directory.to_owned(),
            command: String::new(),
            argv: None,
            directory: directory.to_owned(),
            timeout_ms: 60_000,
            outlive_ms: 60_000,
            output_bytes_max: 50_000,
            spill_bytes_max: 64 << 20,
            pty: PtySize::default(),
            is_kept: true,
            memory_bytes_max: None,
            sandbox: None,
            secrets: Secrets::default(),
        };
        Self {
            spec,
            supervisor: SupervisorCommand::Path(PathBuf::from(env!(
                "CARGO_BIN_EXE_rondo-supervisor"
            ))),
            variables: std::env::vars_os().collect(),
            count: 0,
        }
    }

    async fn start(&mut self, command: &str) -> SupervisedCommand {
        self.count += 1;
        self.spec.key = format!("key-{}", self.count);
        self.spec.command = command.to_owned();
        let started = SupervisedCommand::start(&self.supervisor, &self.variables, &self.spec).await;
        let mut started = started.unwrap();
        started.go().unwrap();
        started
    }

    async fn run(&mut self, command: &str) {
        let mut started = self.start(command).await;
        while let CommandEvent::Output(_) = started.next().await.unwrap() {}
    }

    /// Returns the bytes of the supervisor and its guard that no other process shares.
    async fn memory_while_running(&mut self) -> u64 {
        let mut started = self.start("echo up; exec sleep 1000").await;
        let CommandEvent::Output(_) = started.next().await.unwrap() else {
            panic!("the command ended");
        };
        let status = CallStatus::read(&self.spec.state_dir, &self.spec.key).unwrap();
        let supervisor = status.unwrap().pid;
        // Behind the state, which is the first.
        let guard = stat_fields(supervisor).unwrap()[1].parse().unwrap();
        [supervisor, guard].map(private_bytes).iter().sum()
    }
}

fn private_bytes(process: u32) -> u64 {
    let all = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let private = all.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes = private.map(|line| line.split_whitespace().nth(1).unwrap());
    let kilobytes: u64 = kilobytes.map(|it| it.parse::<u64>().unwrap()).sum();
    kilobytes * 1024
}
