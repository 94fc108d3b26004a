//! Sends one request and receives its response, over connections that are kept.
//!
//! It is HTTP/1.1 of our own, on the parser of heads that hyper uses. With hyper's client a request under way holds 26 KB that
//! nothing can bound: 8 KB to write from, 8 KB to read into, and 9 KB of a channel to the task that its connection has. With
//! a thousand conversations that is most of their memory. Here nothing is held while a server is waited for, no task is
//! woken for each piece of a reply, and none is passed on between two tasks. `ureq-proto` reads HTTP without buffers,
//! too, but loses what came before a broken chunk, has no bound for trailers, and writes keys to the `log` at `trace`.

use crate::body::{BodyDecoder, Malformed};
use crate::connection::Connection;
use crate::connector::{BoxError, Connector, Stream};
use crate::head::{self, HEAD_BYTES_MAX, Head, NotHttp};
use crate::pieces::Pieces;
use crate::pool::{self, Origin, Pool};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, StatusCode, Version};
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_service::Service as _;

/// The `User-Agent`.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("rondo/", env!("CARGO_PKG_VERSION")));

/// The `Accept` header of requests that set none.
const ANY: HeaderValue = HeaderValue::from_static("*/*");

/// Why no response came, or no more of one.
pub(crate) type NetworkError = Box<dyn Error + Send + Sync>;

/// What can go wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// There is no connection.
    #[error("failed to connect")]
    Connect(#[source] BoxError),
    /// The address has no host.
    #[error("the address has no host")]
    NoHost,
    /// The server does not speak HTTP.
    #[error("the reply is not http")]
    NotHttp(#[source] NotHttp),
    /// The head of the reply has no end.
    #[error("the head of the reply has more than {HEAD_BYTES_MAX} bytes")]
    TooLarge,
    /// What follows in the body is not what its head says.
    #[error("the body is broken")]
    Garbled(#[source] Malformed),
    /// The connection ended before the reply did.
    #[error("connection closed before message completed")]
    Closed,
    /// The connection failed.
    #[error("the connection failed")]
    Failed(#[source] io::Error),
}

/// Connections of one kind. Clones share them.
///
/// Redirects are not followed: they would carry the key to wherever they point. Retries are the
/// turn's decision. What happens here is to take another connection where a kept one
/// had ended before any byte of the request was written to it.
#[derive(Clone)]
pub(crate) struct Client {
    connector: Connector,
    pool: Arc<Pool>,
}

impl Client {
    pub(crate) fn new(connector: Connector) -> Self {
        Self {
            connector,
            pool: Arc::default(),
        }
    }

    /// Returns what opens its connections.
    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a request and returns its response once its head is there.
    pub(crate) fn send(&self, mut request: Request<Pieces>) -> Sending {
        let proxy = self.connector.forwarding_proxy(request.uri());
        let password = proxy.as_ref().and_then(|proxy| proxy.basic_auth()).cloned();
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(AGENT);
        headers.entry(ACCEPT).or_insert(ANY);
        if let Some(password) = password {
            headers.entry(PROXY_AUTHORIZATION).or_insert(password);
        }
        Sending(State::New(Box::new((self.clone(), request))))
    }
}

/// A request on its way; nothing happens before it is polled, and dropping it ends it.
pub(crate) struct Sending(State);

enum State {
    New(Box<(Client, Request<Pieces>)>),
    Connecting(BoxFuture<'static, Result<Stream, BoxError>>, Box<Unsent>),
    Waiting(Waiting),
    Over,
}

/// A request that waits for its connection.
struct Unsent {
    request: Request<Pieces>,
    place: Place,
}

/// Where a connection is kept after its request.
struct Place {
    pool: Arc<Pool>,
    origin: Origin,
}

/// A request that is sent, or was, and whose response has not begun.
struct Waiting {
    connection: Connection,
    place: Place,
    method: Method,
    /// Whether the request lets another one follow it.
    keeps_alive: bool,
    /// What was read of the head.
    received: Bytes,
    /// How much was read, of interim replies too.
    read: usize,
    /// Why not all of it can be sent. A server may say what it does not like and read no further.
    unsent: Option<io::Error>,
}

impl Future for Sending {
    type Output = Result<Response, NetworkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.0;
        loop {
            *state = match state {
                State::Connecting(connecting, _) => {
                    let connected = ready!(connecting.as_mut().poll(cx));
                    let State::Connecting(_, unsent) = std::mem::replace(state, State::Over) else {
                        continue;
                    };
                    let stream = connected.map_err(ExchangeError::Connect)?;
                    State::Waiting(unsent.on(Connection::new(stream)))
                }
                State::Waiting(waiting) => {
                    let head = ready!(waiting.poll(cx));
                    let State::Waiting(waiting) = std::mem::replace(state, State::Over) else {
                        continue;
                    };
                    return Poll::Ready(Ok(waiting.answered(head?)));
                }
                State::New(_) => match std::mem::replace(state, State::Over) {
                    State::New(new) => begin(*new)?,
                    other => other,
                },
                // It is not polled again.
                State::Over => return Poll::Pending,
            };
        }
    }
}

/// Takes a connection that is kept, or opens one.
fn begin((mut client, request): (Client, Request<Pieces>)) -> Result<State, ExchangeError> {
    let origin = pool::origin(request.uri()).ok_or(ExchangeError::NoHost)?;
    let kept = client.pool.take(&origin);
    let unsent = Unsent {
        place: Place {
            pool: client.pool,
            origin,
        },
        request,
    };
    Ok(match kept {
        Some(connection) => State::Waiting(unsent.on(connection)),
        None => {
            let connecting = client.connector.call(unsent.request.uri().clone());
            State::Connecting(connecting, Box::new(unsent))
        }
    })
}

impl Unsent {
    fn on(self, mut connection: Connection) -> Waiting {
        let (request, body) = self.request.into_parts();
        let keeps_alive = head::keeps_alive(&request.headers, Version::HTTP_11);
        let head = head::write(&request, body.bytes(), connection.is_forwarded());
        connection.send(body.after(head));
        Waiting {
            connection,
            place: self.place,
            method: request.method,
            keeps_alive,
            received: Bytes::new(),
            read: 0,
            unsent: None,
        }
    }
}

impl Waiting {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, ExchangeError>> {
        if self.unsent.is_none()
            && let Poll::Ready(Err(error)) = self.connection.poll_send(cx)
        {
            self.unsent = Some(error);
        }
        loop {
            match ready!(self.connection.poll_read_onto(&mut self.received, cx)) {
                Ok(0) => return Poll::Ready(Err(self.ended())),
                Ok(read) => {
                    if let Some(head) = self.head(read)? {
                        return Poll::Ready(Ok(head));
                    }
                }
                Err(error) => {
                    let error = self.unsent.take().unwrap_or(error);
                    return Poll::Ready(Err(ExchangeError::Failed(error)));
                }
            }
        }
    }

    /// Reads the head, of which so many bytes are new.
    fn head(&mut self, new: usize) -> Result<Option<Head>, ExchangeError> {
        self.read += new;
        let before = self.received.len() - new;
        // A head that comes in small pieces is not read anew for each of them, once it has begun as one.
        let unseen = self.received.get(before.saturating_sub(3)..);
        let is_read = before == 0 || unseen.is_some_and(may_end);
        let head = match is_read {
            true => head::take(&mut self.received, &self.method),
            false => Ok(None),
        };
        match head.map_err(ExchangeError::NotHttp)? {
            None if self.read > HEAD_BYTES_MAX => Err(ExchangeError::TooLarge),
            head => Ok(head),
        }
    }

    /// Says why the connection ended before a response.
    fn ended(&mut self) -> ExchangeError {
        match (
            head::take(&mut self.received, &self.method),
            self.unsent.take(),
        ) {
            (Err(error), _) => ExchangeError::NotHttp(error),
            (Ok(_), Some(error)) => ExchangeError::Failed(error),
            (Ok(_), None) => ExchangeError::Closed,
        }
    }

    fn answered(self, head: Head) -> Response {
        let body = Body {
            connection: self.connection,
            place: self.place,
            decoder: BodyDecoder::new(head.length),
            received: self.received,
            keeps_alive: self.keeps_alive && head.keeps_alive,
        };
        Response {
            status: head.status,
            version: head.version,
            headers: head.headers,
            body: Box::new(body).unless_ended(),
        }
    }
}

/// Returns whether the end of a head may be in it.
fn may_end(bytes: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', bytes);
    ends.any(|at| {
        let after = bytes.get(at + 1..).unwrap_or_default();
        after.starts_with(b"\n") || after.starts_with(b"\r\n")
    })
}

/// A response whose body is still to be read.
pub(crate) struct Response {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
    /// What is left to read of the body.
    body: Option<Box<Body>>,
}

/// A body that is read.
struct Body {
    connection: Connection,
    place: Place,
    decoder: BodyDecoder,
    /// What was read and not looked at yet.
    received: Bytes,
    keeps_alive: bool,
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the next piece of the body; `None` at its end.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, NetworkError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As [`Response::chunk`]. Behind the end of the body there is only its end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, NetworkError>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(None));
        };
        let piece = ready!(body.poll_piece(cx));
        self.body = match &piece {
            Ok(Some(_)) => self.body.take().and_then(|body| body.unless_ended()),
            Ok(None) => {
                // Its last bytes may be no content.
                let _ = self.body.take().and_then(|body| body.unless_ended());
                None
            }
            Err(_) => None,
        };
        Poll::Ready(piece.map_err(Into::into))
    }

    /// Lets go of the headers, which nobody asks for any more.
    pub(crate) fn forget_headers(&mut self) {
        self.headers = HeaderMap::new();
    }

    /// Returns whether the body was read to its end.
    pub(crate) fn is_read(&self) -> bool {
        self.body.is_none()
    }

    /// Reads no more of the body; its connection is closed.
    pub(crate) fn abandon(&mut self) {
        self.body = None;
    }
}

impl Body {
    /// Reads what comes next; nothing where the body ends with its connection.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ExchangeError>> {
        // The server answered: whether it reads the rest of the request is its own affair.
        if !self.connection.has_sent() {
            let _ = self.connection.poll_send(cx);
        }
        loop {
            let piece = self.decoder.take(&mut self.received);
            let piece = piece.map_err(ExchangeError::Garbled)?;
            if !piece.is_empty() {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.decoder.has_ended() {
                return Poll::Ready(Ok(None));
            }
            let read = ready!(self.connection.poll_read_onto(&mut self.received, cx));
            if read.map_err(ExchangeError::Failed)? == 0 {
                return Poll::Ready(match self.decoder.may_close() {
                    true => Ok(None),
                    false => Err(ExchangeError::Closed),
                });
            }
        }
    }

    /// Returns the body, unless it has ended: then its connection is kept for another request, where it can be used.
    fn unless_ended(self: Box<Self>) -> Option<Box<Self>> {
        if !self.decoder.has_ended() {
            return Some(self);
        }
        if self.keeps_alive && self.received.is_empty() && self.connection.has_sent() {
            self.place.pool.put(self.place.origin, self.connection);
        }
        None
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("is_read", &self.is_read())
            .finish_non_exhaustive()
    }
}
