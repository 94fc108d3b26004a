//! Sends one request and receives its response, over pooled connections.

use crate::connector::Connector;
use crate::pieces::Pieces;
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long an idle connection is kept for the next step.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The bound on idle connections kept to one host: as many as conversations may be held at once
/// without a new connection for each of their steps.
const POOL_IDLE_PER_HOST_MAX: usize = 1024;

/// The `User-Agent`.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("rondo/", env!("CARGO_PKG_VERSION")));

/// The `Accept` header of requests that set none.
const ANY: HeaderValue = HeaderValue::from_static("*/*");

/// Why no response came, or no more of one.
pub(crate) type NetworkError = Box<dyn Error + Send + Sync>;

/// Connections of one kind. Clones share them.
///
/// Redirects are not followed: they would carry the key to wherever they point. Retries are the
/// turn's decision. What the library does by itself is to take another connection where a kept one
/// had ended before any byte of the request was written to it.
#[derive(Clone)]
pub(crate) struct Client {
    connector: Connector,
    connections: legacy::Client<Connector, Pieces>,
}

impl Client {
    pub(crate) fn new(connector: Connector) -> Self {
        let connections = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_IDLE_PER_HOST_MAX)
            .build(connector.clone());
        Self {
            connector,
            connections,
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
        Sending(self.connections.request(request))
    }
}

/// A request on its way; nothing happens before it is polled, and dropping it ends it.
pub(crate) struct Sending(legacy::ResponseFuture);

impl Future for Sending {
    type Output = Result<Response, NetworkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (head, body) = ready!(Pin::new(&mut self.0).poll(cx))?.into_parts();
        Poll::Ready(Ok(Response {
            head,
            body: Some(body),
        }))
    }
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Response {
    head: Parts,
    /// What is left to read of the body.
    body: Option<Incoming>,
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn version(&self) -> hyper::Version {
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
        loop {
            let Some(body) = &mut self.body else {
                return Poll::Ready(Ok(None));
            };
            let Some(frame) = ready!(Pin::new(body).poll_frame(cx)).transpose()? else {
                self.body = None;
                return Poll::Ready(Ok(None));
            };
            // Trailers say nothing that is asked for.
            if let Ok(bytes) = frame.into_data() {
                return Poll::Ready(Ok(Some(bytes)));
            }
        }
    }

    /// Lets go of the headers, which hold the buffer that they were read into: the connection would
    /// need another one for the body.
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
