//! Requests to the Bot API over Rondo's own connections.

use crate::form::Form;
use crate::token::BotToken;
use bytes::{Bytes, BytesMut};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use rondo_http::{PostError, RawRequest, RawResponse, Transport};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The address of Telegram's own server.
pub const TELEGRAM_URL: &str = "https://api.telegram.org";

/// How long an ordinary request may take, and one that carries a file.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(50);
/// The bound on an answer: 100 updates of the largest messages.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The bound on an error's description.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// A bot's access to a Bot API server. Clones share its connections.
#[derive(Clone)]
pub struct Api {
    transport: Transport,
    base_url: String,
    token: BotToken,
}

/// Why a method did not succeed. No text of it has the token or an address.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no connection, so that nothing was sent.
    #[error("`{method}`: no connection to the Bot API server: {reason}")]
    Unsent {
        /// The method.
        method: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The request was sent and no readable answer came: it may have been carried out.
    #[error("`{method}`: {reason}")]
    Unknown {
        /// The method.
        method: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The server refused.
    #[error("`{method}` was refused: {description} ({code})")]
    Refused {
        /// The method.
        method: &'static str,
        /// The code, as of HTTP.
        code: u16,
        /// Why, in the server's words, of at most 300 characters.
        description: String,
        /// How long to wait, for 429.
        retry_after: Option<Duration>,
        /// The new id of the chat that the request was about.
        migrate_to: Option<i64>,
    },
    /// A file or an answer has more bytes than are taken.
    #[error("`{method}`: it has more than {max} bytes")]
    TooLarge {
        /// The method, or `file`.
        method: &'static str,
        /// The bound.
        max: usize,
    },
}

/// An answer, of which each field may be missing or of another shape in an error.
#[derive(Deserialize)]
struct Answer<R> {
    #[serde(default)]
    ok: bool,
    result: Option<R>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl Api {
    /// Builds access for a bot. `base_url` is [`TELEGRAM_URL`], or that of a Bot API server of one's own.
    #[must_use]
    pub fn new(transport: Transport, base_url: &str, token: BotToken) -> Self {
        Self {
            transport,
            base_url: base_url.trim().trim_end_matches('/').to_owned(),
            token,
        }
    }

    /// Returns the token.
    #[must_use]
    pub fn token(&self) -> &BotToken {
        &self.token
    }

    /// Calls a method with its parameters.
    ///
    /// # Errors
    /// As [`ApiError`] says.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request; the server may have carried it out.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
    ) -> Result<R, ApiError> {
        self.call_within(method, parameters, CALL_TIMEOUT).await
    }

    /// As [`Api::call`], with a timeout of its own.
    ///
    /// # Errors
    /// As [`ApiError`] says.
    ///
    /// # Cancel safety
    /// As [`Api::call`].
    pub async fn call_within<R: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<R, ApiError> {
        let body = serde_json::to_vec(parameters).map_err(|err| ApiError::Unsent {
            method,
            reason: format!("the parameters are not JSON: {err}"),
        })?;
        let kind = HeaderValue::from_static("application/json");
        self.post(method, kind, body.into(), timeout).await
    }

    /// Calls a method whose parameters include files.
    ///
    /// # Errors
    /// As [`ApiError`] says.
    ///
    /// # Cancel safety
    /// As [`Api::call`].
    pub async fn upload<R: DeserializeOwned>(
        &self,
        method: &'static str,
        form: Form,
    ) -> Result<R, ApiError> {
        let kind = HeaderValue::try_from(form.content_type()).map_err(|_| ApiError::Unsent {
            method,
            reason: "the form has no boundary".to_owned(),
        })?;
        self.post(method, kind, form.finish(), UPLOAD_TIMEOUT).await
    }

    /// Downloads a file by the path that `getFile` returned.
    ///
    /// # Errors
    /// [`ApiError::TooLarge`] when it has more than `max` bytes.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request.
    pub async fn download(&self, file_path: &str, max: usize) -> Result<Bytes, ApiError> {
        const METHOD: &str = "file";
        let is_part = |it: char| it.is_ascii_alphanumeric() || "-_./".contains(it);
        if file_path.contains("..") || !file_path.chars().all(is_part) {
            return Err(ApiError::Unsent {
                method: METHOD,
                reason: "the server sent an invalid path".to_owned(),
            });
        }
        let token = self.token.secret().expose();
        let request = RawRequest {
            method: Method::GET,
            url: format!("{}/file/bot{token}/{file_path}", self.base_url),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let mut response = self.send(METHOD, request).await?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(self.refused(METHOD, status, None::<&Answer<IgnoredAny>>));
        }
        self.read(METHOD, &mut response, max).await
    }

    async fn post<R: DeserializeOwned>(
        &self,
        method: &'static str,
        kind: HeaderValue,
        body: Bytes,
        timeout: Duration,
    ) -> Result<R, ApiError> {
        let token = self.token.secret().expose();
        let request = RawRequest {
            method: Method::POST,
            url: format!("{}/bot{token}/{method}", self.base_url),
            headers: HeaderMap::from_iter([(CONTENT_TYPE, kind)]),
            body,
        };
        let exchange = async {
            let mut response = self.send(method, request).await?;
            let body = self.read(method, &mut response, ANSWER_BYTES_MAX).await?;
            self.answer(method, response.status(), &body)
        };
        let timed_out = || ApiError::Unknown {
            method,
            reason: format!("no answer within {} s", timeout.as_secs()),
        };
        tokio::time::timeout(timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(timed_out()))
    }

    async fn send(
        &self,
        method: &'static str,
        request: RawRequest,
    ) -> Result<RawResponse, ApiError> {
        self.transport.send(request).await.map_err(|err| {
            let reason = self.token.scrubbed(&causes(&err));
            match err.is_unsent() {
                true => ApiError::Unsent { method, reason },
                false => ApiError::Unknown { method, reason },
            }
        })
    }

    async fn read(
        &self,
        method: &'static str,
        response: &mut RawResponse,
        max: usize,
    ) -> Result<Bytes, ApiError> {
        let mut body = BytesMut::new();
        loop {
            let chunk = response.chunk().await.map_err(|err| ApiError::Unknown {
                method,
                reason: self.token.scrubbed(&causes(&err)),
            })?;
            let Some(chunk) = chunk else {
                return Ok(body.freeze());
            };
            if body.len().saturating_add(chunk.len()) > max {
                return Err(ApiError::TooLarge { method, max });
            }
            body.extend_from_slice(&chunk);
        }
    }

    fn answer<R: DeserializeOwned>(
        &self,
        method: &'static str,
        status: StatusCode,
        body: &[u8],
    ) -> Result<R, ApiError> {
        match serde_json::from_slice::<Answer<R>>(body) {
            Ok(Answer {
                ok: true,
                result: Some(result),
                ..
            }) => Ok(result),
            Ok(answer) if !answer.ok => Err(self.refused(method, status, Some(&answer))),
            _ => Err(self.unreadable(method, status, body)),
        }
    }

    /// A success whose result is not of the expected shape, or no JSON at all, such as a gateway's page.
    fn unreadable(&self, method: &'static str, status: StatusCode, body: &[u8]) -> ApiError {
        match serde_json::from_slice::<Answer<IgnoredAny>>(body) {
            Ok(answer) if !answer.ok => self.refused(method, status, Some(&answer)),
            _ => ApiError::Unknown {
                method,
                reason: format!("an answer that is not the Bot API's, with status {status}"),
            },
        }
    }

    fn refused<R>(
        &self,
        method: &'static str,
        status: StatusCode,
        answer: Option<&Answer<R>>,
    ) -> ApiError {
        let description = answer.and_then(|it| it.description.as_deref());
        let description = description.unwrap_or("no reason is given");
        let shown = description.chars().filter(|it| !it.is_control());
        let parameters = answer.and_then(|it| it.parameters.as_ref());
        ApiError::Refused {
            method,
            code: answer
                .and_then(|it| it.error_code)
                .unwrap_or(status.as_u16()),
            description: self
                .token
                .scrubbed(&shown.take(DESCRIPTION_CHARS_MAX).collect::<String>()),
            retry_after: parameters
                .and_then(|it| it.retry_after)
                .map(Duration::from_secs),
            migrate_to: parameters.and_then(|it| it.migrate_to_chat_id),
        }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("base_url", &rondo_http::without_credentials(&self.base_url))
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl ApiError {
    /// Returns whether the server refused with this code and a description that contains a text.
    #[must_use]
    pub fn says(&self, code: u16, text: &str) -> bool {
        matches!(self, Self::Refused { code: was, description, .. }
            if *was == code && description.contains(text))
    }

    /// Returns the code with which the server refused.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns how long the server wants to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Writes an error with what caused it, in one line.
fn causes(error: &PostError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next.filter(|_| text.len() < 512) {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
