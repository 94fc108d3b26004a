//! Judges and runs commands, within the walls of the sandbox.

use super::protocol::{Reply, Request};
use super::world::{self, CANARY, Snapshot, World};
use anyhow::{Context, Result, bail};
use rondo_policy::{AllowedDirs, CommandEnvironment, Judgement, analysis};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, WaitOptions, setrlimit, wait};
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Root of the walled world.
const ROOT: &str = "/world";
/// The port that a command may find out about by its number in the grammar.
pub(super) const PORT: u16 = 7777;
/// How long a command may take.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How long what a command started may outlive it: the members of a pipeline that bash did not wait for.
const GRACE: Duration = Duration::from_millis(250);
/// How often a process is looked at.
const PAUSE: Duration = Duration::from_micros(500);
/// Bytes of a command's output that are inspected.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// The user that everything in the sandbox runs as if we came in as root.
const NOBODY: u32 = 65534;

/// Bounds of every process in the sandbox.
const LIMITS: [(Resource, u64); 5] = [
    (Resource::As, 2 << 30),
    (Resource::Core, 0),
    (Resource::Fsize, 4 << 20),
    (Resource::Nofile, 256),
    (Resource::Nproc, 256),
];

/// Answers requests until there are no more.
///
/// # Errors
/// When this is not the first process of a sandbox, or the sandbox is broken.
pub(super) fn serve() -> Result<()> {
    refuse_without_walls()?;
    for (resource, most) in LIMITS {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).context("failed to set a limit")?;
    }
    let mut runner = Runner::new()?;
    let mut line = String::new();
    say(&Reply::Ready)?;
    let mut requests = io::stdin().lock();
    while requests.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        say(&runner.answer(&request)?)?;
        line.clear();
    }
    Ok(())
}

/// Ending all processes but this one is meant for a process namespace of our own.
fn refuse_without_walls() -> Result<()> {
    let is_first = std::process::id() == 1;
    let is_nobody =
        rustix::process::geteuid().as_raw() == NOBODY || !rustix::process::geteuid().is_root();
    let is_mapped = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| !map.trim().starts_with("0          0 "));
    let is_apart = is_first && (is_nobody || is_mapped);
    if !is_apart || File::create("/usr/rondo-fuzz-gate").is_ok() {
        bail!("this is no sandbox: the runner is started by `cargo xtask fuzz-gate`");
    }
    Ok(())
}

fn say(reply: &Reply) -> Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()?;
    Ok(())
}

struct Runner {
    world: World,
    before: Snapshot,
    dirs: AllowedDirs,
    listener: TcpListener,
    datagrams: UdpSocket,
}

impl Runner {
    fn new() -> Result<Self> {
        let world = World::new(ROOT.into(), vec!["/tmp".into()]);
        world.make()?;
        let listener = TcpListener::bind(("127.0.0.1", PORT))?;
        listener.set_nonblocking(true)?;
        let datagrams = UdpSocket::bind(("127.0.0.1", PORT))?;
        datagrams.set_nonblocking(true)?;
        Ok(Self {
            before: world.snapshot()?,
            dirs: AllowedDirs::new(&world.project(), &[])?,
            world,
            listener,
            datagrams,
        })
    }

    fn answer(&mut self, request: &Request) -> Result<Reply> {
        let command = request.command.as_str();
        match &request.ungated_after {
            Some(setup) => self.prepare(setup)?,
            None if analysis::judge(command, &self.dirs) != Judgement::ReadOnly => {
                return Ok(Reply::Asked);
            }
            None => {}
        }
        let (is_slow, shown) = self.run(command)?;
        let mut effects = Vec::new();
        if is_left() {
            effects.push("left a process".to_owned());
        }
        end_all()?;
        if shown.contains(CANARY) {
            effects.push("showed a file outside of the project".to_owned());
        }
        if self.listener.accept().is_ok() || self.datagrams.recv(&mut [0]).is_ok() {
            effects.push("used the network".to_owned());
        }
        let after = self.world.snapshot()?;
        effects.extend(world::differences(&self.before, &after));
        if !effects.is_empty() || request.ungated_after.is_some() {
            self.world.make()?;
            self.before = self.world.snapshot()?;
        }
        Ok(Reply::Ran { effects, is_slow })
    }

    /// Runs what stands before an attempt, whose changes do not count as its effects.
    fn prepare(&mut self, setup: &str) -> Result<()> {
        if !setup.is_empty() {
            self.run(setup)?;
            self.before = self.world.snapshot()?;
        }
        Ok(())
    }

    /// Runs a command; returns whether it took too long, and what it showed.
    fn run(&self, command: &str) -> Result<(bool, String)> {
        let file = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut output = File::from(file);
        let mut bash = Command::new("/bin/bash");
        bash.args(["-c", command])
            .current_dir(self.world.project())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.world.home())
            .env("LANG", "C.UTF-8")
            .env("WORLD_SECRET", CANARY)
            .envs(CommandEnvironment::default().set)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let mut child = bash.spawn().context("failed to start bash")?;
        let begun = Instant::now();
        let is_slow = loop {
            if child.try_wait()?.is_some() {
                break false;
            }
            if begun.elapsed() > TIME_MAX {
                kill_all()?;
                child.wait()?;
                break true;
            }
            sleep(PAUSE);
        };
        let mut shown = Vec::new();
        io::Seek::rewind(&mut output)?;
        output.take(OUTPUT_BYTES_MAX).read_to_end(&mut shown)?;
        Ok((is_slow, String::from_utf8_lossy(&shown).into_owned()))
    }
}

/// Returns whether processes continue after a grace: all that lose their parent become our children.
fn is_left() -> bool {
    let begun = Instant::now();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Err(Errno::CHILD) => return false,
            _ if begun.elapsed() > GRACE => return true,
            _ => sleep(PAUSE),
        }
    }
}

/// Ends every process that a command left.
fn end_all() -> Result<()> {
    if !has_children() {
        return Ok(());
    }
    kill_all()?;
    while has_children() {
        sleep(PAUSE);
    }
    Ok(())
}

/// Ends every process of the sandbox but this one, which is its first.
fn kill_all() -> Result<()> {
    if std::process::id() != 1 {
        bail!("this is no sandbox");
    }
    let kill = Command::new("/bin/bash")
        .args(["-c", "kill -KILL -1"])
        .status();
    kill.context("failed to end processes")?;
    Ok(())
}

fn has_children() -> bool {
    !matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}
