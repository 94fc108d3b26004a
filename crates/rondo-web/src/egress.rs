//! The one client for addresses that a model names.

use crate::WebError;
use crate::body::{self, BodyError};
use crate::dial::{DialedConnection, dial};
use crate::net::{Net, SystemNet};
use crate::target::{AllowedHost, Target};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap,
    HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::http::Uri;
use hyper::{Request, Response};
use rondo_http::Transport;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The bound on redirects of one request.
pub const REDIRECTS_MAX: usize = 5;
/// How long a request may take, with its redirects and its body.
pub const TIME_MAX: Duration = Duration::from_secs(30);
/// The bound on the head of a response, in bytes; what one more read brings may come on top.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The bound on headers of a response.
const HEADERS_MAX: usize = 128;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("rondo/", env!("CARGO_PKG_VERSION")));
/// Encodings that [`body`] can decompress.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate");

/// A client that reaches public hosts, and those that the user allows.
///
/// Each address is read by the rules of browsers. Its host, every address that the host has, and the address that the
/// connection ended up at must be public; so must those of each redirect. Nothing is kept between requests: no
/// cookies, no connections. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    net: Arc<dyn Net>,
    transport: Transport,
    allowed: Vec<AllowedHost>,
    time_max: Duration,
}

/// Request to send.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The address.
    pub url: &'a str,
    /// The header `Accept`.
    pub accept: &'static str,
    /// Further headers, such as keys. A redirect is an error with them.
    pub headers: HeaderMap,
    /// The bound on the decompressed body of a content type, in bytes.
    pub bytes_max: fn(Option<&str>) -> usize,
}

/// A response with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The address that it came from, after redirects, without a fragment.
    pub url: String,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// The body, decompressed, up to its bound.
    pub body: Vec<u8>,
    /// Set if there is more of it.
    pub is_cut: bool,
    /// `Content-Length`, which counts compressed bytes.
    pub length: Option<u64>,
}

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchResult {
    /// A page.
    Page(Page),
    /// A redirect to another site, which was not followed: permission for one host is none for another.
    Elsewhere {
        /// The address that it leads to.
        url: String,
    },
}

impl Egress {
    /// Builds a client over the connections' settings: their proxies and their certificate authorities.
    #[must_use]
    pub fn new(transport: Transport, allowed: Vec<AllowedHost>) -> Self {
        Self {
            net: Arc::new(SystemNet),
            transport,
            allowed,
            time_max: TIME_MAX,
        }
    }

    /// Returns the client with other names and connections than the system's.
    #[must_use]
    pub fn with_net(self, net: Arc<dyn Net>) -> Self {
        Self { net, ..self }
    }

    /// Returns the client with another bound on the time of a request.
    #[must_use]
    pub fn with_time_max(self, time_max: Duration) -> Self {
        Self { time_max, ..self }
    }

    /// Gets a page. Redirects are followed within a site, at most [`REDIRECTS_MAX`] times.
    ///
    /// # Errors
    /// When the address, or one that it leads to, may not be reached, when no response comes in time, and when the
    /// status is not 2xx.
    ///
    /// # Cancel safety
    /// Dropping it ends the request.
    pub async fn get(&self, ask: Ask<'_>) -> Result<FetchResult, WebError> {
        let first = Target::parse(ask.url, &self.allowed)?;
        let host = first.host.clone();
        let got = tokio::time::timeout(self.time_max, self.follow(first, &ask)).await;
        got.unwrap_or(Err(WebError::Timeout {
            host,
            seconds: self.time_max.as_secs(),
        }))
    }

    async fn follow(&self, first: Target, ask: &Ask<'_>) -> Result<FetchResult, WebError> {
        let mut target = first;
        for _ in 0..=REDIRECTS_MAX {
            let (response, _connection) = self.request(&target, ask).await?;
            let status = response.status();
            if status.is_redirection()
                && let Some(location) = response.headers().get(LOCATION)
            {
                let location = String::from_utf8_lossy(location.as_bytes());
                let next = target.redirected(&location, &self.allowed)?;
                if !ask.headers.is_empty() {
                    return Err(WebError::Forbidden {
                        host: next.host,
                        reason: "a request with a key is not redirected".to_owned(),
                    });
                }
                if !next.is_same_site(&target) {
                    return Ok(FetchResult::Elsewhere {
                        url: next.url.into(),
                    });
                }
                if target.url.scheme() == "https" && next.url.scheme() != "https" {
                    return Err(WebError::Forbidden {
                        host: next.host,
                        reason: "it leads from `https` to `http`".to_owned(),
                    });
                }
                target = next;
                continue;
            }
            if !status.is_success() {
                return Err(WebError::Status {
                    host: target.host,
                    status: status.to_string(),
                });
            }
            return page(target, response, ask.bytes_max)
                .await
                .map(FetchResult::Page);
        }
        Err(WebError::Redirects {
            host: target.host,
            max: REDIRECTS_MAX,
        })
    }

    async fn request(
        &self,
        target: &Target,
        ask: &Ask<'_>,
    ) -> Result<(Response<Incoming>, Connection), WebError> {
        let failed = |source| WebError::Connection {
            host: target.host.clone(),
            source,
        };
        let uri: Uri = target
            .url
            .as_str()
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| failed(error.into()))?;
        let dialled = dial(target, &uri, &*self.net, &self.transport).await?;
        let request = request(target, &uri, &dialled, ask).map_err(|err| failed(err.into()))?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake::<_, NoBody>(dialled.io)
            .await
            .map_err(|err| failed(err.into()))?;
        // It ends with the guard: its errors are those of the request.
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        let response = sender.send_request(request).await;
        Ok((response.map_err(|err| failed(err.into()))?, connection))
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

fn request(
    target: &Target,
    uri: &Uri,
    dialled: &DialedConnection,
    ask: &Ask<'_>,
) -> Result<Request<NoBody>, hyper::http::Error> {
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    let at = match dialled.is_forwarded {
        true => target.url.as_str(),
        false => path,
    };
    let mut request = Request::get(at)
        .header(HOST, uri.authority().map_or("", |it| it.as_str()))
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, ask.accept)
        .header(ACCEPT_ENCODING, ENCODINGS);
    for (name, value) in &ask.headers {
        request = request.header::<&HeaderName, _>(name, value.clone());
    }
    if let Some(authorization) = &dialled.authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization.clone());
    }
    request.body(NoBody)
}

async fn page(
    target: Target,
    response: Response<Incoming>,
    bytes_max: fn(Option<&str>) -> usize,
) -> Result<Page, WebError> {
    let text = |name: HeaderName| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let content_type = text(CONTENT_TYPE);
    let encoding = text(CONTENT_ENCODING);
    let length = text(CONTENT_LENGTH).and_then(|it| it.parse().ok());
    let max = bytes_max(content_type.as_deref());
    let start = body::read(response.into_body(), encoding.as_deref(), max).await;
    let start = start.map_err(|error| match error {
        BodyError::Encoding => WebError::Encoding {
            host: target.host.clone(),
        },
        BodyError::Connection(source) => WebError::Connection {
            host: target.host.clone(),
            source,
        },
    })?;
    Ok(Page {
        url: target.url.into(),
        content_type,
        body: start.bytes,
        is_cut: start.is_cut,
        length,
    })
}

/// Ends the task of a connection when it is dropped.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of a request that has none.
struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
