//! One connection: what is to be sent on it, and reading without a buffer of its own.

use crate::connector::Stream;
use bytes::{Buf as _, Bytes};
use hyper::rt::{Read as _, ReadBuf, Write as _};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use tokio::task::unconstrained;

/// What is read at once.
const READ_BYTES_MAX: usize = 16 * 1024;
/// Pieces that are written at once.
const WRITE_PIECES_MAX: usize = 16;

/// A connection, with what is still to be sent on it.
pub(crate) struct Connection {
    stream: Stream,
    unsent: VecDeque<Bytes>,
    is_flushed: bool,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            unsent: VecDeque::new(),
            is_flushed: true,
        }
    }

    /// Returns whether requests on it name their addresses in full.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.stream.is_forwarded()
    }

    /// Has these bytes sent, in order.
    pub(crate) fn send(&mut self, mut pieces: VecDeque<Bytes>) {
        pieces.retain(|piece| !piece.is_empty());
        self.unsent = pieces;
        self.is_flushed = false;
    }

    /// Returns whether everything was sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.unsent.is_empty() && self.is_flushed
    }

    /// Sends what is left to send. What was sent is let go of.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let written = ready!(self.poll_write(cx))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_flushed = true;
            self.unsent = VecDeque::new();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        if !stream.is_write_vectored() {
            let first = self.unsent.front().map_or(&[][..], |piece| piece);
            return stream.poll_write(cx, first);
        }
        let mut slices = [IoSlice::new(&[]); WRITE_PIECES_MAX];
        let pieces = self.unsent.len().min(WRITE_PIECES_MAX);
        for (slice, piece) in slices.iter_mut().zip(&self.unsent) {
            *slice = IoSlice::new(piece);
        }
        stream.poll_write_vectored(cx, slices.get(..pieces).unwrap_or_default())
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(first) = self.unsent.front_mut() {
            if written < first.len() {
                return first.advance(written);
            }
            written -= first.len();
            self.unsent.pop_front();
        }
    }

    /// Reads once, onto what was received before. Returns how many bytes came; none at the end.
    pub(crate) fn poll_read_onto(
        &mut self,
        received: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read(cx, |bytes| {
            *received = match received.is_empty() {
                true => Bytes::copy_from_slice(bytes),
                false => [received, bytes].concat().into(),
            };
            bytes.len()
        })
    }

    /// The room for it is on the stack: a connection that waits for its server holds no buffer, and there may be a thousand.
    fn poll_read<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        let mut room = [MaybeUninit::uninit(); READ_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer.unfilled()))?;
        Poll::Ready(Ok(take(buffer.filled())))
    }

    /// Returns whether another request may be sent: its server neither ended it nor sent what nobody asked for.
    pub(crate) fn is_quiet(&mut self) -> bool {
        if !self.stream.is_quiet() {
            return false;
        }
        // Of what is encrypted this tells more. Without `unconstrained` it would be quiet wherever its task has done much.
        let mut cx = Context::from_waker(Waker::noop());
        let read = unconstrained(poll_fn(|cx| self.poll_read(cx, |_| ())));
        // What is unread still, the runtime did not know of.
        pin!(read).poll(&mut cx).is_pending() && self.stream.is_drained()
    }
}
