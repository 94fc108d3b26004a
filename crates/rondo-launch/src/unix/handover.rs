//! Descriptors that are handed from one process to another, and sealed memory that they lead to.

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

/// The descriptors that there is room for in one message.
const DESCRIPTORS_MAX: usize = 4;
/// What a message says besides its descriptors: a program that reads specifications where it should keep
/// finds an empty line, and refuses.
const MESSAGE: [u8; 1] = *b"\n";
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

/// Reads what was sealed; never waits.
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

/// Sends descriptors in one message; never waits.
pub(crate) fn send(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[IoSlice::new(&MESSAGE)], &mut rights, flags)?;
    Ok(())
}

/// Takes the next message's descriptors, none where there were too many; nothing at the end. Never waits.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Vec<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut message = MESSAGE;
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let into = &mut [IoSliceMut::new(&mut message)];
    let received = rustix::net::recvmsg(socket, into, &mut rights, flags)?;
    let mut descriptors = Vec::new();
    for part in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = part {
            descriptors.extend(some);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        descriptors.clear();
    }
    Ok(Some(descriptors))
}

/// Returns what stands for this process, whatever becomes of its id.
pub(crate) fn own_handle() -> io::Result<OwnedFd> {
    handle_of(rustix::process::getpid())
}

/// Returns what stands for a child of ours that was not waited for.
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

/// Lets the process go on that a handle stands for.
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
        match receive(&self.socket) {
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

/// Has children that end be forgotten by the kernel, or has them wait for their parent as usual.
#[expect(unsafe_code, reason = "signals have no safe interface")]
pub(crate) fn forget_children(are_forgotten: bool) {
    let action = match are_forgotten {
        true => libc::SIG_IGN,
        false => libc::SIG_DFL,
    };
    // SAFETY: neither action is code of ours.
    unsafe { libc::signal(libc::SIGCHLD, action) };
}

/// Puts a call's pipes where a supervisor looks for them.
pub(crate) fn take_as_stdio(control: &OwnedFd, frames: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(control)?;
    rustix::stdio::dup2_stdout(frames)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

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

    #[test]
    fn each_message_brings_its_own_descriptors() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = [seal(b"1").unwrap(), seal(b"2").unwrap()];
        send(&ours, &[sent[0].as_fd()]).unwrap();
        send(&ours, &[sent[1].as_fd(), sent[0].as_fd()]).unwrap();
        let mut read = Vec::new();
        for _ in 0..2 {
            let received = receive(&theirs).unwrap().unwrap().into_iter();
            let texts = received.map(|it| read_sealed(it, 1).unwrap());
            read.push(texts.collect::<Vec<_>>());
        }
        assert_eq!(
            read,
            [vec![b"1".to_vec()], vec![b"2".to_vec(), b"1".to_vec()]]
        );
        let waiting = receive(&theirs).unwrap_err();
        assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
        drop(ours);
        assert!(receive(&theirs).unwrap().is_none());
    }

    #[test]
    fn more_descriptors_than_a_call_has_are_none() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let memory = seal(b"1").unwrap();
        let many = [memory.as_fd(); 4 * DESCRIPTORS_MAX];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4 * DESCRIPTORS_MAX))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        assert!(rights.push(SendAncillaryMessage::ScmRights(&many)));
        let said = &[IoSlice::new(&MESSAGE)];
        rustix::net::sendmsg(&ours, said, &mut rights, SendFlags::empty()).unwrap();
        assert!(receive(&theirs).unwrap().unwrap().is_empty());
    }
}
