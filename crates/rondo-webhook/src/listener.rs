//! Taking requests: `POST /hooks/NAME`, and nothing else.

use crate::channel::Inner;
use crate::{Signed, clock, inbound};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rondo_hub::channel::ChannelError;
use rondo_hub::inbox::{Inbox, InboxError, Taken};
use serde_json::json;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Where endpoints are.
const PATH: &str = "/hooks/";
/// The bound on a body, in bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How long a head, and a body, may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The bounds on heads.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// Connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Requests a second of all endpoints together, good or not: they are counted before anything of them is looked at.
const REQUESTS_MAX: u32 = 50;
/// How long requests may go on once the hub stops.
const DRAIN: Duration = Duration::from_secs(5);
/// How long accepting rests where the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Server {
    channel: Arc<Inner>,
    inbox: Inbox,
    /// When the present second began, and the requests in it.
    counted: Mutex<(Instant, u32)>,
}

/// Takes requests until `stop` fires, then waits for those that are being answered.
pub(crate) async fn run(
    channel: &Arc<Inner>,
    inbox: Inbox,
    stop: CancellationToken,
) -> Result<(), ChannelError> {
    let failed = |error: std::io::Error| ChannelError::Failed {
        message: format!("webhooks cannot be taken at {}: {error}", channel.listen),
    };
    let listener = TcpListener::bind(channel.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "takes webhooks");
    channel.address.send_replace(Some(address));
    let server = Arc::new(Server {
        channel: Arc::clone(channel),
        inbox,
        counted: Mutex::new((clock::now(), 0)),
    });
    serve(&server, &listener, &stop).await;
    Ok(())
}

async fn serve(server: &Arc<Server>, listener: &TcpListener, stop: &CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // One more is closed at once, rather than kept waiting.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (server, stop) = (Arc::clone(server), stop.clone());
            connections.spawn(async move {
                converse(server, stream, stop).await;
                drop(place);
            });
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn converse(server: Arc<Server>, stream: TcpStream, stop: CancellationToken) {
    let service = service_fn(move |request: Request<Incoming>| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            match timeout(DRAIN, served).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of a webhook broke");
    }
}

/// What a request is answered with.
type Answer = Result<&'static str, (StatusCode, String)>;

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match self.taken(request).await {
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

    async fn taken(&self, request: Request<Incoming>) -> Answer {
        if !self.has_room() {
            return refuse(StatusCode::TOO_MANY_REQUESTS, "too many requests");
        }
        let (head, body) = request.into_parts();
        let name = head.uri.path().strip_prefix(PATH);
        let endpoint = name.and_then(|name| self.channel.endpoints.get_key_value(name));
        let Some((name, endpoint)) = endpoint else {
            return refuse(StatusCode::NOT_FOUND, "there is no such webhook");
        };
        if head.method != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "webhooks are posted");
        }
        let body = timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await;
        let Ok(body) = body else {
            return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long");
        };
        let Ok(body) = body else {
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body has more than 256 KiB",
            );
        };
        let body = body.to_bytes();
        let signed = signed(&head.headers);
        let now = clock::wall_seconds();
        if let Err(rejected) = endpoint.signer.verify(&signed, now, &body) {
            tracing::warn!(webhook = %name, "refused: {rejected}");
            return refuse(StatusCode::UNAUTHORIZED, &rejected.to_string());
        }
        let event = inbound::read(name, &signed.id, now, &body)
            .map_err(|reason| (StatusCode::BAD_REQUEST, reason.to_owned()))?;
        match self.inbox.push(event).await {
            Ok(Taken::Accepted) => Ok("accepted"),
            Ok(Taken::Duplicate) => Ok("known"),
            Ok(Taken::Dropped) => refuse(
                StatusCode::FORBIDDEN,
                &format!("`webhook:{name}` is no user of this hub, or may not do that"),
            ),
            Err(InboxError::Malformed { reason }) => refuse(StatusCode::BAD_REQUEST, &reason),
            Err(error @ InboxError::Full) => {
                refuse(StatusCode::TOO_MANY_REQUESTS, &error.to_string())
            }
            Err(InboxError::Later { reason }) => {
                tracing::warn!(webhook = %name, "not taken: {reason}");
                refuse(StatusCode::SERVICE_UNAVAILABLE, "it cannot be taken now")
            }
        }
    }

    fn has_room(&self) -> bool {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if now.duration_since(counted.0) >= Duration::from_secs(1) {
            *counted = (now, 0);
        }
        counted.1 = counted.1.saturating_add(1);
        counted.1 <= REQUESTS_MAX
    }
}

fn refuse(status: StatusCode, reason: &str) -> Answer {
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
