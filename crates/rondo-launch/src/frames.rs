//! Reader of a supervisor's frames.

use super::protocol::{FRAME_BYTES_MAX, FRAME_HEAD, FrameKind};
use super::unix;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// How much room a read has at least, in bytes: most frames are shorter.
const READ_BYTES: usize = 1 << 10;

/// The frames of a supervisor.
#[derive(Debug)]
pub(super) struct Frames {
    from: Source,
    /// Bytes that were read and not returned.
    read: Vec<u8>,
}

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
}

impl Frames {
    pub(super) fn pipe(from: OwnedFd) -> io::Result<Self> {
        Ok(Self::new(Source::Pipe(pipe::Receiver::from_owned_fd(
            from,
        )?)))
    }

    pub(super) fn socket(from: UnixStream) -> Self {
        Self::new(Source::Socket(from))
    }

    fn new(from: Source) -> Self {
        Self {
            from,
            read: Vec::new(),
        }
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// At the end, or when the bytes are not a frame.
    ///
    /// # Cancel safety
    /// Cancel safe: what was read in part is kept.
    pub(super) async fn next(&mut self) -> io::Result<(FrameKind, Vec<u8>)> {
        loop {
            let missing = match self.take()? {
                Ok(frame) => return Ok(frame),
                Err(missing) => missing,
            };
            self.read.reserve(missing.max(READ_BYTES));
            let length = match &mut self.from {
                Source::Pipe(pipe) => pipe.read_buf(&mut self.read).await?,
                Source::Socket(socket) => socket.read_buf(&mut self.read).await?,
            };
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Returns whether something was said that was not returned, or nothing more will be.
    pub(super) fn has_more(&self) -> bool {
        let from = match &self.from {
            Source::Pipe(pipe) => pipe.as_fd(),
            Source::Socket(socket) => socket.as_fd(),
        };
        // The system is asked: the runtime may not know yet.
        let mut polled = [PollFd::from_borrowed_fd(from, PollFlags::IN)];
        !self.read.is_empty()
            || rustix::event::poll(&mut polled, Some(&unix::timespec(Duration::ZERO))) != Ok(0)
    }

    /// Takes a frame that is there, or returns how many bytes are missing.
    fn take(&mut self) -> io::Result<Result<(FrameKind, Vec<u8>), usize>> {
        let Some((head, rest)) = self.read.split_first_chunk::<FRAME_HEAD>() else {
            return Ok(Err(FRAME_HEAD - self.read.len()));
        };
        let [kind, length @ ..] = *head;
        let kind = FrameKind::from_byte(kind).ok_or_else(out_of_turn)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(out_of_turn());
        }
        match rest.get(..length) {
            None => Ok(Err(length - rest.len())),
            Some(payload) => {
                let payload = payload.to_vec();
                self.read.drain(..FRAME_HEAD + length);
                Ok(Ok((kind, payload)))
            }
        }
    }

    /// Returns the pipe, if it is one, once nothing more was said than was returned.
    ///
    /// # Errors
    /// When it is none, or more was said.
    pub(super) fn into_pipe(self) -> io::Result<pipe::Receiver> {
        match self.from {
            Source::Pipe(pipe) if self.read.is_empty() => Ok(pipe),
            Source::Pipe(_) | Source::Socket(_) => Err(out_of_turn()),
        }
    }
}

pub(super) fn out_of_turn() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the supervisor sent an unexpected message",
    )
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::encode_frame;
    use std::io::Write as _;

    #[tokio::test]
    async fn frames_are_whole_however_they_are_cut_and_readers_are_dropped() {
        let (from, mut to) = io::pipe().unwrap();
        let mut frames = Frames::pipe(from.into()).unwrap();
        let mut bytes = Vec::new();
        let long = vec![b'x'; 3 * READ_BYTES];
        encode_frame(FrameKind::Output, b"", &mut bytes);
        encode_frame(FrameKind::Output, &long, &mut bytes);
        let mut read = Vec::new();
        for byte in bytes.chunks(7) {
            to.write_all(byte).unwrap();
            // Dropped as soon as it has to wait.
            tokio::select! {
                biased;
                frame = frames.next() => read.push(frame.unwrap()),
                () = tokio::task::yield_now() => {}
            }
        }
        while read.len() < 2 {
            read.push(frames.next().await.unwrap());
        }
        let expected = [vec![], long].map(|it| (FrameKind::Output, it));
        assert_eq!(read, expected);
        drop(to);
        let ended = frames.next().await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn what_is_no_frame_or_too_long_is_refused() {
        for bytes in [&b"x\0\0\0\0"[..], b"o\xff\0\0\0"] {
            let (from, mut to) = io::pipe().unwrap();
            let mut frames = Frames::pipe(from.into()).unwrap();
            to.write_all(bytes).unwrap();
            let refused = frames.next().await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        }
    }
}
