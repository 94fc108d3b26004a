//! Whom to kill.

use crate::random::Random;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::process::{Command, Stdio};

/// In the environment of every process of a case; the value of this one stays where other processes see it.
pub(crate) const MARK: &str = "RUNNER_TRACKING_ID";
/// In the command line of supervisors and their guards.
const SUPERVISE: &str = "__rondo-supervise";

/// At the end of the command line of keepers and their forks.
const KEEPER: &str = "__rondo-supervise keeper";
/// Name of a keeper that was killed.
pub(crate) const KEEPERS: &str = "keeper";

/// System calls to be killed at: what a turn, a journal and a supervisor live by.
const CALLS: [&str; 24] = [
    "write",
    "pwrite64",
    "read",
    "openat",
    "close",
    "fsync",
    "fdatasync",
    "rename",
    "unlink",
    "mkdir",
    "clone",
    "clone3",
    "vfork",
    "execve",
    "wait4",
    "poll",
    "ppoll",
    "epoll_wait",
    "ioctl",
    "setsid",
    "sendto",
    "recvfrom",
    "kill",
    "pipe2",
];
/// The n-th such call is killed at, and n is below this.
const NTH_MAX: u64 = 40;

/// A process of a case.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    parent: u32,
    command: String,
}

/// Lists the processes of a case but for the agent, whose environment may be hidden.
pub(crate) fn processes(mark: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| process(pid, mark)).collect()
}

fn process(pid: u32, mark: &str) -> Option<Process> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let wanted = format!("{MARK}={mark}");
    let mut variables = environment.split(|byte| *byte == 0);
    let is_of_case = variables.any(|it| it == wanted.as_bytes());
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let is_alive = fields.next()? != "Z";
    let parent = fields.next()?.parse().ok()?;
    (is_of_case && is_alive).then_some(Process {
        pid: Pid::from_raw(i32::try_from(pid).ok()?)?,
        parent,
        command,
    })
}

/// Returns whether a process is there and has not ended.
pub(crate) fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
    let stat = stat.unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
    fields.is_some_and(|it| !it.starts_with('Z'))
}

impl Process {
    /// Its forks have the same command line.
    fn is_keeper(&self) -> bool {
        self.command.trim_end().ends_with(KEEPER)
    }

    fn is_supervisor(&self) -> bool {
        self.command.contains(SUPERVISE)
    }

    pub(crate) fn told(&self) -> String {
        format!("{} `{}`", self.pid.as_raw_pid(), self.command.trim_end())
    }
}

/// Returns whether a tracer has outlived what it started, and no supervisor of the case is left to end what that left.
pub(crate) fn is_left_alone(tracer: Pid, mark: &str) -> bool {
    let tracer = tracer.as_raw_pid();
    let children = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|it| it.parse().ok());
    let has_child = children.filter_map(Pid::from_raw).any(is_running);
    !has_child && !processes(mark).iter().any(Process::is_supervisor)
}

/// Returns the supervisors whose parent is none.
pub(crate) fn without_guard(processes: &[Process]) -> impl Iterator<Item = &Process> {
    let is_guard = |pid: u32| {
        let mut all = processes.iter();
        all.any(|it| it.is_supervisor() && it.pid.as_raw_pid().unsigned_abs() == pid)
    };
    let supervisors = processes.iter().filter(|it| it.is_supervisor());
    supervisors.filter(move |it| !is_guard(it.parent))
}

/// Kills, or stops, something of a case. Returns what, if it was there.
pub(crate) fn strike(random: &mut Random, agent: Pid, mark: &str) -> Option<String> {
    let others: Vec<Process> = processes(mark)
        .into_iter()
        .filter(|it| it.pid != agent)
        .collect();
    let (supervisors, children): (Vec<_>, Vec<_>) =
        others.into_iter().partition(Process::is_supervisor);
    // What the agent itself has started; nothing else of it is a parent of guards.
    let is_agents = |it: &Process| it.parent == agent.as_raw_pid().unsigned_abs();
    let (keepers, supervisors): (Vec<_>, Vec<_>) = supervisors
        .into_iter()
        .partition(|it| is_agents(it) && it.is_keeper());
    let is_parent = |it: &&Process| {
        let pid = it.pid.as_raw_pid().unsigned_abs();
        supervisors.iter().any(|other| other.parent == pid)
    };
    let (guards, working): (Vec<_>, Vec<_>) = supervisors.iter().partition(is_parent);
    let one = |random: &mut Random, from: &[&Process]| -> Vec<Pid> {
        random.pick(from).map(|it| it.pid).into_iter().collect()
    };
    let everyone: Vec<&Process> = children.iter().collect();
    let (what, pids) = match random.below(24) {
        0..7 => ("agent", vec![agent]),
        7..10 => ("supervisor", one(random, &working)),
        10 => ("guard", one(random, &guards)),
        11..13 => ("child", one(random, &everyone)),
        13 => {
            let leader = random.pick(&everyone)?.pid;
            let _ = kill_process_group(leader, Signal::KILL);
            ("group", vec![leader])
        }
        14 => (
            "supervisors and guards",
            supervisors.iter().map(|it| it.pid).collect(),
        ),
        15 => {
            let working = working.iter().map(|it| it.pid);
            ("agent and supervisors", working.chain([agent]).collect())
        }
        16 => {
            let guards = guards.iter().map(|it| it.pid);
            ("agent and guards", guards.chain([agent]).collect())
        }
        17 => ("children", children.iter().map(|it| it.pid).collect()),
        18 => {
            let stopped = random.pick(&working)?.pid;
            let _ = kill_process(stopped, Signal::STOP);
            return Some("supervisor, stopped".to_owned());
        }
        19..22 => (KEEPERS, keepers.iter().map(|it| it.pid).collect()),
        22 => {
            let all = keepers.iter().chain(&supervisors).map(|it| it.pid);
            ("keeper, supervisors and guards", all.collect())
        }
        _ => {
            let all = supervisors.iter().chain(&children).chain(&keepers);
            let all = all.map(|it| it.pid);
            ("everything", all.chain([agent]).collect())
        }
    };
    let hit = pids
        .iter()
        .filter(|pid| kill_process(**pid, Signal::KILL).is_ok());
    (hit.count() > 0).then(|| what.to_owned())
}

/// Returns whether processes can be traced here.
pub(crate) fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=close", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    traced.is_ok_and(|status| status.success())
}

/// Returns the arguments with which `strace` kills at a system call, and what they say.
pub(crate) fn trace(random: &mut Random) -> (Vec<String>, String) {
    let call = random.pick(&CALLS).copied().unwrap_or("write");
    let nth = 1 + random.below(NTH_MAX);
    let args = [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "--seccomp-bpf",
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:signal=KILL:when={nth}"),
    ];
    let args = args.iter().map(|it| (*it).to_owned()).collect();
    (args, format!("{call} number {nth}"))
}
