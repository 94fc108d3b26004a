//! Finds the process of a command that waits for a user to type.

use super::tree::below;
use super::{STAT_STATE, stat_fields};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

/// The bound on processes of a command that are looked at; a command with more of them does not wait for a person.
const PROCESSES_MAX: usize = 64;
/// The bound on threads of a process that are looked at.
const THREADS_MAX: usize = 64;
/// The field of `/proc/PID/stat` with the controlling terminal, counted from the one after the name.
const STAT_TERMINAL: usize = 4;
/// Device number of `/dev/tty`, whichever terminal it leads to.
const OWN_TERMINAL: u64 = 5 << 8;

/// How a process waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputWait {
    /// It reads from the terminal.
    Reads,
    /// It waits until one of several files can be read, of which the terminal may be one.
    Polls,
    /// It waits for something that the kernel does not tell: it runs as another user.
    Unknown,
}

/// A process that waits for input from a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalReader {
    /// Its process id.
    pub(crate) pid: u32,
    /// The name of its program.
    pub(crate) program: String,
    /// How it waits.
    pub(crate) waiting: InputWait,
}

/// Returns the process below this one that waits for input from `terminal`; one that certainly reads before others.
pub(crate) fn terminal_reader(terminal: &OwnedFd) -> Option<TerminalReader> {
    let own = fs::metadata(format!("/proc/self/fd/{}", terminal.as_raw_fd()));
    let device = own.ok()?.rdev();
    let processes = below(std::process::id(), PROCESSES_MAX);
    let waiting = |pid: u32| Some((pid, waiting(pid, device)?));
    let mut found: Vec<(u32, InputWait)> = processes.into_iter().filter_map(waiting).collect();
    // The youngest one of a kind: a shell waits for its programs.
    found.sort_by_key(|(_, waiting)| match waiting {
        InputWait::Reads => 2,
        InputWait::Polls => 1,
        InputWait::Unknown => 0,
    });
    let (pid, waiting) = found.pop()?;
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(TerminalReader {
        pid,
        program: program.trim_end().to_owned(),
        waiting,
    })
}

/// Returns how a process waits whose terminal is `device`.
fn waiting(pid: u32, device: u64) -> Option<InputWait> {
    let fields = stat_fields(pid)?;
    let terminal: i64 = fields.get(STAT_TERMINAL)?.parse().ok()?;
    let is_asleep = fields.get(STAT_STATE).is_some_and(|state| state == "S");
    if !is_asleep || u64::try_from(terminal) != Ok(device) {
        return None;
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut best = None;
    for thread in threads.flatten().take(THREADS_MAX) {
        let call = match fs::read_to_string(thread.path().join("syscall")) {
            Ok(call) => call,
            Err(err) if err.kind() == std::io::ErrorKind::PermissionDenied => {
                best = best.or(Some(InputWait::Unknown));
                continue;
            }
            Err(_) => continue,
        };
        let mut words = call.split_ascii_whitespace();
        let number = words.next().and_then(|it| it.parse::<i64>().ok());
        let first = words.next().and_then(|it| it.strip_prefix("0x"));
        let first = first.and_then(|it| u64::from_str_radix(it, 16).ok());
        match (number, first) {
            (Some(number), Some(descriptor)) if is_read(number) => {
                let file = fs::metadata(format!("/proc/{pid}/fd/{descriptor}"));
                let is_terminal = |it: u64| it == device || it == OWN_TERMINAL;
                if file.is_ok_and(|it| is_terminal(it.rdev())) {
                    return Some(InputWait::Reads);
                }
            }
            (Some(number), _) if is_poll(number) => best = Some(InputWait::Polls),
            _ => {}
        }
    }
    best
}

fn is_read(number: i64) -> bool {
    [libc::SYS_read, libc::SYS_readv].contains(&number)
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn is_poll(number: i64) -> bool {
    let older = [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait];
    older.contains(&number) || is_newer_poll(number)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn is_poll(number: i64) -> bool {
    is_newer_poll(number)
}

fn is_newer_poll(number: i64) -> bool {
    [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait].contains(&number)
}
