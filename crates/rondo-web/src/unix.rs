//! A listener that another process passes on over a socket.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg,
    sockopt,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Receives a TCP socket that listens.
///
/// # Errors
/// When the other end goes away, or passes something else.
pub(crate) async fn received_listener(stream: &UnixStream) -> io::Result<TcpListener> {
    let socket = stream
        .async_io(Interest::READABLE, || received(stream))
        .await?;
    let is_tcp = sockopt::socket_type(&socket)? == SocketType::STREAM
        && [AddressFamily::INET, AddressFamily::INET6].contains(&sockopt::socket_domain(&socket)?)
        && sockopt::socket_acceptconn(&socket)?;
    if !is_tcp {
        return Err(io::Error::other("it is not a listening socket"));
    }
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn received(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let mut slices = [IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut passed = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    passed
        .next()
        .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}
