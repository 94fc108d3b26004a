//! One connection, on which hyper speaks HTTP/1.1.
//!
//! hyper expects a task for each connection. Here the reader of the response drives it instead: no other task is woken
//! for each piece of a body, and a response that is dropped closes its connection at once.

use crate::connector::{Stream, Watch};
use crate::pieces::Pieces;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// The bound on the head of a response, and on what is read at once. A kept connection may hold a buffer as large.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A connection.
pub(crate) struct Connection {
    /// `None` once it has ended.
    http: Option<http1::Connection<Stream, Pieces>>,
    sender: SendRequest<Pieces>,
    watch: Watch,
}

impl Connection {
    /// Sets up HTTP on a stream; nothing is sent or read.
    pub(crate) async fn open(stream: Stream) -> Result<Box<Self>, hyper::Error> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER_BYTES_MAX);
        let watch = stream.watch();
        let (sender, http) = builder.handshake(stream).await?;
        Ok(Box::new(Self {
            http: Some(http),
            sender,
            watch,
        }))
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

    /// Returns whether its request and response are over, and another request may follow.
    pub(crate) fn is_idle(&mut self) -> bool {
        // With a waker that does nothing: the response was read, so its reader must not be woken when the server closes
        // the connection.
        drive(&mut self.http, &mut Context::from_waker(Waker::noop()));
        self.http.is_some() && self.sender.is_ready()
    }

    /// Returns whether it can still be used, while no request is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.watch.is_quiet()
    }
}

/// Sends and reads as much as possible, and drops hyper's part once it has ended. Why it ended is the error of the response or
/// of its body.
fn drive(http: &mut Option<http1::Connection<Stream, Pieces>>, cx: &mut Context<'_>) {
    let polled = http.as_mut().map(|http| http.poll_without_shutdown(cx));
    if polled.is_some_and(|polled| polled.is_ready()) {
        *http = None;
    }
}
