//! Sends one request and receives its response, over connections that are kept.
//!
//! What HTTP/1.1 says is read by a library without buffers of its own. With hyper's client a request under way holds 26 KB that
//! nothing can bound: 8 KB to write from, 8 KB to read into, and 9 KB of a channel to the task that its connection has. With
//! a thousand conversations that is most of their memory. Here nothing is held while a server is waited for, no task is
//! woken for each piece of a reply, and none is passed on between two tasks.

use crate::connection::Connection;
use crate::connector::{BoxError, Connector, Stream};
use crate::http1::{self, After, Awaited, ReplyBody};
use crate::pieces::Pieces;
use crate::pool::{self, Origin, Pool};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::http::response;
use hyper::{Request, StatusCode, Version};
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_service::Service as _;

/// The bound on the head of a reply, those of interim replies before it included.
const HEAD_BYTES_MAX: usize = 256 * 1024;

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
    /// The request is none that HTTP can say.
    #[error("the request cannot be sent")]
    Unsendable(#[source] ureq_proto::Error),
    /// The server does not speak HTTP.
    #[error("the reply is not http")]
    NotHttp(#[source] ureq_proto::Error),
    /// The head of the reply has no end.
    #[error("the head of the reply has more than {HEAD_BYTES_MAX} bytes")]
    TooLarge,
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
    reply: Awaited,
    /// What was read of the head.
    received: Bytes,
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
                    State::Waiting(unsent.on(Connection::new(stream))?)
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
        Some(connection) => State::Waiting(unsent.on(connection)?),
        None => {
            let connecting = client.connector.call(unsent.request.uri().clone());
            State::Connecting(connecting, Box::new(unsent))
        }
    })
}

impl Unsent {
    fn on(self, mut connection: Connection) -> Result<Waiting, ExchangeError> {
        let (request, body) = self.request.into_parts();
        let begun = http1::begin(request, body.bytes(), connection.is_forwarded());
        let (head, reply) = begun.map_err(ExchangeError::Unsendable)?;
        connection.send(body.after(head));
        Ok(Waiting {
            connection,
            place: self.place,
            reply,
            received: Bytes::new(),
            unsent: None,
        })
    }
}

impl Waiting {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<response::Parts, ExchangeError>> {
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
    fn head(&mut self, new: usize) -> Result<Option<response::Parts>, ExchangeError> {
        let before = self.received.len() - new;
        // A head that comes in small pieces is not read anew for each of them, once it has begun as one.
        let unseen = self.received.get(before.saturating_sub(3)..);
        let is_read = before == 0 || unseen.is_some_and(may_end);
        let taken = match is_read {
            true => self.reply.take(&mut self.received),
            false => Ok(None),
        };
        match taken.map_err(ExchangeError::NotHttp)? {
            Some(head) => Ok(Some(head.into_parts().0)),
            None if self.received.len() > HEAD_BYTES_MAX => Err(ExchangeError::TooLarge),
            None => Ok(None),
        }
    }

    /// Says why the connection ended before a response.
    fn ended(&mut self) -> ExchangeError {
        match (self.reply.take(&mut self.received), self.unsent.take()) {
            (Err(error), _) => ExchangeError::NotHttp(error),
            (Ok(_), Some(error)) => ExchangeError::Failed(error),
            (Ok(_), None) => ExchangeError::Closed,
        }
    }

    fn answered(self, head: response::Parts) -> Response {
        let on = Connected {
            connection: self.connection,
            place: self.place,
            received: self.received,
        };
        let body = match self.reply.after() {
            After::Body(reply) => Some(Box::new(Body { on, reply })),
            After::Nothing { keeps_connection } => {
                on.over(keeps_connection);
                None
            }
        };
        Response { head, body }
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
    head: response::Parts,
    /// What is left to read of the body.
    body: Option<Box<Body>>,
}

/// A body that is read.
struct Body {
    on: Connected,
    reply: ReplyBody,
}

/// The connection of a request whose response has begun.
struct Connected {
    connection: Connection,
    place: Place,
    /// What was read and not looked at yet.
    received: Bytes,
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn version(&self) -> Version {
        self.head.version
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
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
        let goes_on = matches!(piece, Ok(Some(_))) && !body.reply.has_ended();
        if !goes_on && let Some(body) = self.body.take() {
            body.over();
        }
        Poll::Ready(piece.map_err(Into::into))
    }

    /// Lets go of the headers, which nobody asks for any more.
    pub(crate) fn forget_headers(&mut self) {
        self.head.headers = HeaderMap::new();
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
        let Connected {
            connection,
            received,
            ..
        } = &mut self.on;
        // The server answered: whether it reads the rest of the request is its own affair.
        if !connection.has_sent() {
            let _ = connection.poll_send(cx);
        }
        loop {
            let piece = self.reply.take(received).map_err(ExchangeError::NotHttp)?;
            if !piece.is_empty() {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.reply.has_ended() {
                return Poll::Ready(Ok(None));
            }
            let read = ready!(connection.poll_read_onto(received, cx));
            if read.map_err(ExchangeError::Failed)? == 0 {
                return Poll::Ready(match self.reply.may_close() {
                    true => Ok(None),
                    false => Err(ExchangeError::Closed),
                });
            }
        }
    }

    /// Ends it: its connection is kept for another request, where it can be used.
    fn over(self: Box<Self>) {
        let Self { on, reply } = *self;
        if reply.has_ended() {
            on.over(reply.keeps_connection());
        }
    }
}

impl Connected {
    fn over(self, keeps_connection: bool) {
        if keeps_connection && self.received.is_empty() && self.connection.has_sent() {
            self.place.pool.put(self.place.origin, self.connection);
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.head.status)
            .field("is_read", &self.is_read())
            .finish_non_exhaustive()
    }
}
