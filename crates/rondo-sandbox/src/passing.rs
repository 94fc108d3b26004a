//! Passes descriptors out of a command's own namespaces: the listener of a proxy, which is made there, and its mounts.

use crate::PROXY_PORT;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    bind, listen, sendmsg, socket_with,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sent = [descriptor.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&sent)) {
        return Err(io::Error::other("a descriptor does not fit into a message"));
    }
    sendmsg(
        socket,
        &[IoSlice::new(b"l")],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}
