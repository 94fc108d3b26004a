//! View of a person in a chat.

use super::SentFile;
use serde_json::Value;

/// A message of the bot as a person sees it in a chat now.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenMessage {
    /// Its number in the chat.
    pub message_id: i64,
    /// The chat.
    pub chat_id: i64,
    /// The topic.
    pub thread_id: Option<i64>,
    /// The text, or the caption of a file.
    pub text: String,
    /// The formatting of the text.
    pub entities: Vec<Value>,
    /// The Markdown of a rich message.
    pub rich: Option<String>,
    /// The buttons below it, as text and data.
    pub buttons: Vec<(String, String)>,
    /// The file.
    pub file: Option<SentFile>,
    /// Set if the file is shown as a picture.
    pub is_photo: bool,
    /// The message that it answers.
    pub reply_to: Option<i64>,
    /// Text before each edit, oldest first.
    pub before: Vec<String>,
    /// Set if links in it may show a preview.
    pub has_preview: bool,
}

/// A draft as it was shown while the answer was being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The chat.
    pub chat_id: i64,
    /// Which draft it replaces.
    pub draft_id: i64,
    /// Label of the button.
    pub text: String,
}

impl SeenMessage {
    /// Returns the text that an entity of this type covers, for each of them.
    ///
    /// # Panics
    /// When an entity does not cover whole characters, which the server refuses anyway.
    #[must_use]
    pub fn covered(&self, kind: &str) -> Vec<String> {
        let units: Vec<u16> = self.text.encode_utf16().collect();
        let entities = self.entities.iter().filter(|it| it["type"] == kind);
        entities
            .map(|it| String::from_utf16(&units[span(it)]).expect("whole characters"))
            .collect()
    }
}

/// Returns the range of an entity, in UTF-16 units.
pub(super) fn span(entity: &Value) -> std::ops::Range<usize> {
    let number = |name: &str| {
        let number = entity[name].as_u64().unwrap_or_default();
        usize::try_from(number).unwrap_or(usize::MAX)
    };
    let begin = number("offset");
    begin..begin.saturating_add(number("length"))
}
