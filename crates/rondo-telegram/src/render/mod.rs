//! Markdown as Telegram shows it.
//!
//! # Layout
//! - `markdown`: Markdown to text with entities. `table`: tables within it. `split`: texts that are too long for one message.
//! - `rich`: Markdown for rich messages, which Telegram parses itself.

mod markdown;
mod rich;
mod split;
mod table;

pub use markdown::formatted;
pub use rich::{RICH_CHARS_MAX, rich};
pub use split::split;

use frankenstein::types::{MessageEntity, MessageEntityType};
use std::ops::Range;

/// The bound on a message's text, in UTF-16 units after parsing. Telegram counts characters, of which there are never more.
pub const TEXT_UNITS_MAX: usize = 4096;
/// The bound on the entities of a message; further ones are ignored by Telegram.
const ENTITIES_MAX: usize = 100;

/// A text and its formatting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FormattedText {
    /// The text as it is read.
    pub text: String,
    /// Its formatting, by where it begins.
    pub entities: Vec<Entity>,
}

/// The formatting of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Kind of formatting.
    pub kind: MessageEntityType,
    /// Range in UTF-16 units of the text.
    pub at: Range<usize>,
    /// Target of a link, or the language of code.
    pub detail: Option<String>,
}

impl FormattedText {
    /// Builds a text without formatting.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            entities: Vec::new(),
        }
    }

    /// Returns the entities as the Bot API has them.
    #[must_use]
    pub fn message_entities(&self) -> Vec<MessageEntity> {
        let entities = self.entities.iter().take(ENTITIES_MAX);
        entities.filter_map(Entity::message_entity).collect()
    }
}

impl Entity {
    fn message_entity(&self) -> Option<MessageEntity> {
        let is_link = self.kind == MessageEntityType::TextLink;
        let (url, language) = match &self.detail {
            Some(detail) if is_link => (Some(detail.clone()), None),
            detail => (None, detail.clone()),
        };
        Some(
            MessageEntity::builder()
                .type_field(self.kind)
                .offset(u16::try_from(self.at.start).ok()?)
                .length(u16::try_from(self.at.len()).ok()?)
                .maybe_url(url)
                .maybe_language(language)
                .build(),
        )
    }
}

/// Returns the length of a text in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
