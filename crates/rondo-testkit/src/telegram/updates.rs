//! Messages of people and of Telegram to the bot.

use serde_json::{Value, json};

/// The id of the bot.
pub const BOT_ID: i64 = 4_200_000_001;
/// The name of the bot.
pub const BOT_NAME: &str = "rondo_test_bot";
/// The date of the first message, in seconds since 1970.
pub(super) const FIRST_DATE: i64 = 1_780_000_000;

/// Chat of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A private chat with this person, whose id is the chat's.
    Private(i64),
    /// A group, by its negative id.
    Group(i64),
    /// A topic of a supergroup.
    Topic(i64, i64),
}

impl Place {
    /// Returns the id of the chat.
    #[must_use]
    pub fn chat_id(self) -> i64 {
        match self {
            Self::Private(id) | Self::Group(id) | Self::Topic(id, _) => id,
        }
    }

    /// Returns the topic.
    #[must_use]
    pub fn thread_id(self) -> Option<i64> {
        match self {
            Self::Topic(_, thread) => Some(thread),
            Self::Private(_) | Self::Group(_) => None,
        }
    }

    pub(super) fn chat(self) -> Value {
        match self {
            Self::Private(id) => json!({ "id": id, "type": "private", "first_name": "Person" }),
            Self::Group(id) => json!({ "id": id, "type": "group", "title": "Group" }),
            Self::Topic(id, _) => {
                json!({ "id": id, "type": "supergroup", "title": "Forum", "is_forum": true })
            }
        }
    }
}

/// Describes a person.
#[must_use]
pub fn person(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": format!("Person {id}") })
}

/// Describes the bot.
pub(super) fn bot() -> Value {
    json!({ "id": BOT_ID, "is_bot": true, "first_name": "Rondo", "username": BOT_NAME })
}

/// Builds a message of a person, without what it says.
pub(super) fn message(place: Place, from: &Value, message_id: i64) -> Value {
    let mut message = json!({
        "message_id": message_id,
        "from": from,
        "chat": place.chat(),
        "date": FIRST_DATE + message_id,
    });
    if let Some(thread) = place.thread_id() {
        message["message_thread_id"] = json!(thread);
        message["is_topic_message"] = json!(true);
    }
    message
}

/// Finds commands and mentions in a text, as Telegram marks them.
pub(super) fn entities(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let length = word.trim_end().encode_utf16().count();
        let kind = match word.as_bytes().first() {
            Some(b'/') if length > 1 => Some("bot_command"),
            Some(b'@') if length > 1 => Some("mention"),
            _ => None,
        };
        if let Some(kind) = kind {
            found.push(json!({ "type": kind, "offset": at, "length": length }));
        }
        at += word.encode_utf16().count();
    }
    found
}
