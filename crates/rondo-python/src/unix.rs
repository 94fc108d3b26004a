//! What the operating system does for us: starting the interpreter, its pipes, signals to all of it.

use crate::settings::Settings;
use crate::startup::Startup;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io::{self, IoSlice, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// An interpreter that was just started.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) exits: tokio::signal::unix::Signal,
    pub(crate) socket: UnixStream,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
}

/// Starts an interpreter that runs `bootstrap`, with the other end of the socket as its standard
/// input.
///
/// Nothing here may need code between fork and exec: that copies our page tables.
pub(crate) fn start(
    settings: &Settings,
    startup: &Startup,
    bootstrap: &str,
) -> io::Result<Started> {
    if !settings.program.is_absolute() {
        // It would be looked for wherever the search path says, in the session's directory too.
        let message = "its path must be absolute";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (stdout, stdout_end) = io::pipe()?;
    let (stderr, stderr_end) = io::pipe()?;
    let mut command = Command::new(&settings.program);
    command
        .arg("-c")
        .arg(bootstrap)
        .current_dir(&settings.directory)
        .stdin(OwnedFd::from(theirs))
        .stdout(OwnedFd::from(stdout_end))
        .stderr(OwnedFd::from(stderr_end))
        .kill_on_drop(true);
    for (name, value) in &startup.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    for name in &settings.withheld {
        command.env_remove(name);
    }
    // Before there is a child, as its end must not be missed.
    let exits = signal(SignalKind::child())?;
    // The command holds the child's ends, which must be closed here for theirs to be the last.
    let child = command.spawn()?;
    drop(command);
    Ok(Started {
        child,
        exits,
        socket: UnixStream::from_std(ours)?,
        stdout: Receiver::from_owned_fd(stdout.into())?,
        stderr: Receiver::from_owned_fd(stderr.into())?,
    })
}

/// Sends the interpreter the end of a pipe whose other end, which is returned, we alone have: the
/// kernel ends the interpreter when that is closed, however it comes to be.
pub(crate) fn leash(socket: &UnixStream) -> io::Result<PipeWriter> {
    let (theirs, ours): (PipeReader, PipeWriter) = io::pipe()?;
    let descriptors = [theirs.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Descriptors travel with a byte. The socket is empty, so it has room for one.
    let byte = [IoSlice::new(b"L")];
    rustix::net::sendmsg(socket, &byte, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(ours)
}

/// Reads what is there. The runtime's own functions do not ask the kernel before they have been
/// told that there is something, which may be later.
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

/// Ends the interpreter and all that it runs.
pub(crate) fn kill(leader: u32) {
    tell_group(leader, Signal::KILL);
}

/// The interpreter leads a process group, but until its helper has made that group, and where the
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

fn pid(raw: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(raw).ok()?)
}
