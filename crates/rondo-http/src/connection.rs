//! One connection, on which hyper speaks HTTP/1.1.
//!
//! hyper expects a task for each connection. Here whoever waits for the response drives it instead: no other task is woken
//! for each piece of a body, and a response that is dropped closes its connection at once.

use crate::connector::Stream;
use crate::pieces::Pieces;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// The bound on the head of a response, and on what is read at once.
const BUFFER_BYTES_MAX: usize = 256 * 1024;

/// A connection.
pub(crate) struct Connection {
    /// `None` once it has ended.
    http: Option<http1::Connection<Stream, Pieces>>,
    sender: SendRequest<Pieces>,
}

impl Connection {
    /// Sets up HTTP on a stream; nothing is sent or read.
    pub(crate) async fn open(stream: Stream) -> Result<Self, hyper::Error> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER_BYTES_MAX);
        let (sender, http) = builder.handshake(stream).await?;
        Ok(Self {
            http: Some(http),
            sender,
        })
    }

    /// Sends a request, and returns its response once its head is there. A request of which nothing was sent is part of
    /// the error.
    pub(crate) async fn send(
        &mut self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Pieces>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            drive(&mut self.http, cx);
            response.as_mut().poll(cx)
        })
        .await
    }

    /// Returns the next frame of the body of its response.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        drive(&mut self.http, cx);
        Pin::new(body).poll_frame(cx)
    }

    /// Returns its stream if another request may follow on it.
    pub(crate) fn into_idle(mut self) -> Option<Stream> {
        // Nobody waits for anything on it.
        drive(&mut self.http, &mut Context::from_waker(Waker::noop()));
        let parts = self
            .http
            .filter(|_| self.sender.is_ready())
            .map(http1::Connection::into_parts)?;
        parts.read_buf.is_empty().then_some(parts.io)
    }
}

/// Sends and reads what can be, and closes the connection once it has ended. Why it ended is the response's or the body's error.
fn drive(http: &mut Option<http1::Connection<Stream, Pieces>>, cx: &mut Context<'_>) {
    let polled = http.as_mut().map(|http| http.poll_without_shutdown(cx));
    if polled.is_some_and(|polled| polled.is_ready()) {
        *http = None;
    }
}
