//! Accepts connections, within bounds, and answers each by the routes.

use super::guard::{self, Hosts};
use super::metrics::Figures;
use super::places::{Bounds, KeyPlace, Places};
use crate::connections::{self, AddressPlace};
use crate::keys::KeyHash;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// Limits of the resources that strangers can take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once.
    pub(super) connections: usize,
    /// Bounds for each address and each key.
    pub(super) bounds: Bounds,
    /// How long a request's head may take, and how long a connection may be idle.
    pub(super) head: Duration,
    /// How long a peer may take nothing of what it is sent: until then that is held for it.
    pub(super) unread: Duration,
    /// How long requests may continue once the hub stops.
    pub(super) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            bounds: Bounds::default(),
            head: Duration::from_secs(10),
            unread: Duration::from_secs(60),
            drain: Duration::from_secs(5),
        }
    }
}

/// The connection that a request came by. Clones are the same one.
#[derive(Clone)]
pub(super) struct Connection(Arc<Peer>);

struct Peer {
    ip: IpAddr,
    places: Arc<Places>,
    place: Mutex<ConnectionSlot>,
}

/// The place that a connection has.
enum ConnectionSlot {
    Stranger { _place: AddressPlace },
    Key(KeyPlace),
}

impl Connection {
    pub(super) fn ip(&self) -> IpAddr {
        self.0.ip
    }

    /// Gives the connection a place of a valid key instead of the one that it has. Returns whether there was one.
    pub(super) fn is_known(&self, key: &KeyHash, is_owner: bool) -> bool {
        let mut place = self.place();
        if matches!(&*place, ConnectionSlot::Key(known) if known.is_of(key, is_owner)) {
            return true;
        }
        let Some(known) = self.0.places.known(key, is_owner) else {
            return false;
        };
        *place = ConnectionSlot::Key(known);
        true
    }

    /// Counts more bytes of a body. Returns whether they may be held.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        match &mut *self.place() {
            ConnectionSlot::Key(known) => known.hold(bytes),
            ConnectionSlot::Stranger { .. } => false,
        }
    }

    /// Releases the place of the request, whose body is not held any more.
    fn release(&self) {
        if let ConnectionSlot::Key(known) = &mut *self.place() {
            known.release();
        }
    }

    fn place(&self) -> MutexGuard<'_, ConnectionSlot> {
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State that all connections share.
pub(super) struct Server {
    pub(super) router: Router,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    pub(super) figures: Arc<Figures>,
}

/// Serves until `stop` fires, then waits for the requests that are being answered.
pub(super) async fn serve(server: Arc<Server>, listener: TcpListener, stop: CancellationToken) {
    let places = Arc::new(Places::new(server.limits.bounds));
    let Limits {
        connections,
        bounds,
        ..
    } = server.limits;
    let answered = |stream, ip, stranger: AddressPlace| {
        let displaced = stranger.displaced.clone();
        let connection = Connection(Arc::new(Peer {
            ip,
            places: Arc::clone(&places),
            place: Mutex::new(ConnectionSlot::Stranger { _place: stranger }),
        }));
        let (server, stop) = (Arc::clone(&server), stop.clone());
        async move {
            tokio::select! {
                () = displaced.cancelled() => server.figures.turned_away(),
                () = answer(Arc::clone(&server), stream, connection, stop) => {}
            }
        }
    };
    connections::accept(&listener, connections, bounds.strangers, &stop, answered).await;
}

async fn answer(
    server: Arc<Server>,
    stream: TcpStream,
    connection: Connection,
    stop: CancellationToken,
) {
    // Deltas are small and must be seen at once.
    let _ = stream.set_nodelay(true);
    let limits = server.limits;
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, connection) = (Arc::clone(&server), connection.clone());
        async move { Ok::<_, Infallible>(respond(&server, connection, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.unread));
    let stream = TokioIo::new(Box::pin(stream));
    let mut served = pin!(http.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            match timeout(limits.drain, served).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the API broke");
    }
}

async fn respond(
    server: &Server,
    connection: Connection,
    mut request: Request<Incoming>,
) -> Response {
    let checked = guard::check(&server.hosts, request.uri(), request.headers());
    let mut response = match checked {
        Err(error) => error.into_response(),
        Ok(()) => {
            request.extensions_mut().insert(connection.clone());
            let called = tower_service::Service::call(&mut server.router.clone(), request);
            let response = called.await.unwrap_or_else(|never| match never {});
            connection.release();
            response
        }
    };
    server.figures.answered(response.status());
    finish_head(&mut response);
    response
}

/// Adds the headers of every response that forbid browsers to guess its type, run, frame or keep it.
fn finish_head(response: &mut Response) {
    let is_refused = matches!(
        response.status(),
        StatusCode::UNAUTHORIZED
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::SERVICE_UNAVAILABLE
    );
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; sandbox",
        ),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    let own = header::HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(own, HeaderValue::from_static("same-origin"));
    if is_refused {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures_util::stream;
    use tokio::io::AsyncWriteExt as _;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_peer_that_reads_nothing_holds_nothing_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (held, dropped) = oneshot::channel::<()>();
        let held = Arc::new(Mutex::new(Some(held)));
        let endless = get(async move || {
            let held = held.lock().unwrap().take();
            Body::from_stream(stream::repeat_with(move || {
                // Lives as long as what the peer is still to be sent.
                let _held = &held;
                Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 64 << 10]))
            }))
        });
        let server = Server {
            router: Router::new().route("/", endless),
            hosts: Hosts::new(address, &[]),
            limits: Limits {
                unread: Duration::from_millis(200),
                ..Limits::default()
            },
            figures: Arc::default(),
        };
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(Arc::new(server), listener, stop.clone()));
        let mut peer = TcpStream::connect(address).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        peer.write_all(request.as_bytes()).await.unwrap();
        let dropped = timeout(Duration::from_secs(60), dropped).await;
        assert!(dropped.unwrap().is_err(), "nothing is sent there");
        stop.cancel();
        serving.await.unwrap();
    }
}
