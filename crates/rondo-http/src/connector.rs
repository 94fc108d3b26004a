//! Opens connections: DNS, TCP, proxies and TLS, all within one timeout.

use crate::{HttpError, Network, Secret, unix};
use hyper::http::Uri;
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use socket2::SockRef;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// How long a peer may be silent before it is probed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The probes without an answer after which a peer counts as gone: the system's own nine, 75 s apart, would
/// take eleven minutes.
const KEEPALIVE_PROBES: u32 = 3;
/// How long what was sent may go without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Why a connection did not come about.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
/// Connects to a server or a proxy itself.
type Direct = HttpsConnector<HttpConnector<Resolver>>;

/// Connects to the place that an address names, by a proxy if the network has one for it.
#[derive(Clone)]
pub(crate) struct Connector {
    direct: Direct,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(network: &Network, tls: ClientConfig) -> Result<Self, HttpError> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        unix::bound_unacknowledged(&mut tcp, UNACKNOWLEDGED);
        // Time is left for the other addresses of a host of which one is silent.
        tcp.set_connect_timeout(Some(network.connect_timeout));
        let tls = Arc::new(tls);
        Ok(Self {
            direct: (tcp, Arc::clone(&tls)).into(),
            tls,
            proxies: Arc::new(matcher(network)?),
            timeout: network.connect_timeout,
        })
    }

    /// Returns the TLS configuration of its connections.
    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// Returns the proxy for an address, if it has one.
    pub(crate) fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        self.proxies.intercept(uri)
    }

    /// Returns the proxy that a request to an address goes to as it is, with the address in full.
    /// Encrypted requests use a tunnel instead, where the proxy cannot read them.
    pub(crate) fn forwarding_proxy(&self, uri: &Uri) -> Option<Intercept> {
        self.proxies
            .intercept(uri)
            .filter(|_| uri.scheme() == Some(&Scheme::HTTP))
    }
}

/// Reads the proxies' addresses. The library passes over one that it cannot read, which would send
/// requests past the proxy.
fn matcher(network: &Network) -> Result<Matcher, HttpError> {
    let proxies = &network.proxies;
    let text = |secret: &Option<Secret>| {
        let text = secret.as_ref().map(Secret::expose);
        text.unwrap_or_default().to_owned()
    };
    let matcher = Matcher::builder()
        .http(text(&proxies.http))
        .https(text(&proxies.https))
        .no(proxies.except.clone().unwrap_or_default())
        .build();
    let everywhere = Matcher::builder()
        .http(text(&proxies.http))
        .https(text(&proxies.https))
        .build();
    for (scheme, proxy) in [("http", &proxies.http), ("https", &proxies.https)] {
        let host = Uri::from_static(if scheme == "http" {
            "http://h"
        } else {
            "https://h"
        });
        let is_read = everywhere
            .intercept(&host)
            .is_some_and(|found| matches!(found.uri().scheme_str(), Some("http" | "https")));
        if proxy.is_some() && !is_read {
            return Err(HttpError::Proxy { scheme });
        }
    }
    Ok(matcher)
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<Stream, BoxError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(cx)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = self.connecting(address);
        let within = self.timeout;
        Box::pin(async move {
            let connected = timeout(within, connecting).await;
            connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }
}

impl Connector {
    fn connecting(&mut self, address: Uri) -> BoxFuture<Stream, BoxError> {
        let Some(proxy) = self.proxies.intercept(&address) else {
            return direct(self.direct.call(address), false);
        };
        if address.scheme() == Some(&Scheme::HTTP) {
            return direct(self.direct.call(proxy.uri().clone()), true);
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let mut secure = HttpsConnector::from((tunnel, Arc::clone(&self.tls)));
        let connecting = secure.call(address);
        Box::pin(async move {
            Ok(Stream {
                io: Arc::new(Mutex::new(connecting.await?)),
                is_forwarded: false,
            })
        })
    }
}

/// A connection without TLS is kept without the room that TLS takes.
fn direct(
    connecting: <Direct as Service<Uri>>::Future,
    is_forwarded: bool,
) -> BoxFuture<Stream, BoxError> {
    Box::pin(async move {
        let io: Arc<Mutex<dyn Io>> = match connecting.await? {
            MaybeHttpsStream::Http(plain) => Arc::new(Mutex::new(plain)),
            secure @ MaybeHttpsStream::Https(_) => Arc::new(Mutex::new(secure)),
        };
        Ok(Stream { io, is_forwarded })
    })
}

trait Io: Read + Write + Connection + OnSocket + Send + Unpin {}
impl<I: Read + Write + Connection + OnSocket + Send + Unpin> Io for I {}

/// Streams that end in a socket, however deeply wrapped.
trait OnSocket {
    fn socket(&self) -> &TcpStream;
}

impl OnSocket for TokioIo<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.inner()
    }
}

impl<I: OnSocket> OnSocket for MaybeHttpsStream<I> {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Http(plain) => plain.socket(),
            Self::Https(secure) => secure.inner().get_ref().0.inner().socket(),
        }
    }
}

/// A connection, with TLS if the address asks for it.
pub struct Stream {
    io: Arc<Mutex<dyn Io>>,
    /// Set if a proxy passes the requests on, so that they name their addresses in full.
    is_forwarded: bool,
}

/// A look at the socket of a stream that hyper reads and writes.
pub(crate) struct Watch(Arc<Mutex<dyn Io>>);

impl Stream {
    /// Returns a look at its socket.
    pub(crate) fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.io))
    }

    fn io(&self) -> MutexGuard<'_, dyn Io + 'static> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Returns whether another request may be sent: the server neither ended the connection nor sent anything that was
    /// not read. The system itself is asked: what the runtime knows of a socket is as old as its latest turn.
    pub(crate) fn is_quiet(&self) -> bool {
        let io = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let peeked = SockRef::from(io.socket()).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io().connected().proxy(self.is_forwarded)
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io().is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io()).poll_write_vectored(cx, slices)
    }
}

/// The system's resolver, whose failures can be distinguished from others.
#[derive(Clone)]
struct Resolver(GaiResolver);

/// A host's name has no address.
#[derive(Debug)]
pub(crate) struct Unresolved(io::Error);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no address for the name")
    }
}

impl Error for Unresolved {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = Unresolved;
    type Future = BoxFuture<GaiAddrs, Unresolved>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        self.0.poll_ready(cx).map_err(Unresolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        Box::pin(async move { resolving.await.map_err(Unresolved) })
    }
}
