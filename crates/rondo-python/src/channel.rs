//! Our end of the socket to the helper, on which frames go.

use crate::frames::{self, FRAME_BYTES_MAX, HEAD_BYTES, malformed};
use crate::unix;
use serde_json::Value;
use std::io;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;

/// Our end of the socket.
pub(crate) struct Channel {
    socket: UnixStream,
    outbox: Vec<u8>,
    inbox: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            outbox: Vec::new(),
            inbox: Vec::new(),
        }
    }

    pub(crate) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Queues bytes; [`Self::progress`] sends them.
    pub(crate) fn queue(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// Queues a frame, which must be within [`FRAME_BYTES_MAX`].
    pub(crate) fn queue_frame(&mut self, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(|_| malformed())?;
        self.queue(&length.to_be_bytes());
        self.queue(body);
        Ok(())
    }

    /// Sends and receives as much as there is, once there is something.
    ///
    /// # Errors
    /// When the socket fails or its other end is closed.
    ///
    /// # Cancel safety
    /// Cancel safe: what was read or written is accounted for before it returns.
    pub(crate) async fn progress(&mut self) -> io::Result<()> {
        let interest = match self.outbox.is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = self.socket.ready(interest).await?;
        if ready.is_writable() && !self.outbox.is_empty() {
            let written = unless_blocked(self.socket.try_write(&self.outbox))?.unwrap_or(0);
            self.outbox.drain(..written);
        }
        if ready.is_readable() || ready.is_read_closed() {
            self.receive()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        self.inbox.reserve(READ_BYTES);
        match unless_blocked(self.socket.try_read_buf(&mut self.inbox))? {
            Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Receives the remaining bytes of a helper that has ended.
    pub(crate) fn receive_rest(&mut self) {
        let mut bytes = vec![0; READ_BYTES];
        while self.inbox.len() <= FRAME_BYTES_MAX + HEAD_BYTES {
            let count = unix::read_now(&self.socket, &mut bytes).unwrap_or(0);
            if count == 0 {
                return;
            }
            self.inbox.extend(bytes.iter().take(count));
        }
    }

    /// Takes the first complete frame; `None` if there is none yet.
    ///
    /// # Errors
    /// When the received bytes are not a frame.
    pub(crate) fn take_frame(&mut self) -> io::Result<Option<Value>> {
        frames::take_frame(&mut self.inbox)
    }
}

/// Returns nothing if the descriptor was not ready after all.
pub(crate) fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if err.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn frames_arrive_whole_however_they_are_cut_and_what_is_none_is_refused() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours);
        let body = br#"{"id":1}"#;
        let frame = [&8_u32.to_be_bytes()[..], body].concat();
        for byte in &frame {
            assert_eq!(channel.take_frame().unwrap(), None);
            theirs.write_all(&[*byte]).await.unwrap();
            channel.progress().await.unwrap();
        }
        assert_eq!(channel.take_frame().unwrap(), Some(json!({"id": 1})));
        assert_eq!(channel.take_frame().unwrap(), None);

        let too_long = u32::try_from(FRAME_BYTES_MAX + 1).unwrap();
        theirs.write_all(&too_long.to_be_bytes()).await.unwrap();
        channel.progress().await.unwrap();
        assert!(channel.take_frame().is_err());
        drop(theirs);
        assert!(channel.progress().await.is_err());
    }
}
