//! Processes: that none of a command is left, and that those of others are as they were.

use super::judge::{Fault, Finding};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long the kernel may take to end what was killed.
const GRACE: Duration = Duration::from_millis(300);
/// How long it may take for processes that have let go of their memory already and run nothing any more: a storm has
/// thousands, and a loaded machine collects them slowly.
const GRACE_OF_DYING: Duration = Duration::from_secs(60);
/// How long what stands between a killed supervisor and its command may take to end both.
const GRACE_OF_ORPHANS: Duration = Duration::from_secs(10);
/// The first process: it collects those that lose their parent.
const FIRST: u32 = 1;
/// Compared lines of `/proc/PID/status`.
const STATUS: [&str; 2] = ["Cpus_allowed:", "NoNewPrivs:"];
/// Compared fields of `/proc/PID/stat` behind the program's name, by number: priority, niceness and policy.
const STAT: [usize; 4] = [15, 16, 37, 38];
/// The states of a process that is not stopped, and not dead.
const GOES_ON: [&str; 3] = ["S", "R", "D"];
/// The states of a process that has ended.
const DEAD: [&str; 2] = ["Z", "X"];

/// A process that no command started, and the fuzzer's own.
pub(super) struct Processes {
    bystander: Child,
    program: String,
    /// Previous state of the bystander and the fuzzer.
    was: [Vec<String>; 2],
}

impl Processes {
    /// Starts the bystander.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn new() -> Result<Self> {
        let bystander = bystander()?;
        let was = [bystander.id(), std::process::id()].map(about);
        let program = std::env::current_exe()?;
        Ok(Self {
            bystander,
            program: program.display().to_string(),
            was,
        })
    }

    pub(super) fn bystander(&self) -> u32 {
        self.bystander.id()
    }

    /// Returns the process that forks a supervisor for each command, if it runs.
    pub(super) fn keeper(&self) -> Option<u32> {
        let own = std::process::id();
        let is_keeper =
            |pid: &u32| *pid != own && self.is_program(*pid) && parent(*pid) == Some(own);
        all().into_iter().find(is_keeper)
    }

    /// Reports processes that outlive a command or were changed by it, and ends those that are left.
    ///
    /// # Errors
    /// When a bystander must be started again and cannot be.
    pub(super) fn judge(&mut self) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        let begun = Instant::now();
        let mut left = self.left();
        while !left.is_empty() && begun.elapsed() < grace_of(&left)
            || self.is_any_orphaned() && begun.elapsed() < GRACE_OF_ORPHANS
        {
            yield_now();
            left = self.left();
        }
        for pid in left {
            let line = command_line(pid);
            found.push(Finding::new(Fault::ProcessLeft, format!("{pid}: {line}")));
            end(pid);
        }
        let now = about(self.bystander.id());
        if now != self.was[0] {
            let detail = format!("a bystander: {}", difference(&self.was[0], &now));
            found.push(Finding::new(Fault::ProcessReached, detail));
            let _ = self.bystander.kill();
            let _ = self.bystander.wait();
            self.bystander = bystander()?;
            self.was[0] = about(self.bystander.id());
        }
        let now = about(std::process::id());
        if now != self.was[1] {
            let detail = format!("the agent: {}", difference(&self.was[1], &now));
            found.push(Finding::new(Fault::ProcessReached, detail));
        }
        let own = std::process::id();
        let supervisors = all()
            .into_iter()
            .filter(|it| *it != own && self.is_program(*it));
        for pid in supervisors {
            if state(pid).as_deref() == Some("T") {
                found.push(Finding::new(
                    Fault::ProcessReached,
                    "a supervisor is stopped",
                ));
                end(pid);
            }
        }
        Ok(found)
    }

    /// Returns whether a process of this program has lost its parent: its supervisor was killed, and its command can continue
    /// until it ends.
    fn is_any_orphaned(&self) -> bool {
        let is_orphaned = |pid: &u32| {
            *pid != std::process::id()
                && parent(*pid) == Some(FIRST)
                && self.is_program(*pid)
                && is_alive(*pid)
        };
        all().iter().any(is_orphaned)
    }

    /// Returns processes that are neither the fuzzer's nor a supervisor's.
    fn left(&self) -> Vec<u32> {
        let known = [FIRST, std::process::id(), self.bystander.id()];
        let strange = all().into_iter().filter(|pid| {
            let is_ours = known.contains(pid) || self.is_program(*pid);
            !is_ours && is_alive(*pid)
        });
        strange.collect()
    }

    /// Returns whether a process is this program: a supervisor, or a guard.
    fn is_program(&self, pid: u32) -> bool {
        let line = command_line(pid);
        line.starts_with(&self.program) || line.starts_with("/proc/self/exe")
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

fn grace_of(left: &[u32]) -> Duration {
    let is_dying = |pid: &u32| command_line(*pid).is_empty();
    match left.iter().all(is_dying) {
        true => GRACE_OF_DYING,
        false => GRACE,
    }
}

fn bystander() -> Result<Child> {
    let mut sleep = Command::new("sleep");
    sleep
        .arg("1000000")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let child = sleep.spawn().context("failed to start `sleep`")?;
    // Until it has executed it, it is this program.
    while !command_line(child.id()).starts_with("sleep")
        || state(child.id()).as_deref() != Some("S")
    {
        yield_now();
    }
    Ok(child)
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().to_str().map(str::to_owned));
    names.filter_map(|it| it.parse().ok()).collect()
}

fn read(pid: u32, name: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn command_line(pid: u32) -> String {
    read(pid, "cmdline").replace('\0', " ")
}

/// Returns the fields behind the program's name in `/proc/PID/stat`, from the state on.
fn stat(pid: u32) -> Vec<String> {
    let text = read(pid, "stat");
    let rest = text.rsplit_once(')').map_or("", |it| it.1);
    rest.split_ascii_whitespace().map(str::to_owned).collect()
}

fn state(pid: u32) -> Option<String> {
    stat(pid).into_iter().next()
}

/// Returns whether a process is there and has not ended.
pub(super) fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|it| !DEAD.contains(&it.as_str()))
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid).get(1)?.parse().ok()
}

/// Returns the properties of a process that others could have changed.
fn about(pid: u32) -> Vec<String> {
    let fields = stat(pid);
    let goes_on = fields
        .first()
        .is_some_and(|it| GOES_ON.contains(&it.as_str()));
    let mut about = vec![format!("goes on: {goes_on}")];
    about.extend(read(pid, "limits").lines().map(str::to_owned));
    let status = read(pid, "status");
    let kept = status
        .lines()
        .filter(|line| STATUS.iter().any(|it| line.starts_with(it)));
    about.extend(kept.map(str::to_owned));
    about.push(format!("badness: {}", read(pid, "oom_score_adj").trim()));
    about.extend(
        STAT.iter()
            .map(|at| format!("field {at}: {:?}", fields.get(*at))),
    );
    about
}

fn difference(was: &[String], now: &[String]) -> String {
    let new = now.iter().filter(|it| !was.contains(it));
    new.map(String::as_str).collect::<Vec<_>>().join("; ")
}

/// Kills a process.
pub(super) fn end(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_and_the_end_of_a_process_are_seen() {
        let mut child = bystander().unwrap();
        let was = about(child.id());
        assert_eq!(about(child.id()), was);
        let limits = Command::new("prlimit")
            .arg(format!("--pid={}", child.id()))
            .arg("--core=0:0")
            .status();
        assert!(limits.unwrap().success());
        let limited = about(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(was != limited && about(child.id()) != limited);
    }
}
