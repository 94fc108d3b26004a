//! Hands what the caller submits to the hub: messages, answers and stops. The hub decides what they may do.

use super::call::{Call, Caller, Object};
use super::chats::{existing, unreadable};
use super::error::ApiError;
use super::messages::{CHATS_MAX, GivenAnswer};
use super::submissions::reused;
use crate::channel::{ChatKey, ChatKind, Inbound, InboundBody, InboundFile, Sender};
use crate::inbox::{InboxError, InboxResult};
use crate::keys::random;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use data_encoding::{BASE64, HEXLOWER};
use rondo_core::clock::Clock;
use rondo_types::{Media, MediaKind, MediaSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a message's text.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Images of a message, and files of one.
const ATTACHED_MAX: usize = 20;
/// Characters of a file's name.
const FILE_NAME_MAX: usize = 255;
/// Characters of the name of a question.
const TOKEN_CHARS_MAX: usize = 100;
/// Bytes of the caller's own name for a submission.
const KEY_BYTES_MAX: usize = 100;
/// Random bytes of the name of a submission that has none.
const KEY_BYTES: usize = 16;

/// Standard base64 as it must be written: in whole groups, and with no bits that mean nothing.
const BASE64_PATTERN: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// A message to the agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    {"properties": {"text": {"minLength": 1}}},
    {"properties": {"images": {"minItems": 1}}, "required": ["images"]},
    {"properties": {"files": {"minItems": 1}}, "required": ["files"]},
]))]
pub(super) struct NewMessage {
    /// Its text, of at most 256 KiB. Text that begins with `/` is a command, such as `/new` or `/stop`. It may be empty where
    /// images or files go with it.
    #[schemars(length(max = 262_144))]
    text: String,
    /// Images that the model can look at; at most 20.
    #[serde(default)]
    #[schemars(length(max = 20), with = "Vec<NewImage>")]
    images: Vec<Object<NewImage>>,
    /// Other files, which are put into the chat's directory; at most 20.
    #[serde(default)]
    #[schemars(length(max = 20), with = "Vec<NewFile>")]
    files: Vec<Object<NewFile>>,
}

/// An image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewImage {
    /// Its media type.
    media_type: ImageType,
    /// Its bytes in standard base64.
    #[schemars(regex(pattern = BASE64_PATTERN))]
    data: String,
}

/// Types of images that models take.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
enum ImageType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

/// A file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewFile {
    /// Its name, of 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    name: String,
    /// Its bytes in standard base64.
    #[schemars(regex(pattern = BASE64_PATTERN))]
    data: String,
}

/// An answer to a question that the chat was sent.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NewAnswer {
    /// The question, as the choices of its message name it.
    #[schemars(length(min = 1, max = 100))]
    token: String,
    #[serde(flatten)]
    answer: GivenAnswer,
}

/// A submission that is durable.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DurableSubmission {
    /// Its name: that of `Idempotency-Key`, or one that the hub chose.
    id: String,
    /// Set if it came before under that name, and this time changed nothing.
    is_duplicate: bool,
}

pub(super) async fn message(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let chat = call.chat(&caller)?;
    let name = submission_name(&call)?;
    let shared = std::sync::Arc::clone(&call.shared);
    let body = body(call.json().await?)?;
    let begun = shared
        .parts()?
        .messages
        .begin_chat(&chat, Clock::system().now());
    if !begun.await.map_err(unreadable)? {
        let message = format!("you have {CHATS_MAX} chats already");
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_chats",
            message,
        ));
    }
    submit(&shared, &caller, chat, name, body).await
}

pub(super) async fn answer(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let (chat, _) = existing(&call, &caller).await?;
    let name = submission_name(&call)?;
    let shared = std::sync::Arc::clone(&call.shared);
    let given: NewAnswer = call.json().await?;
    if given.token.is_empty() || given.token.chars().count() > TOKEN_CHARS_MAX {
        let message = format!("a token has 1 to {TOKEN_CHARS_MAX} characters");
        return Err(ApiError::bad_request(message));
    }
    let body = InboundBody::Answer {
        token: given.token,
        value: given.answer.into(),
    };
    submit(&shared, &caller, chat, name, body).await
}

pub(super) async fn cancel(call: Call, caller: Caller) -> Result<Response, ApiError> {
    let (chat, _) = existing(&call, &caller).await?;
    let name = submission_name(&call)?;
    let body = InboundBody::Message {
        text: "/stop".to_owned(),
        images: Vec::new(),
        files: Vec::new(),
        notes: Vec::new(),
        by_others: false,
    };
    submit(&call.shared, &caller, chat, name, body).await
}

fn body(message: NewMessage) -> Result<InboundBody, ApiError> {
    let (images, files) = (message.images.len(), message.files.len());
    if images > ATTACHED_MAX || files > ATTACHED_MAX {
        let message = format!("a message has at most {ATTACHED_MAX} images and as many files");
        return Err(ApiError::bad_request(message));
    }
    if message.text.len() > TEXT_BYTES_MAX {
        let message = format!("a text has at most {TEXT_BYTES_MAX} bytes");
        return Err(ApiError::bad_request(message));
    }
    if message.text.is_empty() && images + files == 0 {
        return Err(ApiError::bad_request("the message is empty"));
    }
    Ok(InboundBody::Message {
        text: message.text,
        images: message
            .images
            .into_iter()
            .map(image)
            .collect::<Result<_, _>>()?,
        files: message
            .files
            .into_iter()
            .map(file)
            .collect::<Result<_, _>>()?,
        notes: Vec::new(),
        by_others: false,
    })
}

fn image(Object(image): Object<NewImage>) -> Result<Media, ApiError> {
    decoded(&image.data)?;
    let mime = match image.media_type {
        ImageType::Png => "image/png",
        ImageType::Jpeg => "image/jpeg",
        ImageType::Gif => "image/gif",
        ImageType::Webp => "image/webp",
    };
    Ok(Media {
        kind: MediaKind::Image,
        mime: mime.to_owned(),
        name: None,
        source: MediaSource::Base64(image.data),
    })
}

fn file(Object(file): Object<NewFile>) -> Result<InboundFile, ApiError> {
    if file.name.is_empty() || file.name.chars().count() > FILE_NAME_MAX {
        let message = format!("a file's name has 1 to {FILE_NAME_MAX} characters");
        return Err(ApiError::bad_request(message));
    }
    Ok(InboundFile {
        bytes: decoded(&file.data)?.into(),
        name: file.name,
    })
}

fn decoded(data: &str) -> Result<Vec<u8>, ApiError> {
    let decoded = BASE64.decode(data.as_bytes());
    decoded
        .map_err(|error| ApiError::bad_request(format!("`data` is not standard base64: {error}")))
}

/// The name of a submission within its chat.
enum Name {
    /// The caller's, which may come again.
    Given(String),
    /// A unique one.
    New(String),
}

/// Returns the caller's name for a submission, or a new one.
fn submission_name(call: &Call) -> Result<Name, ApiError> {
    let mut given = call.head.headers.get_all("idempotency-key").iter();
    let bad = || {
        let message = format!(
            "`Idempotency-Key` has 1 to {KEY_BYTES_MAX} letters, digits, `.`, `_`, `:` and `-`"
        );
        ApiError::bad_request(message)
    };
    match (given.next(), given.next()) {
        (None, _) => {
            let random = random::<KEY_BYTES>().map_err(|error| ApiError::internal(&error))?;
            Ok(Name::New(HEXLOWER.encode(&random)))
        }
        (Some(key), None) => {
            let key = key.to_str().map_err(|_| bad())?;
            let is_plain =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
            let is_sound =
                !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.chars().all(is_plain);
            is_sound
                .then(|| Name::Given(key.to_owned()))
                .ok_or_else(bad)
        }
        (Some(_), Some(_)) => Err(bad()),
    }
}

async fn submit(
    shared: &super::Shared,
    caller: &Caller,
    chat: ChatKey,
    name: Name,
    body: InboundBody,
) -> Result<Response, ApiError> {
    let name = match name {
        Name::New(name) => name,
        Name::Given(name) => {
            let bound = shared.parts()?.submissions.bind(&chat, &name, &body).await;
            if !bound.map_err(unreadable)? {
                return Err(reused(&name));
            }
            name
        }
    };
    let event = Inbound {
        event_id: format!("{}/{name}", chat.chat_id),
        chat,
        chat_kind: ChatKind::Private,
        sender: Sender {
            id: caller.user.clone(),
            name: caller.user.clone(),
            is_bot: false,
        },
        mentioned: true,
        body,
        message_id: None,
        is_edit: false,
        at_ms: Clock::system().now().0,
    };
    let taken = shared
        .inbox
        .push(event)
        .await
        .map_err(|error| match error {
            InboxError::Malformed { reason } => ApiError::bad_request(reason),
            InboxError::Full => ApiError::too_many("too many messages are waiting in this chat", 5),
            InboxError::Later { reason } => ApiError::later(reason),
        })?;
    if taken == InboxResult::Dropped {
        return Err(ApiError::forbidden("you may not do that"));
    }
    let submitted = DurableSubmission {
        id: name,
        is_duplicate: taken == InboxResult::Duplicate,
    };
    Ok((StatusCode::ACCEPTED, Json(submitted)).into_response())
}
