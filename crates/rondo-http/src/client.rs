//! Sends one request and receives its response, over connections that are kept.
//!
//! hyper speaks HTTP/1.1 (`connection`). This module has the headers of every request, and decides when a connection
//! may be used for another request.

use crate::connection::Connection;
use crate::connector::{BoxError, Connector};
use crate::pieces::Pieces;
use crate::pool::{self, Origin, Pool};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    USER_AGENT,
};
use hyper::http::response::Parts;
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, Request, StatusCode, Uri, Version};
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_service::Service as _;

/// The `User-Agent`.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("rondo/", env!("CARGO_PKG_VERSION")));

/// The `Accept` header of requests that set none.
const ANY: HeaderValue = HeaderValue::from_static("*/*");

/// The room for headers that most requests have.
const HEADERS: usize = 12;

/// Why no response came, or no more of one.
pub(crate) type NetworkError = Box<dyn Error + Send + Sync>;

/// A request on its way; nothing happens before it is polled, and dropping it ends it.
pub(crate) type Sending = BoxFuture<'static, Result<Response, NetworkError>>;

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// There is no connection.
    #[error("failed to connect")]
    Connect(#[source] BoxError),
    /// The address has no host.
    #[error("the address has no host")]
    NoHost,
    /// The server switched to another protocol without being asked to.
    #[error("the server switched to another protocol")]
    Switched,
    /// The connection failed, or what came on it is not HTTP.
    #[error("the connection failed")]
    Http(#[source] hyper::Error),
}

/// Connections of one kind. Clones share them.
///
/// Redirects are not followed: they would carry the key to wherever they point. Retries are the
/// turn's decision. The client only takes another connection if a kept one ended before any byte of
/// the request was written to it.
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

    /// Returns the connector.
    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a request and returns its response once its head is there.
    pub(crate) fn send(&self, request: Request<Pieces>) -> Sending {
        self.clone().exchange(request).boxed()
    }

    /// Sends a request on a kept connection, or else on a new one.
    async fn exchange(mut self, mut request: Request<Pieces>) -> Result<Response, NetworkError> {
        let address = request.uri().clone();
        let origin = pool::origin(&address).ok_or(ExchangeError::NoHost)?;
        self.complete(&mut request);
        loop {
            let kept = self.pool.take(&origin);
            let is_new = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                None => {
                    let connecting = self.connector.call(address.clone());
                    let stream = connecting.await.map_err(ExchangeError::Connect)?;
                    let opened = Connection::open(stream).await;
                    opened.map_err(ExchangeError::Http)?
                }
            };
            let mut error = match connection.send(request).await {
                Ok(response) => {
                    let (pool, origin) = (self.pool, origin);
                    return Ok(Response::begin(response, connection, pool, origin)?);
                }
                Err(error) => error,
            };
            request = match error.take_message() {
                // The kept connection had ended: nothing of the request was sent.
                Some(unsent) if !is_new => unsent,
                _ => return Err(ExchangeError::Http(error.into_error()).into()),
            };
        }
    }

    /// Adds the headers that every request has, and puts its address into the form in which it is sent.
    fn complete(&self, request: &mut Request<Pieces>) {
        let proxy = self.connector.forwarding_proxy(request.uri());
        let mut headers = HeaderMap::with_capacity(HEADERS);
        if let Ok(host) = HeaderValue::from_str(host(request.uri())) {
            headers.insert(HOST, host);
        }
        headers.extend(std::mem::take(request.headers_mut()));
        headers.entry(USER_AGENT).or_insert(AGENT);
        headers.entry(ACCEPT).or_insert(ANY);
        let password = proxy.as_ref().and_then(|proxy| proxy.basic_auth());
        if let Some(password) = password {
            let entry = headers.entry(PROXY_AUTHORIZATION);
            entry.or_insert_with(|| password.clone());
        }
        // How long the body is, is known here.
        headers.remove(TRANSFER_ENCODING);
        headers.remove(CONTENT_LENGTH);
        let bytes = request.body().bytes();
        if bytes > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(request.method()) {
            headers.insert(CONTENT_LENGTH, bytes.into());
        }
        *request.headers_mut() = headers;
        if proxy.is_none() {
            let path = request.uri().path_and_query().cloned();
            let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
            *request.uri_mut() = path.into();
        }
    }
}

/// Returns the host with its port, unless that is the scheme's own.
fn host(uri: &Uri) -> &str {
    let Some(authority) = uri.authority() else {
        return "";
    };
    let usual = match uri.scheme() == Some(&Scheme::HTTPS) {
        true => 443,
        false => 80,
    };
    match authority.port_u16() {
        Some(port) if port != usual => authority.as_str().rsplit('@').next().unwrap_or_default(),
        _ => authority.host(),
    }
}

/// A response whose body is still to be read.
pub(crate) struct Response {
    head: Parts,
    /// Unread rest of the body.
    body: Option<Body>,
}

/// A body that is read.
struct Body {
    incoming: Incoming,
    connection: Box<Connection>,
    /// Set if the head leaves no doubt about the end of the body.
    is_clear: bool,
    pool: Arc<Pool>,
    origin: Origin,
}

impl Response {
    /// Builds a response of which the head is there.
    fn begin(
        response: hyper::Response<Incoming>,
        connection: Box<Connection>,
        pool: Arc<Pool>,
        origin: Origin,
    ) -> Result<Self, ExchangeError> {
        let (head, incoming) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ExchangeError::Switched);
        }
        // Two lengths of one body are how replies are smuggled into those of others.
        let is_clear = !head.headers.contains_key(TRANSFER_ENCODING)
            || !head.headers.contains_key(CONTENT_LENGTH);
        let has_ended = incoming.is_end_stream();
        let mut response = Self {
            head,
            body: Some(Body {
                incoming,
                connection,
                is_clear,
                pool,
                origin,
            }),
        };
        if has_ended {
            response.end_body();
        }
        Ok(response)
    }

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
        while let Some(body) = &mut self.body {
            let frame = ready!(body.connection.poll_frame(&mut body.incoming, cx));
            match frame.transpose() {
                Ok(Some(frame)) => {
                    if body.incoming.is_end_stream() {
                        self.end_body();
                    }
                    // Trailers are dropped.
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Ok(Some(bytes)));
                    }
                }
                Ok(None) => self.end_body(),
                Err(error) => {
                    self.abandon();
                    return Poll::Ready(Err(ExchangeError::Http(error).into()));
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Drops the headers, which are not needed any more; they hold the memory that they were read into.
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

    /// Keeps the connection for another request, if it can be used.
    fn end_body(&mut self) {
        if let Some(mut body) = self.body.take()
            && body.is_clear
            && body.connection.is_idle()
        {
            body.pool.put(body.origin, body.connection);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_has_its_port_unless_it_is_the_usual_one() {
        for (address, expected) in [
            ("http://h:8080/v1", "h:8080"),
            ("http://h:80/", "h"),
            ("https://h:443", "h"),
            ("https://h:80", "h:80"),
            ("http://[::1]:1/", "[::1]:1"),
            ("http://h", "h"),
            ("http://me:pw@h:1", "h:1"),
            ("http://me:pw@h", "h"),
        ] {
            assert_eq!(host(&address.parse().unwrap()), expected, "{address}");
        }
    }
}
