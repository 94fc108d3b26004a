//! Taking requests: `POST /hooks/NAME`, and nothing else.

use crate::channel::Inner;
use crate::{Signed, clock, inbound};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rondo_hub::channel::ChannelError;
use rondo_hub::connections::{
    self, AddressBounds, AddressPlace, BodyRefused, ByteBound, network, read_body,
};
use rondo_hub::inbox::{Inbox, InboxError, InboxResult};
use serde_json::json;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Path of endpoints.
const PATH: &str = "/hooks/";
/// The bound on a body, in bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How long a head, and a body, may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The bounds on heads.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// Connections at once, those that are about to be closed included; further ones wait.
const CONNECTIONS_MAX: usize = 256;
/// Connections that have a place, of all addresses and of each.
const BOUNDS: AddressBounds = AddressBounds {
    all: 128,
    of_address: 64,
    time: Duration::from_millis(250),
};
/// Bytes of heads and bodies that are held at once.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of bodies that are held at once, of all addresses and of each: every connection may have a whole head.
const BODIES_BYTES_MAX: usize = BYTES_MAX - CONNECTIONS_MAX * HEAD_BYTES_MAX;
const BODIES_BYTES_OF_ADDRESS_MAX: usize = BODIES_BYTES_MAX / 2;
/// Requests a second, of all addresses and of each, good or not: they are counted before anything of them is looked at.
const REQUESTS_MAX: u32 = 100;
const REQUESTS_OF_ADDRESS_MAX: u32 = 50;
/// How long requests may continue once the hub stops.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a connection that lost its place may take to be told so.
const DISPLACED_DRAIN: Duration = Duration::from_millis(250);
/// Answer to a request for which there is no room.
const CROWDED: &str = "too many requests are being received";

struct Server {
    channel: Arc<Inner>,
    inbox: Inbox,
    requests: Mutex<Requests>,
    bodies: Arc<ByteBound<IpAddr>>,
}

/// The requests of the present second.
struct Requests {
    since: Instant,
    all: u32,
    of_address: HashMap<IpAddr, u32>,
}

/// Takes requests until `stop` fires, then waits for those that are being answered.
pub(crate) async fn run(
    channel: &Arc<Inner>,
    inbox: Inbox,
    stop: CancellationToken,
) -> Result<(), ChannelError> {
    let failed = |error: std::io::Error| ChannelError::Failed {
        message: format!("webhooks cannot be received at {}: {error}", channel.listen),
    };
    let bound = TcpListener::bind(channel.listen).await;
    let not_bound =
        |error| ChannelError::not_bound("the listener of webhooks", channel.listen, &error);
    let listener = bound.map_err(not_bound)?;
    let address = listener.local_addr().map_err(failed)?;
    inbox.receives(crate::NAME);
    tracing::info!(%address, "takes webhooks");
    channel.address.send_replace(Some(address));
    let server = Arc::new(Server {
        channel: Arc::clone(channel),
        inbox,
        requests: Mutex::new(Requests {
            since: clock::now(),
            all: 0,
            of_address: HashMap::new(),
        }),
        bodies: Arc::new(ByteBound::new(
            BODIES_BYTES_MAX,
            BODIES_BYTES_OF_ADDRESS_MAX,
        )),
    });
    let serve = |stream, ip, place| converse(Arc::clone(&server), stream, ip, place, stop.clone());
    connections::accept(&listener, CONNECTIONS_MAX, BOUNDS, &stop, serve).await;
    Ok(())
}

async fn converse(
    server: Arc<Server>,
    stream: TcpStream,
    ip: IpAddr,
    place: AddressPlace,
    stop: CancellationToken,
) {
    let displaced = place.displaced.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, displaced) = (Arc::clone(&server), place.displaced.clone());
        async move { Ok::<_, Infallible>(server.answer(request, ip, &displaced).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let drain = tokio::select! {
        ended = served.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection of a webhook broke");
            }
            return;
        }
        () = displaced.cancelled() => DISPLACED_DRAIN,
        () = stop.cancelled() => DRAIN,
    };
    served.as_mut().graceful_shutdown();
    // The connection is closed whether or not the request was answered within this time.
    drop(timeout(drain, served).await);
}

/// Answer to a request.
type Answer = Result<&'static str, (StatusCode, String)>;

impl Server {
    async fn answer(
        &self,
        request: Request<Incoming>,
        ip: IpAddr,
        displaced: &CancellationToken,
    ) -> Response<Full<Bytes>> {
        let (status, body) = match self.taken(request, network(ip), displaced).await {
            Ok(done) => (StatusCode::OK, json!({ "status": done })),
            Err((status, reason)) => (status, json!({ "error": reason })),
        };
        let mut response = Response::new(Full::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }

    async fn taken(
        &self,
        request: Request<Incoming>,
        sender: IpAddr,
        displaced: &CancellationToken,
    ) -> Answer {
        if !self.has_room(sender) {
            return refuse(StatusCode::TOO_MANY_REQUESTS, "too many requests");
        }
        let (head, body) = request.into_parts();
        let name = head.uri.path().strip_prefix(PATH);
        let endpoint = name.and_then(|name| self.channel.endpoints.get_key_value(name));
        let Some((name, endpoint)) = endpoint else {
            return refuse(StatusCode::NOT_FOUND, "there is no such webhook");
        };
        if head.method != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "webhooks use POST");
        }
        let mut held = self.bodies.begin(sender);
        let reading = read_body(body, BODY_BYTES_MAX, |bytes| held.add(bytes));
        let body = tokio::select! {
            body = timeout(BODY_TIMEOUT, reading) => body,
            () = displaced.cancelled() => return refuse(StatusCode::SERVICE_UNAVAILABLE, CROWDED),
        };
        let Ok(body) = body else {
            return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long");
        };
        let body = body.or_else(|refused| match refused {
            BodyRefused::TooLong => refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body has more than 256 KiB",
            ),
            BodyRefused::Broken => {
                refuse(StatusCode::BAD_REQUEST, "the body did not arrive in full")
            }
            BodyRefused::NoRoom => refuse(StatusCode::SERVICE_UNAVAILABLE, CROWDED),
        })?;
        let signed = signed(&head.headers);
        let now = clock::wall_seconds();
        if let Err(rejected) = endpoint.signer.verify(&signed, now, &body) {
            tracing::warn!(webhook = %name, "refused: {rejected}");
            return refuse(StatusCode::UNAUTHORIZED, &rejected.to_string());
        }
        let event = inbound::read(name, &signed.id, now, &body)
            .map_err(|reason| (StatusCode::BAD_REQUEST, reason.to_owned()))?;
        match self.inbox.push(event).await {
            Ok(InboxResult::Accepted) => Ok("accepted"),
            Ok(InboxResult::Duplicate) => Ok("known"),
            Ok(InboxResult::Dropped) => refuse(
                StatusCode::FORBIDDEN,
                &format!(
                    "`webhook:{name}` is not a user of this hub, or its role does not allow this"
                ),
            ),
            Err(InboxError::Malformed { reason }) => refuse(StatusCode::BAD_REQUEST, &reason),
            Err(error @ InboxError::Full) => {
                refuse(StatusCode::TOO_MANY_REQUESTS, &error.to_string())
            }
            Err(InboxError::Later { reason }) => {
                tracing::warn!(webhook = %name, "not taken: {reason}");
                refuse(StatusCode::SERVICE_UNAVAILABLE, "it cannot be accepted now")
            }
        }
    }

    /// Counts a request. Returns whether there is room for it; those for which there is none take no room from others.
    fn has_room(&self, sender: IpAddr) -> bool {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if now.duration_since(requests.since) >= Duration::from_secs(1) {
            *requests = Requests {
                since: now,
                all: 0,
                of_address: HashMap::new(),
            };
        }
        let of_address = requests
            .of_address
            .get(&sender)
            .copied()
            .unwrap_or_default();
        if requests.all >= REQUESTS_MAX || of_address >= REQUESTS_OF_ADDRESS_MAX {
            return false;
        }
        requests.all += 1;
        requests.of_address.insert(sender, of_address + 1);
        true
    }
}

fn refuse<T>(status: StatusCode, reason: &str) -> Result<T, (StatusCode, String)> {
    Err((status, reason.to_owned()))
}

fn signed(headers: &HeaderMap) -> Signed {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|it| it.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    Signed {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    }
}
