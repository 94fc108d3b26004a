//! System calls: starting the interpreter, its pipes, and signals to its process group.

use crate::process::OwnChild;
use crate::settings::Settings;
use crate::startup::Startup;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use rustix::pty::{OpenptFlags, openpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, Winsize,
    tcflush, tcgetattr, tcsetattr, tcsetwinsize,
};
use std::io::{self, IoSlice, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Starts an interpreter that runs `bootstrap` as a child of ours.
///
/// Nothing here may need code between fork and exec: that copies our page tables.
pub(crate) fn start_child(
    settings: &Settings,
    startup: &Startup,
    bootstrap: &str,
    streams: [OwnedFd; 3],
) -> io::Result<OwnChild> {
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(&settings.program);
    command
        .arg("-c")
        .arg(bootstrap)
        .current_dir(&settings.directory)
        .env_clear()
        .envs(startup.all_variables_from_env(&settings.withheld))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .kill_on_drop(true);
    // Before there is a child, as its end must not be missed.
    let exits = signal(SignalKind::child())?;
    // The command holds the child's ends, which must be closed here for theirs to be the last.
    let child = command.spawn()?;
    drop(command);
    Ok(OwnChild { child, exits })
}

/// Sends the interpreter the end of a pipe whose other end, which is returned, we alone have: the
/// kernel ends the interpreter when that is closed, however it comes to be. Its terminal goes along.
pub(crate) fn leash(socket: &UnixStream, terminal: Option<&OwnedFd>) -> io::Result<PipeWriter> {
    let (theirs, ours): (PipeReader, PipeWriter) = io::pipe()?;
    let mut descriptors = vec![theirs.as_fd()];
    descriptors.extend(terminal.map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Descriptors travel with a byte. The socket is empty, so it has room for one.
    let byte = [IoSlice::new(b"L")];
    rustix::net::sendmsg(socket, &byte, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(ours)
}

/// Reads the bytes that are available now. The async runtime's functions would first wait for a readiness
/// event, which may come later.
pub(crate) fn read_now(from: &impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(from, &mut *into) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Interrupts all that the interpreter runs, as a terminal does on Ctrl-C.
pub(crate) fn interrupt(leader: u32) {
    tell_group(leader, Signal::INT);
}

/// Interrupts a system call of the interpreter, and nothing else: the terminal of a program may change
/// its size at any time, so the signal of that does no harm.
pub(crate) fn wake(leader: u32) {
    if let Some(leader) = pid(leader) {
        let _ = rustix::process::kill_process(leader, Signal::WINCH);
    }
}

/// Ends the interpreter and all that it runs.
pub(crate) fn kill(leader: u32) {
    tell_group(leader, Signal::KILL);
}

/// The interpreter leads a process group, but until its helper has made that group, and if the
/// user's code has left it, there is only the process.
fn tell_group(leader: u32, signal: Signal) {
    let Some(leader) = pid(leader) else {
        return;
    };
    if rustix::process::getpgid(Some(leader)) == Ok(leader) {
        let _ = rustix::process::kill_process_group(leader, signal);
    } else {
        let _ = rustix::process::kill_process(leader, signal);
        if signal == Signal::KILL {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

/// Returns whether a child has ended, and leaves its status to be read.
pub(crate) fn has_exited(child: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let peeked = |pid| rustix::process::waitid(WaitId::Pid(pid), options);
    matches!(pid(child).map(peeked), Some(Ok(Some(_))))
}

/// Opens a pair of terminal ends: the one that is written keys to, and the other one twice, as one that
/// never waits (ours) and as one that does (the interpreter's). How a terminal waits is a property of
/// what was opened.
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = |flags| rustix::fs::open(name.as_c_str(), flags, Mode::empty());
    let theirs = opened(flags)?;
    let mut modes = tcgetattr(&theirs)?;
    // A backspace takes a whole character away; Ctrl-S is a key of line editors, and stops nothing.
    modes.input_modes.insert(InputModes::IUTF8);
    modes.input_modes.remove(InputModes::IXON);
    // There is no shell here that a program could be stopped for, and a slip must not cost variables.
    for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
        modes.special_codes[code] = 0;
    }
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    Ok((master, opened(flags | OFlags::NONBLOCK)?, theirs))
}

/// Returns how a terminal is set.
pub(crate) fn modes(terminal: &OwnedFd) -> io::Result<Termios> {
    Ok(tcgetattr(terminal)?)
}

/// Sets a terminal.
pub(crate) fn set_modes(terminal: &OwnedFd, modes: &Termios) {
    let _ = tcsetattr(terminal, OptionalActions::Now, modes);
}

/// Sets the size of a terminal, and tells the programs on it.
pub(crate) fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let _ = tcsetwinsize(terminal, size);
}

/// Returns whether Ctrl-C interrupts a program that has the terminal, and does not read a key or edit a
/// line just now.
pub(crate) fn is_interrupt(terminal: &OwnedFd) -> bool {
    let needed = LocalModes::ISIG | LocalModes::ICANON;
    tcgetattr(terminal).is_ok_and(|it| it.local_modes.contains(needed))
}

/// Takes the unread input, at most `bytes_max` of it, an unfinished line too, and throws away
/// the rest.
pub(crate) fn take_unread(terminal: &OwnedFd, usual: &Termios, bytes_max: usize) -> Vec<u8> {
    let mut raw = usual.clone();
    raw.local_modes.remove(LocalModes::ICANON);
    // A thread that reads just now must wait on, and find no end of file.
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    set_modes(terminal, &raw);
    let mut unread = Vec::new();
    let mut piece = [0; 1024];
    while unread.len() < bytes_max {
        match rustix::io::read(terminal, &mut piece) {
            Ok(count) if count > 0 => {
                unread.extend_from_slice(piece.get(..count).unwrap_or_default());
            }
            _ => break,
        }
    }
    set_modes(terminal, usual);
    let _ = tcflush(terminal, QueueSelector::IFlush);
    unread
}

fn pid(raw: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(raw).ok()?)
}
