//! Services of the operating system for a shell: its terminal, its pipes, its session.

use rondo_launch::PtySize;
use rondo_launch::unix::{self, Pty};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, Winsize,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc;

/// The most input that is looked for when a command ends, in bytes; the kernel keeps 4 KiB.
const UNREAD_BYTES_MAX: usize = 16 << 10;
const CTRL_C: u8 = 3;

/// Opens a terminal as people use it.
pub(super) fn open_terminal(size: PtySize) -> io::Result<Pty> {
    let pty = unix::open_pair(size)?;
    let mut modes = rustix::termios::tcgetattr(&pty.slave)?;
    // A backspace takes a whole character away.
    modes.input_modes.insert(InputModes::IUTF8);
    rustix::termios::tcsetattr(&pty.slave, OptionalActions::Now, &modes)?;
    Ok(pty)
}

/// Opens the shell's end of the terminal once more, as one that never waits: that is a property of what
/// was opened, and the shell's own must wait.
pub(super) fn reopen(pty: &Pty) -> io::Result<OwnedFd> {
    let name = rustix::pty::ptsname(&pty.master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name.as_c_str(), flags, Mode::empty())?)
}

/// Starts a shell in a session of its own on the terminal.
pub(super) fn spawn(mut shell: Command, pty: &Pty) -> io::Result<Pid> {
    shell
        .stdin(pty.slave.try_clone()?)
        .stdout(pty.slave.try_clone()?)
        .stderr(pty.slave.try_clone()?);
    unix::own_session(&mut shell);
    let child = shell.spawn()?;
    unix::pid(child.id()).ok_or_else(|| io::Error::other("the kernel gave no process id"))
}

/// Makes a pipe with a name, which only its owner may open, and holds both of its ends.
pub(super) fn make_pipe(path: &Path) -> io::Result<OwnedFd> {
    make_fifo(path)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, mknodat};
    let owner = Mode::RUSR | Mode::WUSR;
    Ok(mknodat(CWD, path, FileType::Fifo, owner, 0)?)
}

#[cfg(not(target_os = "linux"))]
fn make_fifo(path: &Path) -> io::Result<()> {
    let mut command = Command::new("mkfifo");
    let made = command
        .args(["-m", "600"])
        .arg(path)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()?;
    match made.success() {
        true => Ok(()),
        false => Err(io::Error::other("`mkfifo` failed")),
    }
}

pub(super) fn resize(master: &OwnedFd, size: PtySize) {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let _ = rustix::termios::tcsetwinsize(master, size);
}

/// Returns the byte that interrupts, as the terminal is set.
pub(super) fn interrupt_byte(slave: &OwnedFd) -> u8 {
    let modes = rustix::termios::tcgetattr(slave);
    modes.map_or(CTRL_C, |modes| {
        match modes.special_codes[SpecialCodeIndex::VINTR] {
            0 => CTRL_C,
            byte => byte,
        }
    })
}

/// Sets whether the terminal shows what is typed; returns whether that is a change.
pub(super) fn set_echo(slave: &OwnedFd, is_shown: bool) -> bool {
    let Ok(mut modes) = rustix::termios::tcgetattr(slave) else {
        return false;
    };
    let is_change = modes.local_modes.contains(LocalModes::ECHO) != is_shown;
    modes.local_modes.set(LocalModes::ECHO, is_shown);
    is_change && rustix::termios::tcsetattr(slave, OptionalActions::Now, &modes).is_ok()
}

/// Takes the input that was not read, an unfinished line too; `slave` must not wait ([`reopen`]).
///
/// A late Ctrl-C may have the shell read at its prompt just now. Whatever modes are set for a moment
/// must therefore let it wait: with `VMIN` 0 it would read an end of file, and leave.
pub(super) fn take_unread(slave: &OwnedFd) -> Vec<u8> {
    let Ok(before) = rustix::termios::tcgetattr(slave) else {
        return Vec::new();
    };
    let unread = with_raw_input(slave, &before).unwrap_or_default();
    let _ = rustix::termios::tcsetattr(slave, OptionalActions::Now, &before);
    let _ = rustix::termios::tcflush(slave, QueueSelector::IFlush);
    unread
}

fn with_raw_input(slave: &OwnedFd, before: &Termios) -> io::Result<Vec<u8>> {
    let mut raw = before.clone();
    raw.local_modes.remove(LocalModes::ICANON);
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    rustix::termios::tcsetattr(slave, OptionalActions::Now, &raw)?;
    let mut unread = Vec::new();
    let mut buffer = [0; 1024];
    while unread.len() < UNREAD_BYTES_MAX {
        match rustix::io::read(slave, &mut buffer) {
            Ok(length) if length > 0 => {
                unread.extend_from_slice(buffer.get(..length).unwrap_or_default());
            }
            _ => break,
        }
    }
    Ok(unread)
}

/// Processes that a shell leaves, and the ones to keep.
pub(super) struct LeftProcesses<'a> {
    pub(super) leader: Pid,
    /// Process groups that were jobs at the last prompt.
    pub(super) jobs: &'a [i32],
    /// When that prompt was, in ticks since the machine's start.
    pub(super) prompt_at: Option<u64>,
}

/// Hangs up: the shell is told, and what is in the foreground. A shell passes it on to its jobs.
pub(super) fn hang_up(leader: Pid, master: &OwnedFd) {
    if let Ok(foreground) = rustix::termios::tcgetpgrp(master.as_fd()) {
        let _ = rustix::process::kill_process_group(foreground, Signal::HUP);
        let _ = rustix::process::kill_process_group(foreground, Signal::CONT);
    }
    let _ = rustix::process::kill_process(leader, Signal::HUP);
    let _ = rustix::process::kill_process(leader, Signal::CONT);
}

/// Signals everything of the shell's session that is not to stay; returns whether there was any.
///
/// Processes outside of the session stay, and so do those that the user has disowned: a process that began
/// before the last prompt and was no job at it.
#[cfg(target_os = "linux")]
pub(super) fn signal_leavings(leavings: &LeftProcesses<'_>, signal: Signal) -> bool {
    let own = leavings.leader.as_raw_pid();
    let doomed: Vec<Pid> = members(own)
        .filter(|member| !leavings.spares(member))
        .filter_map(|member| unix::pid(member.process))
        .collect();
    for pid in &doomed {
        let _ = rustix::process::kill_process(*pid, signal);
    }
    !doomed.is_empty()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn signal_leavings(leavings: &LeftProcesses<'_>, signal: Signal) -> bool {
    let jobs = leavings.jobs.iter().copied();
    let groups: std::collections::BTreeSet<i32> =
        jobs.chain([leavings.leader.as_raw_pid()]).collect();
    let groups = groups.into_iter().filter_map(Pid::from_raw);
    // Every group is signalled, so no short cut.
    groups
        .map(|group| rustix::process::kill_process_group(group, signal).is_ok())
        .fold(false, |any, one| any | one)
}

/// A process of the shell's session.
#[cfg(target_os = "linux")]
struct Member {
    process: u32,
    group: i32,
    start: Option<u64>,
}

#[cfg(target_os = "linux")]
impl LeftProcesses<'_> {
    fn spares(&self, member: &Member) -> bool {
        let is_older = member.start < self.prompt_at && self.prompt_at.is_some();
        is_older && member.group != self.leader.as_raw_pid() && !self.jobs.contains(&member.group)
    }
}

#[cfg(target_os = "linux")]
fn members(session: i32) -> impl Iterator<Item = Member> {
    const STATE: usize = 0;
    const GROUP: usize = 2;
    const SESSION: usize = 3;
    const START_TIME: usize = 19;
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let fields = unix::stat_fields(process)?;
        let is_ours = fields.get(SESSION)?.parse() == Ok(session);
        let is_alive = !matches!(fields.get(STATE)?.as_str(), "Z" | "X");
        (is_ours && is_alive).then_some(())?;
        Some(Member {
            process,
            group: fields.get(GROUP)?.parse().ok()?,
            start: fields.get(START_TIME)?.parse().ok(),
        })
    })
}

/// Returns the time since the machine's start in the ticks of `/proc/PID/stat`, which are hundredths
/// of a second on every machine that Linux runs on today (`USER_HZ`).
#[cfg(target_os = "linux")]
pub(super) fn now_in_ticks() -> Option<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds = uptime.split_ascii_whitespace().next()?;
    seconds.replace('.', "").parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn now_in_ticks() -> Option<u64> {
    None
}

/// Returns the size of a terminal.
pub(super) fn size_of(terminal: &OwnedFd) -> Option<PtySize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(PtySize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Writes everything, also if the descriptor does not wait.
pub(super) fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(to, PollFlags::OUT)];
                let _ = rustix::event::poll(&mut fds, None);
            }
            Err(err) => return Err(err.into()),
        }
    }
    Ok(())
}

/// A terminal that passes everything on, until this is dropped.
pub(super) struct RawMode {
    terminal: OwnedFd,
    before: Termios,
}

impl RawMode {
    pub(super) fn set(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        let terminal = terminal.try_clone_to_owned()?;
        let before = rustix::termios::tcgetattr(&terminal)?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Once the output is shown: it was made for the raw terminal.
        let _ = rustix::termios::tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// A thread that reads a keyboard, until this is dropped; afterwards nothing is read any more.
///
/// A thread, since a terminal cannot be made not to wait: its other users share that setting.
pub(super) struct Keys {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    const READ_BYTES: usize = 4 << 10;

    pub(super) fn read(terminal: BorrowedFd<'_>, to: mpsc::Sender<Vec<u8>>) -> io::Result<Self> {
        let terminal = terminal.try_clone_to_owned()?;
        let (stopped, stop) = io::pipe()?;
        let stopped = OwnedFd::from(stopped);
        let thread = thread::Builder::new().spawn(move || {
            while let Some(room) = room_in(&to, &stopped)
                && let Some(bytes) = keys(&terminal, &stopped)
            {
                room.send(bytes);
            }
        })?;
        Ok(Self {
            stop: Some(stop.into()),
            thread: Some(thread),
        })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How often a full queue is looked at again.
const ROOM_EVERY: Duration = Duration::from_millis(20);

/// Waits for room in the queue; `None` when told to stop.
fn room_in<'a>(
    to: &'a mpsc::Sender<Vec<u8>>,
    stopped: &OwnedFd,
) -> Option<mpsc::Permit<'a, Vec<u8>>> {
    loop {
        match to.try_reserve() {
            Ok(room) => return Some(room),
            Err(mpsc::error::TrySendError::Closed(())) => return None,
            Err(mpsc::error::TrySendError::Full(())) => {
                let mut fds = [PollFd::new(stopped, PollFlags::IN)];
                let patience = unix::timespec(ROOM_EVERY);
                if rustix::event::poll(&mut fds, Some(&patience)) != Ok(0) {
                    return None;
                }
            }
        }
    }
}

/// Waits for keys; `None` when told to stop, or when the terminal is gone.
fn keys(terminal: &OwnedFd, stopped: &OwnedFd) -> Option<Vec<u8>> {
    loop {
        let mut fds = [
            PollFd::new(stopped, PollFlags::IN),
            PollFd::new(terminal, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        let [stop, ready] = fds.map(|fd| !fd.revents().is_empty());
        if stop {
            return None;
        }
        let mut buffer = vec![0; Keys::READ_BYTES];
        match rustix::io::read(terminal, &mut buffer) {
            Ok(length) if ready && length > 0 => {
                buffer.truncate(length);
                return Some(buffer);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc as channel;

    /// Returns how often who reads the terminal was told an end of file, while unread input was taken.
    fn ends_of_file(times: usize) -> usize {
        let size = PtySize {
            rows: 24,
            columns: 80,
        };
        let pty = open_terminal(size).unwrap();
        let own = reopen(&pty).unwrap();
        let (done, is_done) = channel::channel();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut buffer, mut ends) = ([0; 1024], 0);
                loop {
                    let length = rustix::io::read(&pty.slave, &mut buffer).unwrap();
                    ends += usize::from(length == 0);
                    if buffer
                        .get(..length)
                        .unwrap_or_default()
                        .ends_with(b"last\n")
                    {
                        done.send(()).unwrap();
                        return ends;
                    }
                }
            });
            for _ in 0..times {
                rustix::io::write(&pty.master, b"x\n").unwrap();
                take_unread(&own);
            }
            while is_done.try_recv().is_err() {
                rustix::io::write(&pty.master, b"last\n").unwrap();
                let _ = rustix::termios::tcflush(&pty.master, QueueSelector::IFlush);
                thread::yield_now();
            }
            reader.join().unwrap()
        })
    }

    #[test]
    fn a_shell_that_reads_while_unread_input_is_taken_reads_no_end_of_file() {
        assert_eq!(ends_of_file(20_000), 0);
    }
}
