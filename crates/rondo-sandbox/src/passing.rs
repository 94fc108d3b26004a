//! Passes descriptors out of a command's own namespaces: the listener of a proxy, which is made there, its mounts, and its
//! private directories.

use crate::PROXY_PORT;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind, listen, recvmsg, sendmsg,
    socket_with,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;
/// Descriptors in one message, and bytes that go with them.
const DESCRIPTORS_MAX: usize = 8;
const BYTES_MAX: usize = 8 * DESCRIPTORS_MAX;

/// Connects to a proxy, before anything hides its socket.
pub(crate) fn connected(socket: &Path) -> io::Result<OwnedFd> {
    let stream = UnixStream::connect(socket);
    let stream = stream.map_err(|err| {
        io::Error::new(
            err.kind(),
            format!("the proxy of commands cannot be reached: {err}"),
        )
    })?;
    Ok(stream.into())
}

/// Listens on this process's loopback, and passes the socket to the proxy, which accepts what connects.
pub(crate) fn pass_listener(proxy: &OwnedFd) -> io::Result<()> {
    let listener = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(
        &listener,
        &SocketAddrV4::new(Ipv4Addr::LOCALHOST, PROXY_PORT),
    )?;
    listen(&listener, BACKLOG)?;
    pass(proxy, &listener)
}

/// Sends a descriptor to the other end of a socket.
pub(crate) fn pass(socket: &OwnedFd, descriptor: impl AsFd) -> io::Result<()> {
    pass_all(socket, b"l", &[descriptor.as_fd()])
}

/// Sends descriptors to the other end of a socket, and bytes, of which there must be one.
pub(crate) fn pass_all(
    socket: &OwnedFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other(
            "the descriptors do not fit into a message",
        ));
    }
    let bytes = [IoSlice::new(bytes)];
    sendmsg(socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the next message that was sent so; never waits. At the end it is empty.
pub(crate) fn taken(socket: &OwnedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; BYTES_MAX];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let into = &mut [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, into, &mut ancillary, flags)?;
    bytes.truncate(received.bytes);
    let mut descriptors = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = part {
            descriptors.extend(some);
        }
    }
    Ok((bytes, descriptors))
}
