//! A client of a running hub's API, as `rondo chat` uses it.

use crate::api::ChatMessage;
use crate::keys::{ApiKey, KeyError, random};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use rondo_http::{HttpError, Network, PostError, RawRequest, RawResponse, Transport};
use rondo_types::AnswerValue;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Bytes of a response that is not a stream, and of one event.
const RESPONSE_BYTES_MAX: usize = 16 << 20;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client of one hub, with one key.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
    base: String,
    key: ApiKey,
}

/// Why a request was not answered. No key is in a text of it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection can be made with these settings.
    #[error(transparent)]
    Setup(#[from] HttpError),
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] KeyError),
    /// The key is not one that can be sent.
    #[error("the key has invalid characters")]
    Key,
    /// No response came, or no more of one.
    #[error("the hub at {base} cannot be reached: {reason}")]
    Connection {
        /// Expected address.
        base: String,
        /// Cause of the failure.
        reason: String,
    },
    /// The hub refused.
    #[error("the hub refuses ({status}): {message}")]
    Refused {
        /// The status.
        status: u16,
        /// Message of the hub.
        message: String,
    },
    /// It is not a hub, or of another version.
    #[error("the response from {base} is not that of a hub: {reason}")]
    Answer {
        /// Address of the response.
        base: String,
        /// Problem with the response.
        reason: String,
    },
}

impl ClientError {
    /// Returns whether retrying is useless before something is changed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Connection { .. } => false,
            Self::Refused { status, .. } => !matches!(status, 408 | 429 | 500..),
            Self::Setup(_) | Self::Random(_) | Self::Key | Self::Answer { .. } => true,
        }
    }

    /// Returns whether there is no such thing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

/// Returns a name for a submission that no other one has.
///
/// # Errors
/// When the system has no random bytes.
pub fn submission_name() -> Result<String, ClientError> {
    Ok(HEXLOWER.encode(&random::<16>()?))
}

/// The place from which events are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    /// From the beginning of the chat's session.
    Start,
    /// From now on.
    Now,
    /// After the event of this id.
    After(String),
}

/// An event of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatEvent {
    /// Names the place after it.
    pub id: String,
    /// Content of the event.
    pub body: ChatEventBody,
}

/// Content of an event of a chat.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatEventBody {
    /// Session of the following events.
    Session {
        /// Id of the session.
        session: String,
    },
    /// Something happened in the session, as `docs/hosts.md` has it.
    Update {
        /// Update of the session.
        update: Value,
    },
    /// The chat was sent a message.
    Message {
        /// The message.
        message: ChatMessage,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// The events of a chat as they come.
pub struct Events {
    response: RawResponse,
    base: String,
    reader: EventReader,
}

impl Client {
    /// Returns a client for the hub at an address such as `http://127.0.0.1:7456`.
    ///
    /// # Errors
    /// When the settings of the network are not good.
    pub fn new(network: Network, base: &str, key: ApiKey) -> Result<Self, ClientError> {
        Ok(Self {
            transport: Transport::new(network)?,
            base: base.trim_end_matches('/').to_owned(),
            key,
        })
    }

    /// Sends a message. Sent again under the same name it counts once.
    ///
    /// # Errors
    /// When the hub cannot be reached or refuses.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be sent; under the same name it can be sent again.
    pub async fn send(&self, chat: &str, name: &str, text: &str) -> Result<(), ClientError> {
        let body = json!({ "text": text });
        self.submit(chat, "messages", name, Some(&body)).await
    }

    /// Answers a question.
    ///
    /// # Errors
    /// As [`Client::send`].
    ///
    /// # Cancel safety
    /// As [`Client::send`].
    pub async fn answer(
        &self,
        chat: &str,
        name: &str,
        token: &str,
        value: &AnswerValue,
    ) -> Result<(), ClientError> {
        let mut body = serde_json::to_value(value).unwrap_or_default();
        if let Value::Object(fields) = &mut body {
            fields.insert("token".to_owned(), token.into());
        }
        self.submit(chat, "answers", name, Some(&body)).await
    }

    /// Stops the turn that runs.
    ///
    /// # Errors
    /// As [`Client::send`].
    ///
    /// # Cancel safety
    /// As [`Client::send`].
    pub async fn cancel(&self, chat: &str, name: &str) -> Result<(), ClientError> {
        self.submit(chat, "cancel", name, None).await
    }

    /// Listens to a chat.
    ///
    /// # Errors
    /// As [`Client::send`]; also when there is no such chat yet.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn events(&self, chat: &str, from: &EventsFrom) -> Result<Events, ClientError> {
        let mut headers = HeaderMap::new();
        let query = match from {
            EventsFrom::Start => "?from=start",
            EventsFrom::Now => "?from=now",
            EventsFrom::After(id) => {
                let id = HeaderValue::from_str(id).map_err(|error| self.odd(&error))?;
                headers.insert(LAST_EVENT_ID, id);
                ""
            }
        };
        let path = format!("/v1/chats/{chat}/events{query}");
        let response = self.request(Method::GET, &path, headers, None).await?;
        Ok(Events {
            response,
            base: self.base.clone(),
            reader: EventReader::default(),
        })
    }

    async fn submit(
        &self,
        chat: &str,
        what: &str,
        name: &str,
        body: Option<&Value>,
    ) -> Result<(), ClientError> {
        let mut headers = HeaderMap::new();
        let name = HeaderValue::from_str(name).map_err(|error| self.odd(&error))?;
        headers.insert(IDEMPOTENCY_KEY, name);
        let path = format!("/v1/chats/{chat}/{what}");
        let response = self.request(Method::POST, &path, headers, body).await?;
        // Its connection can be used again once it was read.
        self.read(response).await.map(drop)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Option<&Value>,
    ) -> Result<RawResponse, ClientError> {
        let bearer = format!("Bearer {}", self.key.reveal());
        let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| ClientError::Key)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        if body.is_some() {
            headers.insert(CONTENT_TYPE, JSON);
        }
        let request = RawRequest {
            method,
            url: format!("{}{path}", self.base),
            headers,
            body: body.map_or_else(Bytes::new, |body| body.to_string().into()),
        };
        let sent = self.transport.send(request).await;
        let response = sent.map_err(|error| unreached(&self.base, &error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.read(response).await.unwrap_or_default();
        Err(refused(status, &body))
    }

    async fn read(&self, mut response: RawResponse) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        loop {
            let piece = response.chunk().await;
            match piece.map_err(|error| unreached(&self.base, &error))? {
                None => return Ok(body),
                Some(piece) if body.len() + piece.len() > RESPONSE_BYTES_MAX => {
                    return Err(self.odd(&"the response is too long"));
                }
                Some(piece) => body.extend_from_slice(&piece),
            }
        }
    }

    fn odd(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::Answer {
            base: self.base.clone(),
            reason: reason.to_string(),
        }
    }
}

impl Events {
    /// Waits for the next event; `None` once the hub ends the stream, from where it can be begun again after the last
    /// event.
    ///
    /// # Errors
    /// When the connection fails, or what comes is not what a hub tells.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>, ClientError> {
        loop {
            if let Some((id, data)) = self.reader.events.pop_front() {
                let body = serde_json::from_str(&data).map_err(|error| self.odd(&error))?;
                return Ok(Some(ChatEvent { id, body }));
            }
            let piece = self.response.chunk().await;
            match piece.map_err(|error| unreached(&self.base, &error))? {
                None => return Ok(None),
                Some(piece) => {
                    let read = self.reader.read(&piece);
                    read.map_err(|reason| self.odd(&reason))?;
                }
            }
        }
    }

    fn odd(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::Answer {
            base: self.base.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Puts events together from the lines of a hub's stream: each has its `id`, its `data` in one line, and an empty line.
#[derive(Debug, Default)]
struct EventReader {
    line: Vec<u8>,
    id: String,
    data: String,
    /// Events that are whole.
    events: VecDeque<(String, String)>,
}

impl EventReader {
    fn read(&mut self, piece: &[u8]) -> Result<(), &'static str> {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > RESPONSE_BYTES_MAX {
                return Err("an event is too long");
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.line_end(&line)?;
            }
        }
        Ok(())
    }

    fn line_end(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "an event is not UTF-8")?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            if !self.data.is_empty() {
                let event = (self.id.clone(), std::mem::take(&mut self.data));
                self.events.push_back(event);
            }
        } else if let Some(id) = line.strip_prefix("id: ") {
            id.clone_into(&mut self.id);
        } else if let Some(data) = line.strip_prefix("data: ") {
            data.clone_into(&mut self.data);
        }
        Ok(())
    }
}

fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = body.pointer("/error/message").and_then(Value::as_str);
    let known = status.canonical_reason().unwrap_or("an unknown status");
    ClientError::Refused {
        status: status.as_u16(),
        message: said.unwrap_or(known).to_owned(),
    }
}

fn unreached(base: &str, error: &PostError) -> ClientError {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let _ = write!(reason, ": {cause}");
        source = cause.source();
    }
    ClientError::Connection {
        base: base.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_pieces_of_any_size() {
        let stream = b": ping\n\nid: a~1\ndata: {\"x\":1}\n\nid: b\ndata: second\n\n".as_slice();
        for size in 1..stream.len() {
            let mut reader = EventReader::default();
            for piece in stream.chunks(size) {
                reader.read(piece).unwrap();
            }
            let events: Vec<_> = reader.events.into();
            let event = |id: &str, data: &str| (id.to_owned(), data.to_owned());
            assert_eq!(
                events,
                [event("a~1", "{\"x\":1}"), event("b", "second")],
                "{size}"
            );
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut reader = EventReader::default();
        let piece = vec![b'x'; RESPONSE_BYTES_MAX];
        reader.read(&piece).unwrap();
        assert!(reader.read(b"x").is_err());
    }
}
