//! Messages that the hub queues for a chat: replies, questions and notices, as rows of the outbox.

use crate::channel::{ChatKey, Choice, Outgoing, OutgoingFile, Receipt};
use rondo_core::ports::{OutboxEntry, OutboxKind, OutboxRow};
use rondo_types::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// Parts of a message beside its text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Details {
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Files that go along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<OutgoingFile>,
    /// How it can be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The message that it replaces, such as a question that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Receipt>,
}

impl Details {
    /// Reads the parts from a row of the outbox.
    ///
    /// # Errors
    /// When a later version wrote it.
    pub fn of_row(row: &OutboxRow) -> serde_json::Result<Self> {
        match row.entry.details.as_str() {
            "" => Ok(Self::default()),
            json => serde_json::from_str(json),
        }
    }
}

/// Returns a message for a chat, named forever by `key`.
#[must_use]
pub fn entry(
    key: String,
    chat: &ChatKey,
    kind: OutboxKind,
    text: String,
    details: &Details,
) -> OutboxEntry {
    OutboxEntry {
        key,
        channel: chat.channel.clone(),
        chat: chat.text(),
        session: SessionId::new(""),
        turn: None,
        kind,
        text,
        // Strings, paths and answers can be written; a path that is no Unicode is refused before.
        details: serde_json::to_string(details).unwrap_or_default(),
    }
}

/// Returns a message of the hub itself.
#[must_use]
pub fn notice(key: String, chat: &ChatKey, text: impl Into<String>) -> OutboxEntry {
    entry(
        key,
        chat,
        OutboxKind::Notice,
        text.into(),
        &Details::default(),
    )
}

/// Returns an entry as one of a session and turn.
#[must_use]
pub fn of_turn(entry: OutboxEntry, session: &SessionId, turn: &TurnId) -> OutboxEntry {
    OutboxEntry {
        session: session.clone(),
        turn: Some(turn.clone()),
        ..entry
    }
}

/// Returns a row as its channel sends it; `None` if it cannot be read.
#[must_use]
pub fn to_send(row: &OutboxRow, placeholder: Option<Receipt>) -> Option<Outgoing> {
    let details = Details::of_row(row).ok()?;
    Some(Outgoing {
        key: row.entry.key.clone(),
        chat: ChatKey::of_text(&row.entry.chat)?,
        kind: row.entry.kind,
        text: row.entry.text.clone(),
        files: details.files,
        choices: details.choices,
        reply_to: details.reply_to,
        placeholder: placeholder.or(details.replaces),
        attempts: row.attempts,
    })
}
