//! Events of a chat, as server-sent events: the updates of its session and the messages that it was sent, each with a
//! place to resume from. Closing a stream stops nothing, and a slow listener holds nothing up.

use super::Shared;
use super::call::{Call, Caller};
use super::chats::existing;
use super::error::ApiError;
use super::messages::Message;
use super::metrics::OpenStream;
use super::revoked::StreamPlace;
use crate::channel::ChatKey;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use rondo_runtime::service::{Cursor, Subscription, Update};
use rondo_types::SessionId;
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often something is sent on an idle stream, so that proxies leave it open.
const PING: Duration = Duration::from_secs(15);
/// Messages that are read at once, and held until they are written: 1 MiB each at the most.
const MESSAGES_AT_ONCE: usize = 8;

/// The data of an event.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EventData<'a> {
    /// Session of the following events: at the beginning, and when a new conversation was started.
    Session { session: &'a SessionId },
    /// Something happened in the session.
    Update { update: &'a Update },
    /// The chat was sent a message.
    Message { message: &'a Message },
}

/// Position of a listener: after a message of the chat, and after an update of a session.
#[derive(Debug, Clone, PartialEq)]
struct ListenerPosition {
    session: String,
    message: u64,
    cursor: Cursor,
}

impl fmt::Display for ListenerPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}~{}", self.session, self.message, self.cursor)
    }
}

impl FromStr for ListenerPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('~');
        let (session, message, cursor) = (parts.next(), parts.next(), parts.next());
        let (Some(session), Some(message), Some(cursor), None) =
            (session, message, cursor, parts.next())
        else {
            return Err(());
        };
        Ok(Self {
            session: session.to_owned(),
            message: message.parse().map_err(|_| ())?,
            cursor: cursor.parse().map_err(|_| ())?,
        })
    }
}

/// A listener of a chat.
struct Listener {
    shared: Arc<Shared>,
    chat: ChatKey,
    session: SessionId,
    updates: Subscription,
    /// The number of the latest message that was sent.
    message: u64,
    /// Fires when there may be more messages.
    changes: watch::Receiver<u64>,
    /// Events to send.
    waiting: VecDeque<Bytes>,
    place: StreamPlace,
    _counted: OpenStream,
}

pub(super) async fn stream(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let from = started(&call)?;
    let (chat, row) = existing(&call, &caller).await?;
    let shared = &call.shared;
    let parts = shared.parts()?;
    let place = parts.keys.open(&caller.key).ok_or_else(|| {
        let message = format!("a key has at most {} streams", super::revoked::STREAMS_MAX);
        ApiError::too_many(message, 1)
    })?;
    let session = shared.session(&chat).await?;
    let is_now = matches!(from, From::Now);
    let (message, cursor) = match from {
        From::Start => (0, Cursor::START),
        From::Now => (row.latest, Cursor::START),
        // Its session may have changed by now, which shows at its beginning then.
        From::After(it) if it.session == session.id().as_str() => (it.message, it.cursor),
        From::After(it) => (it.message, Cursor::START),
    };
    let mut updates = session.subscribe(cursor);
    if is_now {
        let skipped = updates.skip().await;
        skipped.map_err(|error| ApiError::internal(&error))?;
    }
    let mut changes = parts.messages.changed();
    changes.mark_changed();
    let mut listener = Listener {
        shared: Arc::clone(shared),
        chat,
        session: session.id().clone(),
        updates,
        message,
        changes,
        waiting: VecDeque::new(),
        place,
        _counted: parts.figures.stream(),
    };
    listener.tell_session();
    Ok(response(listener))
}

enum From {
    Start,
    Now,
    After(ListenerPosition),
}

fn started(call: &Call) -> Result<From, ApiError> {
    let from = match call.query("from").as_deref() {
        None | Some("start") => From::Start,
        Some("now") => From::Now,
        Some(_) => return Err(ApiError::bad_request("`from` is `start` or `now`")),
    };
    let Some(id) = call.head.headers.get("last-event-id") else {
        return Ok(from);
    };
    let place = id.to_str().ok().and_then(|it| it.parse().ok());
    place.map(From::After).ok_or_else(|| {
        ApiError::bad_request("`Last-Event-ID` is the `id` of an event of this stream")
    })
}

fn response(listener: Listener) -> Response {
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    // A proxy would hold small events back otherwise.
    let unbuffered = header::HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

impl Listener {
    /// Returns the next event; `None` once the key is revoked or the hub stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.place.revoked.is_cancelled() {
                return None;
            }
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return None,
                () = self.place.revoked.cancelled() => return None,
                _ = self.changes.changed() => self.read_messages().await?,
                update = self.updates.next() => match update {
                    Ok(update) => self.tell(&EventData::Update { update: &update }),
                    Err(error) => {
                        tracing::warn!(%error, "the updates of a session cannot be read");
                        return None;
                    }
                },
                () = sleep(PING) => return Some(Bytes::from_static(b": ping\n\n")),
            }
        }
    }

    /// Sends new messages, and follows the chat if it started over.
    async fn read_messages(&mut self) -> Option<()> {
        let found = self
            .shared
            .parts()
            .ok()?
            .messages
            .after(&self.chat, self.message, MESSAGES_AT_ONCE)
            .await;
        let found = readable(found)?;
        if found.len() == MESSAGES_AT_ONCE {
            self.changes.mark_changed();
        }
        for message in found {
            self.message = message.id;
            self.tell(&EventData::Message { message: &message });
        }
        let session = self.shared.session(&self.chat).await.ok()?;
        if *session.id() != self.session {
            self.session = session.id().clone();
            self.updates = session.subscribe(Cursor::START);
            self.tell_session();
        }
        Some(())
    }

    fn tell_session(&mut self) {
        let session = self.session.clone();
        self.tell(&EventData::Session { session: &session });
    }

    fn tell(&mut self, data: &EventData<'_>) {
        let place = ListenerPosition {
            session: self.session.to_string(),
            message: self.message,
            cursor: self.updates.cursor(),
        };
        match serde_json::to_string(data) {
            Ok(data) => {
                let event = format!("id: {place}\ndata: {data}\n\n");
                self.waiting.push_back(event.into());
            }
            Err(error) => tracing::error!(%error, "an event cannot be written"),
        }
    }
}

fn readable<T, E: fmt::Display>(read: Result<T, E>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "a chat cannot be read"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_and_other_texts_are_refused() {
        let place = ListenerPosition {
            session: "api@ada_home+2".to_owned(),
            message: 7,
            cursor: "3.1.17.5.1700000000000".parse().unwrap(),
        };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "~", "s~1", "s~x~0.0.0.0.0", "s~1~x", "s~1~0.0.0.0.0~"] {
            assert_eq!(text.parse::<ListenerPosition>(), Err(()), "{text}");
        }
    }
}
