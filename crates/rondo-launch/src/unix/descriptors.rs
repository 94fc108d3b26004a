//! Descriptors that are sent from one process to another.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The descriptors that there is room for in one message.
pub(crate) const DESCRIPTORS_MAX: usize = 32;
/// Content of a message besides its descriptors: a program that reads specifications although it should keep
/// finds an empty line, and refuses.
pub(crate) const MESSAGE: [u8; 1] = *b"\n";

#[cfg(target_os = "linux")]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(not(target_os = "linux"))]
const SEND: SendFlags = SendFlags::DONTWAIT;
#[cfg(target_os = "linux")]
const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);
#[cfg(not(target_os = "linux"))]
const RECEIVE: RecvFlags = RecvFlags::DONTWAIT;

/// Sends descriptors in one message; never waits.
pub(crate) fn send(socket: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&MESSAGE)], &mut rights, SEND)?;
    Ok(())
}

/// Takes the next message's descriptors, none if there were too many; nothing at the end. Never waits. No
/// program that is executed later has them.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<Vec<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut message = MESSAGE;
    let into = &mut [IoSliceMut::new(&mut message)];
    let received = rustix::net::recvmsg(socket, into, &mut rights, RECEIVE)?;
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
    for descriptor in descriptors.iter().filter(|_| !cfg!(target_os = "linux")) {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(Some(descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};
    use std::fs::File;
    use std::io::{Read as _, Seek as _, Write as _};
    use std::os::unix::net::UnixStream;

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn text(descriptor: OwnedFd) -> String {
        let (mut file, mut text) = (File::from(descriptor), String::new());
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn each_message_brings_its_own_descriptors() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = [file("1"), file("2")];
        send(&ours, &[sent[0].as_fd()]).unwrap();
        send(&ours, &[sent[1].as_fd(), sent[0].as_fd()]).unwrap();
        let mut read = Vec::new();
        for _ in 0..2 {
            let received = receive(&theirs).unwrap().unwrap().into_iter();
            read.push(received.map(text).collect::<Vec<_>>());
        }
        assert_eq!(read, [vec!["1"], vec!["2", "1"]]);
        let waiting = receive(&theirs).unwrap_err();
        assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
        drop(ours);
        // A child that another test starts meanwhile has it too, until it executes.
        let mut end = [PollFd::new(&theirs, PollFlags::IN)];
        rustix::event::poll(&mut end, None).unwrap();
        assert!(receive(&theirs).unwrap().is_none());
    }

    #[test]
    fn more_descriptors_than_there_is_room_for_are_none() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let one = file("1");
        let all = [one.as_fd(); DESCRIPTORS_MAX];
        send(&ours, &all).unwrap();
        assert_eq!(receive(&theirs).unwrap().unwrap().len(), DESCRIPTORS_MAX);
        let many = [one.as_fd(); 4 * DESCRIPTORS_MAX];
        send(&ours, &many).unwrap_err();
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4 * DESCRIPTORS_MAX))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        assert!(rights.push(SendAncillaryMessage::ScmRights(&many)));
        let said = &[IoSlice::new(&MESSAGE)];
        rustix::net::sendmsg(&ours, said, &mut rights, SendFlags::empty()).unwrap();
        assert!(receive(&theirs).unwrap().unwrap().is_empty());
    }
}
