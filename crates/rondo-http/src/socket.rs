//! What a socket holds.

use socket2::SockRef;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use tokio::net::TcpStream;

/// What a socket holds that nobody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    Nothing,
    Bytes,
    /// Its end, or an error.
    End,
}

/// Returns what a socket holds. The system itself is asked: what the runtime knows of it is as old as its latest turn.
pub(crate) fn unread(socket: &TcpStream) -> Unread {
    match SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]) {
        Ok(0) => Unread::End,
        Ok(_) => Unread::Bytes,
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Unread::Nothing,
            _ => Unread::End,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    #[tokio::test]
    async fn a_socket_says_what_it_holds_before_the_runtime_knows() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let connected = async || {
            let here = TcpStream::connect(listener.local_addr().unwrap()).await;
            (here.unwrap(), listener.accept().unwrap().0)
        };
        let (here, mut there) = connected().await;
        assert_eq!(unread(&here), Unread::Nothing);
        there.write_all(b"x").unwrap();
        assert_eq!(unread(&here), Unread::Bytes);
        let (here, there) = connected().await;
        drop(there);
        assert_eq!(unread(&here), Unread::End);
    }
}
