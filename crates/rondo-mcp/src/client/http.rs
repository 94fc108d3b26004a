//! rmcp's HTTP client, over the connections that all requests of Rondo share: its proxies and certificates.

use super::flood::{Flood, FloodKind, Values};
use crate::sign_in::Tokens;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rondo_http::{PostError, RawRequest, RawResponse, Transport};
use sse_stream::{Error as SseError, Sse, SseStream};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use url::Url;

/// The bound on a JSON response and on one event of a stream, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How often one request is sent elsewhere.
const REDIRECTS_MAX: usize = 3;
/// The bound on the part of an error's body that is read, in bytes.
const ERROR_BYTES_MAX: usize = 8 << 10;
/// Characters of that which are shown.
const ERROR_CHARS_MAX: usize = 200;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) type Failure = StreamableHttpError<PostError>;

/// Sends the messages of one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) transport: Transport,
    pub(super) tokens: Tokens,
    /// Counts what the server sends in streams.
    pub(super) flood: Arc<Flood>,
}

/// The headers of a request.
struct Head {
    session: Option<Arc<str>>,
    token: Option<String>,
    custom: HashMap<HeaderName, HeaderValue>,
}

impl Head {
    fn into_map(self) -> Result<HeaderMap, Failure> {
        let broken =
            |_| StreamableHttpError::UnexpectedServerResponse("a header cannot be sent".into());
        let mut headers = HeaderMap::new();
        for (name, value) in self.custom {
            headers.insert(name, value);
        }
        headers.insert(ACCEPT, BOTH);
        if let Some(session) = self.session {
            headers.insert(
                SESSION_ID,
                HeaderValue::try_from(&*session).map_err(broken)?,
            );
        }
        if let Some(token) = self.token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(broken)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

impl HttpClient {
    async fn send(
        &self,
        method: Method,
        url: &str,
        head: Head,
        body: Bytes,
    ) -> Result<RawResponse, Failure> {
        let mut headers = head.into_map()?;
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            let request = RawRequest {
                method: method.clone(),
                url: url.clone(),
                headers: headers.clone(),
                body: body.clone(),
            };
            let sent = self.transport.send(request).await;
            let response = sent.map_err(StreamableHttpError::Client)?;
            let Some(target) = redirected(&url, &response) else {
                return Ok(response);
            };
            url = target?;
        }
        let message = format!("it redirects more than {REDIRECTS_MAX} times");
        Err(StreamableHttpError::UnexpectedServerResponse(
            message.into(),
        ))
    }

    fn parsed(&self, body: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
        if !Values::are_within(body) {
            self.flood.has_too_many_values();
            return Err(serde::de::Error::custom("it has too many values"));
        }
        serde_json::from_slice(body)
    }

    /// A server that asks for authorization says where to get it in a header.
    fn refuse_unauthorised(&self, response: &RawResponse) -> Result<(), Failure> {
        let challenge = header(response, &WWW_AUTHENTICATE);
        match (response.status(), challenge) {
            (StatusCode::UNAUTHORIZED, challenge) => {
                let challenge = challenge.unwrap_or_default();
                self.tokens.keep_challenge(&challenge);
                let error = AuthRequiredError::new(challenge);
                Err(StreamableHttpError::AuthRequired(error))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                self.tokens.keep_challenge(&challenge);
                let error = InsufficientScopeError::new(challenge, None);
                Err(StreamableHttpError::InsufficientScope(error))
            }
            _ => Ok(()),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = PostError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let had_session = session_id.is_some();
        let head = Head {
            session: session_id,
            token: auth_header,
            custom: custom_headers,
        };
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let response = self.send(Method::POST, &uri, head, body).await?;
        self.refuse_unauthorised(&response)?;
        let awaits_reply = matches!(message, ClientJsonRpcMessage::Request(_));
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if had_session => {
                return Err(StreamableHttpError::SessionExpired);
            }
            _ if status.is_success() => {}
            _ => return refused(self, response, &message, had_session).await,
        }
        let session = header(&response, &SESSION_ID);
        if is_of_type(&response, EVENTS) {
            let events = events(response, &self.flood);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !awaits_reply {
            // Some servers answer a notification with a page.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_of_type(&response, JSON) {
            let kind = header(&response, &CONTENT_TYPE);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = read(response, MESSAGE_BYTES_MAX).await?;
        match self.parsed(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(err) => Err(StreamableHttpError::Deserialize(err)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let head = Head {
            session: Some(session_id),
            token: auth_header,
            custom: custom_headers,
        };
        // It is over for us, whatever the server says.
        self.send(Method::DELETE, &uri, head, Bytes::new())
            .await
            .map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            custom_headers.insert(LAST_EVENT_ID, id);
        }
        let head = Head {
            session: session_id,
            token: auth_header,
            custom: custom_headers,
        };
        if !self.flood.count(FloodKind::Streams, 1) {
            return Err(StreamableHttpError::UnexpectedEndOfStream);
        }
        let response = self.send(Method::GET, &uri, head, Bytes::new()).await?;
        self.refuse_unauthorised(&response)?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after(&response)).into());
        }
        if !is_of_type(&response, EVENTS) {
            let kind = header(&response, &CONTENT_TYPE);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        Ok(events(response, &self.flood))
    }
}

/// Returns the address to which a response redirects the request. Only 307 and 308 have it sent again as it is, and its
/// content goes to
/// no other host.
fn redirected(url: &str, response: &RawResponse) -> Option<Result<String, Failure>> {
    let status = response.status();
    if !status.is_redirection() {
        return None;
    }
    let from = Url::parse(url).ok()?;
    let target = from.join(&header(response, &LOCATION)?).ok()?;
    let is_secure = target.scheme() == from.scheme() || target.scheme() == "https";
    let is_same_port = target.scheme() != from.scheme()
        || target.port_or_known_default() == from.port_or_known_default();
    let is_here = target.host() == from.host() && is_secure && is_same_port;
    let is_repeatable = matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    if is_here && is_repeatable {
        return Some(Ok(target.into()));
    }
    // A query may hold a key.
    let mut shown = target;
    shown.set_query(None);
    let shown = rondo_core::shown::line(shown.as_str());
    let message = format!("HTTP {status}: it has moved to `{shown}`; set that as its `url`");
    Some(Err(StreamableHttpError::UnexpectedServerResponse(
        message.into(),
    )))
}

/// A refusal may hold an error of the protocol. One of the first request, without a session, is how servers of the
/// older lifecycle say that they do not know it.
async fn refused(
    client: &HttpClient,
    response: RawResponse,
    message: &ClientJsonRpcMessage,
    had_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let (status, wait) = (response.status(), retry_after(&response));
    let session = header(&response, &SESSION_ID);
    let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let is_json = is_of_type(&response, JSON);
    let body = match is_json && !is_auth {
        true => read(response, MESSAGE_BYTES_MAX).await.unwrap_or_default(),
        false => read_some(response, ERROR_BYTES_MAX).await,
    };
    let is_notification = matches!(message, ClientJsonRpcMessage::Notification(_));
    if is_notification && status.is_client_error() && !is_auth {
        tracing::debug!(%status, "the server refused a notification, which changes nothing");
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::BAD_REQUEST && had_session && is_about_session(&body) {
        return Err(StreamableHttpError::SessionExpired);
    }
    let error = match client.parsed(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) if !is_auth => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !had_session
        && !is_auth
    {
        let said = || ErrorData::invalid_request(format!("HTTP {status}"), None);
        let data = error.map_or_else(said, |error| error.error);
        let answer = ServerJsonRpcMessage::error(data, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    if let Some(error) = error {
        let error = ServerJsonRpcMessage::Error(error);
        return Ok(StreamableHttpPostResponse::Json(error, session));
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return Err(HttpStatusError::new(status.as_u16(), wait).into());
    }
    let text: String = String::from_utf8_lossy(&body)
        .chars()
        .take(ERROR_CHARS_MAX)
        .collect();
    let text = rondo_core::shown::line(text.trim());
    Err(StreamableHttpError::UnexpectedServerResponse(
        format!("HTTP {status}: {text}").into(),
    ))
}

/// Returns whether a refusal speaks of the session: some servers say so when they have forgotten it.
fn is_about_session(body: &[u8]) -> bool {
    let head = body.get(..ERROR_BYTES_MAX).unwrap_or(body);
    String::from_utf8_lossy(head)
        .to_ascii_lowercase()
        .contains("session")
}

fn header(response: &RawResponse, name: &HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn retry_after(response: &RawResponse) -> Option<String> {
    header(response, &RETRY_AFTER)
}

fn is_of_type(response: &RawResponse, kind: &str) -> bool {
    let value = header(response, &CONTENT_TYPE).unwrap_or_default();
    let value = value.split(';').next().unwrap_or_default();
    value.trim().eq_ignore_ascii_case(kind)
}

async fn read(mut response: RawResponse, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(StreamableHttpError::Client)?
    {
        if body.len() + piece.len() > bytes_max {
            return Err(StreamableHttpError::ResponseBodyTooLarge {
                max_size: bytes_max,
            });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Reads the beginning of a body.
async fn read_some(mut response: RawResponse, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < bytes_max
        && let Ok(Some(piece)) = response.chunk().await
    {
        let room = bytes_max - body.len();
        body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
    }
    body
}

/// Returns the events of a body. Each is bounded, and so are their bytes in a period.
fn events(response: RawResponse, flood: &Arc<Flood>) -> BoxStream<'static, Result<Sse, SseError>> {
    let state = Some((response, EventSize::default(), Arc::clone(flood)));
    let pieces = unfold(state, |state| async move {
        let (mut response, mut size, flood) = state?;
        match response.chunk().await {
            Ok(Some(piece)) if !flood.count(FloodKind::Bytes, piece.len() as u64) => None,
            Ok(Some(piece)) if size.takes(&piece) => {
                Some((Ok(piece), Some((response, size, flood))))
            }
            Ok(Some(_)) if size.has_too_many_values => {
                flood.has_too_many_values();
                None
            }
            Ok(Some(_)) => {
                let message = format!("an event is larger than {MESSAGE_BYTES_MAX} bytes");
                Some((Err(io::Error::other(message)), None))
            }
            Ok(None) => None,
            Err(err) => Some((Err(io::Error::other(err)), None)),
        }
    });
    SseStream::from_bytes_stream(pieces.boxed()).boxed()
}

/// Counts the bytes and values of an event, which an empty line ends.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line_bytes: usize,
    values: Values,
    has_too_many_values: bool,
}

impl EventSize {
    fn takes(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            match byte {
                b'\n' if self.line_bytes == 0 => {
                    (self.bytes, self.values) = (0, Values::default());
                }
                b'\n' => self.line_bytes = 0,
                b'\r' => {}
                _ => {
                    self.line_bytes += 1;
                    self.bytes += 1;
                }
            }
            self.has_too_many_values = !self.values.takes(*byte);
            if self.bytes > MESSAGE_BYTES_MAX || self.has_too_many_values {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_bounded_and_an_empty_line_ends_it() {
        let takes = |pieces: &[&[u8]]| {
            let mut size = EventSize::default();
            pieces.iter().all(|piece| size.takes(piece))
        };
        let most = vec![b'x'; MESSAGE_BYTES_MAX];
        assert!(takes(&[&most[1..]]));
        assert!(takes(&[&most]));
        assert!(!takes(&[&most, b"x"]));
        assert!(takes(&[&most, b"\n\n", &most]));
        assert!(takes(&[&most, b"\r\n\r\n", b"x"]));
        assert!(!takes(&[&most, b"\n", b"x"]));
    }
}
