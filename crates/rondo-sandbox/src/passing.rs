//! Puts the listener of a proxy into a command's own network: it is made there, and passed out to the proxy.

use crate::PROXY_PORT;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    bind, listen, sendmsg, socket_with,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, OwnedFd};
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = [listener.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("a socket does not fit into a message"));
    }
    sendmsg(
        proxy,
        &[IoSlice::new(b"l")],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}
