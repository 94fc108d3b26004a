//! Content of an update.

use crate::channel::ChatThread;
use frankenstein::types::{
    CallbackQuery, ChatType, MaybeInaccessibleMessage, Message, MessageEntityType,
};
use rondo_hub::channel::{ChatKind, Choice, Sender};
use rondo_types::AnswerValue;
use rondo_types::text::first_bytes;
use serde::Deserialize;
use serde_json::Value;

/// The bound on the data of a button, in bytes.
const DATA_BYTES_MAX: usize = 64;
/// Characters of a question's token.
const TOKEN_CHARS: usize = 22;
/// The fields of a message that are read if the others are not understood.
const PLAIN_FIELDS: [&str; 9] = [
    "message_id",
    "date",
    "chat",
    "from",
    "text",
    "caption",
    "message_thread_id",
    "is_topic_message",
    "entities",
];

/// Identity of the bot.
#[derive(Debug, Clone)]
pub(super) struct BotIdentity {
    pub(super) id: u64,
    pub(super) name: String,
    /// Set if it sees all messages of groups, that is, has no privacy mode.
    pub(super) sees_all: bool,
}

/// An update.
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub(super) id: i64,
    pub(super) content: Content,
    /// Whether it is what a message says since it was edited.
    pub(super) is_edit: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Message(Box<Message>),
    Press(Box<CallbackQuery>),
    /// Nothing that was asked for, or that can be read.
    Other,
}

#[derive(Deserialize)]
struct Envelope {
    update_id: i64,
    message: Option<Value>,
    edited_message: Option<Value>,
    callback_query: Option<Value>,
}

impl Update {
    /// Reads an update; `None` if it has no id, so that it cannot be confirmed either. One that is not understood
    /// must not keep those behind it from being read.
    pub(super) fn read(json: &str) -> Option<Self> {
        let envelope: Envelope = serde_json::from_str(json).ok()?;
        let is_edit = envelope.edited_message.is_some();
        let content = if let Some(message) = envelope.message.or(envelope.edited_message) {
            read_message(message)
        } else if let Some(query) = envelope.callback_query {
            serde_json::from_value(query).map_or(Content::Other, Content::Press)
        } else {
            Content::Other
        };
        Some(Self {
            id: envelope.update_id,
            content,
            is_edit,
        })
    }

    /// Returns the chat that it is from; `None` if there is nothing to do.
    pub(super) fn chat_id(&self) -> Option<i64> {
        match &self.content {
            Content::Message(message) => Some(message.chat.id),
            Content::Press(query) => Some(pressed_at(query)?.0.chat_id),
            Content::Other => None,
        }
    }

    /// Returns the album that it is a part of; an edit stands by itself.
    pub(super) fn album(&self) -> Option<&str> {
        let message = self.message().filter(|_| !self.is_edit);
        message.and_then(|it| it.media_group_id.as_deref())
    }
}

fn read_message(message: Value) -> Content {
    if let Ok(message) = serde_json::from_value(message.clone()) {
        return Content::Message(message);
    }
    let mut fields = message;
    if let Some(fields) = fields.as_object_mut() {
        let is_forwarded = fields.contains_key("forward_origin");
        fields.retain(|name, _| PLAIN_FIELDS.contains(&name.as_str()));
        // The first author is not understood, but it was not its sender.
        fields.insert("is_automatic_forward".to_owned(), is_forwarded.into());
    }
    match serde_json::from_value(fields) {
        Ok(message) => Content::Message(message),
        Err(error) => {
            tracing::warn!(%error, "a message of Telegram is not understood");
            Content::Other
        }
    }
}

/// Units of UTF-16 of a message's text at the most.
pub(super) const TEXT_UNITS_MAX: usize = 4096;
/// From so many on a text may be the beginning of a longer one, which its sender's program cut at a space or line end.
const LONG_TEXT_UNITS: usize = 3800;
/// Seconds between messages that were sent together.
const TOGETHER_SECONDS: u64 = 2;

/// Returns the length of a text as Telegram counts it.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn is_long(message: &Message) -> bool {
    let text = message.text.as_ref();
    text.is_some_and(|text| units(text) >= LONG_TEXT_UNITS)
}

/// Returns whether a message may have been taken as one with others: its text alone does not say what they say together.
pub(super) fn may_be_part(message: &Message) -> bool {
    message.media_group_id.is_some() || is_long(message)
}

impl Update {
    fn message(&self) -> Option<&Message> {
        match &self.content {
            Content::Message(message) => Some(message),
            Content::Press(_) | Content::Other => None,
        }
    }

    /// Returns whether more may come that belongs to it.
    pub(super) fn may_go_on(&self) -> bool {
        self.album().is_some() || self.is_long_text()
    }

    fn is_long_text(&self) -> bool {
        let message = self.message().filter(|_| !self.is_edit);
        message.is_some_and(is_long)
    }

    /// Returns whether it is another part of the album that an earlier update is of.
    pub(super) fn is_of_album(&self, earlier: &Self) -> bool {
        earlier.album().is_some() && self.album() == earlier.album()
    }

    /// Returns whether it is from the sender of another one.
    pub(super) fn is_of_sender(&self, other: &Self) -> bool {
        let of = |it: &Self| it.message().and_then(sender).map(|it| it.id);
        of(self) == of(other)
    }

    /// Returns whether its sender has gone on to something else than an earlier update, which is whole then.
    pub(super) fn ends(&self, earlier: &Self) -> bool {
        self.is_of_sender(earlier) && !self.is_of_album(earlier) && !self.goes_on(earlier)
    }

    /// Returns whether it continues with the update before it: with the rest of a long text, or another album that was sent
    /// at once, such as the documents beside pictures.
    pub(super) fn goes_on(&self, before: &Self) -> bool {
        let (Some(message), Some(earlier)) = (self.message(), before.message()) else {
            return false;
        };
        if self.is_edit || before.is_edit {
            return false;
        }
        let is_together = place(message) == place(earlier)
            && self.is_of_sender(before)
            && message.date.abs_diff(earlier.date) <= TOGETHER_SECONDS;
        let is_rest = before.is_long_text()
            && message.text.as_ref().is_some_and(|it| !it.starts_with('/'))
            && message.forward_origin.is_none() == earlier.forward_origin.is_none();
        is_together && (is_rest || self.album().is_some() && before.album().is_some())
    }
}

/// Returns the place of a message. Outside of forums a thread is a chain of replies, which is not a chat of its own.
pub(super) fn place(message: &Message) -> ChatThread {
    let is_topic = message.is_topic_message.unwrap_or_default();
    ChatThread {
        chat_id: message.chat.id,
        thread_id: message.message_thread_id.filter(|_| is_topic),
    }
}

/// Returns the place of a button, and the message above it.
pub(super) fn pressed_at(query: &CallbackQuery) -> Option<(ChatThread, i32)> {
    match query.message.as_ref()? {
        MaybeInaccessibleMessage::Message(message) => Some((place(message), message.message_id)),
        MaybeInaccessibleMessage::InaccessibleMessage(message) => {
            let place = ChatThread {
                chat_id: message.chat.id,
                thread_id: None,
            };
            Some((place, message.message_id))
        }
    }
}

pub(super) fn kind(message: &Message) -> ChatKind {
    match message.chat.type_field {
        ChatType::Private => ChatKind::Private,
        ChatType::Group | ChatType::Supergroup | ChatType::Channel => ChatKind::Group,
    }
}

/// Returns the sender of a message. A sender who writes as a chat (a channel, or an anonymous administrator) has that
/// chat's id:
/// behind it may be anyone, and the person's id that is beside it is the same for all of them.
pub(super) fn sender(message: &Message) -> Option<Sender> {
    if let Some(chat) = &message.sender_chat {
        return Some(Sender {
            id: chat.id.to_string(),
            name: chat.title.clone().unwrap_or_default(),
            is_bot: false,
        });
    }
    Some(person(message.from.as_ref()?))
}

pub(super) fn person(user: &frankenstein::types::User) -> Sender {
    let last = user.last_name.as_deref().unwrap_or_default();
    Sender {
        id: user.id.to_string(),
        name: format!("{} {last}", user.first_name).trim().to_owned(),
        is_bot: user.is_bot,
    }
}

/// Returns the text of a message, without the bot's name if that only says who is meant, and whether it is meant. The
/// command of another bot is not text.
pub(super) fn addressed(message: &Message, me: &BotIdentity) -> (String, bool) {
    let text = message.text.as_ref().or(message.caption.as_ref());
    let text = text.cloned().unwrap_or_default();
    let entities = message
        .entities
        .as_ref()
        .or(message.caption_entities.as_ref());
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut is_meant = kind(message) == ChatKind::Private || is_reply_to(message, me);
    let mut shown = text.clone();
    for entity in entities.into_iter().flatten() {
        let begin = usize::from(entity.offset);
        let covered = units.get(begin..begin + usize::from(entity.length));
        let covered = String::from_utf16_lossy(covered.unwrap_or_default());
        match entity.type_field {
            MessageEntityType::Mention if is_name(covered.strip_prefix('@'), me) => {
                is_meant = true;
                if begin == 0 {
                    shown = text
                        .get(covered.len()..)
                        .unwrap_or_default()
                        .trim_start()
                        .to_owned();
                }
            }
            MessageEntityType::TextMention => {
                is_meant |= entity.user.as_ref().is_some_and(|user| user.id == me.id);
            }
            MessageEntityType::BotCommand if begin == 0 => match covered.split_once('@') {
                Some((command, name)) if is_name(Some(name), me) => {
                    is_meant = true;
                    let rest = text.get(covered.len()..).unwrap_or_default();
                    shown = format!("{command}{rest}");
                }
                // Another bot's.
                Some(_) => return (String::new(), false),
                None if is_reply_to_other_bot(message, me) => return (String::new(), false),
                None => {}
            },
            _ => {}
        }
    }
    (shown, is_meant)
}

fn is_name(name: Option<&str>, me: &BotIdentity) -> bool {
    name.is_some_and(|name| !me.name.is_empty() && name.eq_ignore_ascii_case(&me.name))
}

fn is_reply_to_other_bot(message: &Message, me: &BotIdentity) -> bool {
    let replied = message.reply_to_message.as_ref();
    let author = replied.and_then(|it| it.from.as_ref());
    author.is_some_and(|user| user.is_bot && user.id != me.id)
}

fn is_reply_to(message: &Message, me: &BotIdentity) -> bool {
    let replied = message.reply_to_message.as_ref();
    let author = replied.and_then(|it| it.from.as_ref());
    author.is_some_and(|user| user.id == me.id)
}

/// Writes what a button answers as its data; `None` if it is too long.
pub(crate) fn encoded(choice: &Choice) -> Option<String> {
    let token = &choice.token;
    let data = match &choice.value {
        AnswerValue::Approve => format!("y{token}"),
        AnswerValue::Deny { reason } => {
            let room = DATA_BYTES_MAX.checked_sub(1 + token.len())?;
            format!("n{token}{}", first_bytes(reason, room))
        }
        AnswerValue::Value { value, .. } => format!("v{token}{value}"),
    };
    (is_token(token) && data.len() <= DATA_BYTES_MAX).then_some(data)
}

/// Reads the data of a button. It comes from a person's program, so it may be anything.
pub(super) fn decoded(data: &str) -> Option<(String, AnswerValue)> {
    let kind = data.get(..1)?;
    let token = data.get(1..=TOKEN_CHARS).filter(|it| is_token(it))?;
    let rest = data.get(TOKEN_CHARS + 1..)?;
    let value = match kind {
        "y" if rest.is_empty() => AnswerValue::Approve,
        "n" => AnswerValue::Deny {
            reason: rest.to_owned(),
        },
        "v" => AnswerValue::value(serde_json::from_str(rest).ok()?),
        _ => return None,
    };
    Some((token.to_owned(), value))
}

fn is_token(token: &str) -> bool {
    token.len() == TOKEN_CHARS && token.bytes().all(|it| it.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests;
