//! Parts of a message besides text: files, and content that is not accepted.

use crate::ApiError;
use crate::channel::Telegram;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use frankenstein::types::{File, Message, MessageOrigin};
use futures_util::future::join_all;
use rondo_hub::channel::{InboundBody, InboundFile};
use rondo_types::text::{first_chars, with_mark};
use rondo_types::{Media, MediaKind, MediaSource};
use serde_json::json;
use std::time::Duration;

/// How long all files of a message may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(8);
/// The bound on a file: Telegram hands bots no larger ones.
const FILE_BYTES_MAX: usize = 20 << 20;
/// The bound on an image that the model looks at; larger ones are files.
const IMAGE_BYTES_MAX: usize = 5 << 20;
/// The bound on the files of a message: an album has at most ten.
const FILES_MAX: usize = 10;
/// The bounds on a file's name and on what is quoted, in characters.
const NAME_CHARS_MAX: usize = 120;
const QUOTE_CHARS_MAX: usize = 500;

const NO_VOICE: &str = "I cannot listen to voice messages. Please write it instead.";

/// Parts of a message besides its own text.
#[derive(Debug, Default)]
pub(super) struct FetchedParts {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    pub(super) notes: Vec<String>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    id: String,
    name: String,
    size: Option<u64>,
}

impl Attachment {
    fn new(id: &str, name: Option<&str>, otherwise: &str, size: Option<u64>) -> Self {
        let name = name.unwrap_or(otherwise);
        Self {
            id: id.to_owned(),
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            size,
        }
    }
}

/// Finds the content of a message.
pub(super) fn found(message: &Message) -> FetchedParts {
    let mut found = FetchedParts::default();
    // The sizes of one picture, the largest last.
    if let Some(photo) = message.photo.as_ref().and_then(|it| it.last()) {
        let photo = Attachment::new(&photo.file_id, None, "photo.jpg", photo.file_size);
        found.attachments.push(photo);
    }
    // An animation is described as a document, too.
    if let Some(it) = &message.document {
        let name = it.file_name.as_deref();
        found
            .attachments
            .push(Attachment::new(&it.file_id, name, "document", it.file_size));
    }
    if let Some(it) = &message.audio {
        let name = it.file_name.as_deref();
        found.attachments.push(Attachment::new(
            &it.file_id,
            name,
            "audio.mp3",
            it.file_size,
        ));
    }
    if let Some(it) = &message.video {
        let name = it.file_name.as_deref();
        found.attachments.push(Attachment::new(
            &it.file_id,
            name,
            "video.mp4",
            it.file_size,
        ));
    }
    if message.voice.is_some() || message.video_note.is_some() {
        found.notes.push(NO_VOICE.to_owned());
    }
    if let Some(it) = &message.sticker {
        found.text = it.emoji.clone().unwrap_or_else(|| "(a sticker)".to_owned());
    }
    if let Some(it) = &message.location {
        found.text = format!("Location: {}, {}", it.latitude, it.longitude);
    }
    if let Some(it) = &message.contact {
        found.text = format!("Contact: {}, {}", it.first_name, it.phone_number);
    }
    let is_unread = message.poll.is_some()
        || message.story.is_some()
        || message.paid_media.is_some()
        || message.dice.is_some()
        || message.game.is_some();
    if is_unread {
        let note = "I cannot read this kind of message. Please write what it says.";
        found.notes.push(note.to_owned());
    }
    found
}

/// Returns whether others than its sender and the bot wrote what a message passes on: what is forwarded, and what is
/// quoted.
pub(super) fn is_by_others(message: &Message, me: u64) -> bool {
    let is_forwarded =
        message.forward_origin.is_some() || message.is_automatic_forward.unwrap_or_default();
    let sender = message.from.as_ref().map(|user| user.id);
    let author = |replied: &Message| replied.from.as_ref().map(|user| user.id);
    let quoted = message.reply_to_message.as_deref().map(author);
    let is_known =
        |author: Option<u64>| author.is_some() && (author == Some(me) || author == sender);
    let quotes = message.quote.is_some() || quoted.is_some();
    is_forwarded || quotes && !quoted.is_some_and(is_known)
}

/// Returns the line that names the author of a forwarded message, if it is one. The text behind it is not a command.
pub(super) fn forwarded(message: &Message) -> Option<String> {
    let origin = message.forward_origin.as_deref()?;
    let name = match origin {
        MessageOrigin::User(it) => it.sender_user.first_name.clone(),
        MessageOrigin::HiddenUser(it) => it.sender_user_name.clone(),
        MessageOrigin::Chat(it) => it.sender_chat.title.clone().unwrap_or_default(),
        MessageOrigin::Channel(it) => it.chat.title.clone().unwrap_or_default(),
    };
    // Names are chosen by people: they must not look like another line.
    let plain = |c: char| match c {
        '[' | ']' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    Some(match name.trim() {
        "" => "[forwarded]".to_owned(),
        name => format!("[forwarded from {name}]"),
    })
}

/// Returns the message that another one answers, or the part of it that was chosen, as a quote. A message of the bot
/// itself is known, unless a part was chosen.
pub(super) fn quoted(message: &Message, me: u64) -> Option<String> {
    let chosen = message
        .quote
        .as_ref()
        .filter(|it| it.is_manual.unwrap_or_default());
    let text = match chosen {
        Some(quote) => &quote.text,
        None => {
            let replied = message.reply_to_message.as_ref()?;
            let is_own = replied.from.as_ref().is_some_and(|user| user.id == me);
            let text = replied.text.as_ref().or(replied.caption.as_ref())?;
            Some(text).filter(|_| !is_own)?
        }
    };
    let quote = with_mark(first_chars(text, QUOTE_CHARS_MAX), text, "…");
    Some(format!("> {}", quote.replace('\n', "\n> ")))
}

/// Fetches files and adds them to a message's body; what cannot be fetched is named in its notes.
pub(super) async fn into_body(
    telegram: &Telegram,
    attachments: Vec<Attachment>,
    body: &mut InboundBody,
) {
    let InboundBody::Message {
        images,
        files,
        notes,
        ..
    } = body
    else {
        return;
    };
    let left_out = attachments.len().saturating_sub(FILES_MAX);
    if left_out > 0 {
        notes.push(format!(
            "{left_out} more files were left out: at most {FILES_MAX} are accepted."
        ));
    }
    if attachments.is_empty() {
        return;
    }
    // Never closed.
    let _place = telegram.fetching.acquire().await;
    let deadline = crate::clock::now() + FETCH_TIMEOUT;
    let fetches = attachments.iter().take(FILES_MAX).map(|it| async move {
        let fetched = tokio::time::timeout_at(deadline, fetch(telegram, it)).await;
        let late = || format!("it did not come within {} s", FETCH_TIMEOUT.as_secs());
        fetched.unwrap_or_else(|_| Err(late()))
    });
    for (attachment, fetched) in attachments.iter().zip(join_all(fetches).await) {
        match fetched {
            Ok(bytes) => match image(attachment, &bytes) {
                Some(image) => images.push(image),
                None => files.push(InboundFile {
                    name: attachment.name.clone(),
                    bytes,
                }),
            },
            Err(reason) => {
                notes.push(format!(
                    "The file `{}` was not accepted: {reason}.",
                    attachment.name
                ));
            }
        }
    }
}

async fn fetch(telegram: &Telegram, attachment: &Attachment) -> Result<Bytes, String> {
    let max = FILE_BYTES_MAX;
    let too_large = || format!("bots get files of at most {} MB", max >> 20);
    if attachment
        .size
        .is_some_and(|size| size > FILE_BYTES_MAX as u64)
    {
        return Err(too_large());
    }
    let said = |error: &ApiError| {
        tracing::warn!(%error, "a file of Telegram was not fetched");
        match error {
            ApiError::TooLarge { .. } => too_large(),
            error if error.says(400, "file is too big") => too_large(),
            _ => "Telegram did not hand it out".to_owned(),
        }
    };
    let parameters = json!({ "file_id": attachment.id });
    let found: File = telegram
        .api
        .call("getFile", &parameters)
        .await
        .map_err(|error| said(&error))?;
    let path = found.file_path.ok_or("Telegram did not hand it out")?;
    let downloaded = telegram.api.download(&path, FILE_BYTES_MAX).await;
    downloaded.map_err(|error| said(&error))
}

/// Returns an image that a model can look at, by what its bytes say and not its name.
fn image(attachment: &Attachment, bytes: &[u8]) -> Option<Media> {
    if bytes.len() > IMAGE_BYTES_MAX {
        return None;
    }
    Some(Media {
        kind: MediaKind::Image,
        mime: image_type(bytes)?.to_owned(),
        name: Some(attachment.name.clone()),
        source: MediaSource::Base64(STANDARD.encode(bytes)),
    })
}

/// Returns the media type of an image, by its first bytes.
pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}
