//! Transfer of a call between processes: sealed memory, handles of processes, the way to a parent.

use super::descriptors;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// The changes to sealed memory that are forbidden.
const SEALS: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// Puts bytes into memory that no process can change any more.
pub(crate) fn seal(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut memory = File::from(rustix::fs::memfd_create("rondo-call", flags)?);
    memory.write_all(bytes)?;
    rustix::fs::fcntl_add_seals(&memory, SEALS)?;
    Ok(memory.into())
}

/// Reads the sealed bytes; never waits.
pub(crate) fn read_sealed(memory: OwnedFd, bytes_max: usize) -> io::Result<Vec<u8>> {
    // Other descriptors have no seals, and could have the reader wait.
    let is_sealed = rustix::fs::fcntl_get_seals(&memory).is_ok_and(|it| it.contains(SEALS));
    let memory = File::from(memory);
    let length = usize::try_from(memory.metadata()?.len()).unwrap_or(usize::MAX);
    if !is_sealed || length > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the specification is not sealed or too long",
        ));
    }
    let mut bytes = vec![0; length];
    memory.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Returns a handle of this process, which stays valid when its id is reused.
pub(crate) fn own_handle() -> io::Result<OwnedFd> {
    handle_of(rustix::process::getpid())
}

/// Returns the handle of a child of ours that was not waited for.
pub(crate) fn handle_of_child(child: u32) -> io::Result<OwnedFd> {
    handle_of(super::pid(child).ok_or(io::ErrorKind::InvalidInput)?)
}

fn handle_of(process: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(process, PidfdFlags::empty())?)
}

/// Kills the process that a handle stands for.
pub(crate) fn kill(handle: &OwnedFd) {
    let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
}

/// Lets the process continue that a handle stands for.
pub(crate) fn resume(handle: &OwnedFd) {
    let _ = rustix::process::pidfd_send_signal(handle, Signal::CONT);
}

/// This process's way to its parent, which hands it calls.
pub(crate) struct Parent {
    socket: OwnedFd,
    /// Readable once the parent is gone, though another process may hold the other end of the socket.
    process: OwnedFd,
}

impl Parent {
    /// Leaves the parent's session, directory and descriptors, all but the socket on stdin, whose other
    /// end must be the parent's.
    pub(crate) fn leave() -> io::Result<Self> {
        close_others()?;
        let parent = rustix::process::getppid().ok_or(io::ErrorKind::NotConnected)?;
        let process = handle_of(parent)?;
        let peer = rustix::net::sockopt::socket_peercred(io::stdin())?;
        // A parent that was gone before leaves its child to another.
        if peer.pid != parent || rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        super::let_go_of_stdio();
        rustix::process::setsid()?;
        rustix::process::chdir("/")?;
        super::hide_environment();
        Ok(Self { socket, process })
    }

    /// Waits for the next message and returns its descriptors; nothing once the parent is gone.
    pub(crate) fn next(&self) -> io::Result<Option<Vec<OwnedFd>>> {
        let mut fds = [
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.process, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Some(Vec::new())),
            Err(err) => return Err(err.into()),
        }
        let [_, process] = fds;
        if !process.revents().is_empty() {
            return Ok(None);
        }
        match descriptors::receive(&self.socket) {
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => Ok(Some(Vec::new())),
            received => received,
        }
    }
}

/// Closes every descriptor but the standard ones: the others belong to the process that started this one.
#[expect(
    unsafe_code,
    reason = "descriptors that nothing here owns have no safe interface"
)]
pub(crate) fn close_others() -> io::Result<()> {
    let (first, last, flags): (libc::c_uint, libc::c_uint, libc::c_uint) =
        (3, libc::c_uint::MAX, 0);
    // SAFETY: called before this program opens a descriptor, so none of them has an owner.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the kernel forget children that end, or makes them wait for their parent as usual.
#[expect(unsafe_code, reason = "signals have no safe interface")]
pub(crate) fn forget_children(are_forgotten: bool) {
    let action = match are_forgotten {
        true => libc::SIG_IGN,
        false => libc::SIG_DFL,
    };
    // SAFETY: neither action is code of ours.
    unsafe { libc::signal(libc::SIGCHLD, action) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_is_read_up_to_its_bound() {
        let memory = seal(b"abc").unwrap();
        let again = memory.try_clone().unwrap();
        assert_eq!(read_sealed(memory, 3).unwrap(), b"abc");
        read_sealed(again, 2).unwrap_err();
    }

    #[test]
    fn what_can_still_change_or_never_ends_is_not_read() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("open", flags).unwrap();
        rustix::fs::fcntl_add_seals(&memory, SealFlags::WRITE).unwrap();
        let (pipe, _writer) = io::pipe().unwrap();
        for strange in [memory, pipe.into()] {
            let refused = read_sealed(strange, 100).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn sealed_memory_cannot_be_written() {
        let memory = seal(b"abc").unwrap();
        File::from(memory).write_all(b"d").unwrap_err();
    }
}
