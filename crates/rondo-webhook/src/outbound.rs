//! Sending replies: one signed request each.

use crate::channel::{Inner, NAME};
use crate::clock;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use rondo_http::{RawRequest, RawResponse};
use rondo_hub::channel::{Choice, OutboxKind, Outgoing, Receipt, SendError};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use tokio::time::timeout;

/// How long a receiver may take for its answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The bound on the part of an answer that is read so that its connection can be kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The longest wait that a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// Body of a reply.
#[derive(Serialize)]
struct Body<'a> {
    /// Kind of message.
    #[serde(rename = "type")]
    kind: OutboxKind,
    /// Which of the endpoint's conversations it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    /// The text, as Markdown.
    text: &'a str,
    /// How a question can be answered: with `token` and `value` of one of these.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    choices: &'a [Choice],
    /// The names of files, which are not sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<&'a str>,
}

/// Posts a message. Its id is the same for each attempt, so that the receiver takes it once.
pub(crate) async fn send(channel: &Inner, message: &Outgoing) -> Result<Receipt, SendError> {
    let endpoint = channel.endpoints.get(&message.chat.chat_id);
    let Some(endpoint) = endpoint.filter(|_| message.chat.channel == NAME) else {
        let reason = "the webhook is not configured any more".to_owned();
        return Err(SendError::Refused { reason });
    };
    let body = Body {
        kind: message.kind,
        topic: message.chat.topic.as_deref(),
        text: &message.text,
        choices: &message.choices,
        files: message.files.iter().map(|it| it.name.as_str()).collect(),
    };
    let body = serde_json::to_vec(&body).map_err(|error| SendError::Refused {
        reason: format!("it cannot be written as JSON: {error}"),
    })?;
    let id = id(&message.key);
    let signed = endpoint.signer.sign(&id, clock::wall_seconds(), &body);
    let headers = [
        ("webhook-id", &signed.id),
        ("webhook-timestamp", &signed.timestamp),
        ("webhook-signature", &signed.signature),
    ];
    let mut map =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    for (name, value) in headers {
        let value = HeaderValue::try_from(value).map_err(|_| SendError::Refused {
            reason: "a header cannot be sent".to_owned(),
        })?;
        map.insert(HeaderName::from_static(name), value);
    }
    let request = RawRequest {
        method: Method::POST,
        url: endpoint.reply_url.clone(),
        headers: map,
        body: Bytes::from(body),
    };
    match timeout(TIMEOUT, channel.transport.send(request)).await {
        Err(_) => Err(ambiguous("no answer came in time")),
        Ok(Err(error)) if error.is_unsent() => Err(SendError::Retry {
            after: None,
            reason: "the receiver cannot be reached".to_owned(),
        }),
        Ok(Err(_)) => Err(ambiguous("the connection broke")),
        Ok(Ok(response)) => received(response, id).await,
    }
}

/// Names a message for its receiver, with characters that every receiver takes.
fn id(key: &str) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(key.as_bytes()));
    format!("msg_{hash}")
}

async fn received(response: RawResponse, id: String) -> Result<Receipt, SendError> {
    let status = response.status();
    let wait = response.headers().get(RETRY_AFTER);
    let wait = wait.and_then(|it| it.to_str().ok()?.trim().parse().ok());
    let wait = wait.map(|it| Duration::from_secs(it).min(RETRY_AFTER_MAX));
    drain(response).await;
    let reason = format!("the receiver answered with status {}", status.as_u16());
    match status {
        _ if status.is_success() => Ok(Receipt(id)),
        StatusCode::GONE => Err(SendError::Gone { reason }),
        // Whatever else is wrong may be mended there, and repeating it does no harm.
        _ => Err(SendError::Retry {
            after: wait,
            reason,
        }),
    }
}

fn ambiguous(reason: &str) -> SendError {
    SendError::Ambiguous {
        reason: reason.to_owned(),
    }
}

async fn drain(mut response: RawResponse) {
    let mut left = ANSWER_BYTES_MAX;
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await
            && piece.len() < left
        {
            left -= piece.len();
        }
    };
    // The rest of the response does not matter.
    let _: Result<(), _> = timeout(TIMEOUT, read).await;
}
