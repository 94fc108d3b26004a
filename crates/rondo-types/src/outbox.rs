//! Messages of a session to the outside, and rows that a host stores beside it.

use crate::{SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a row of an outbox. Later rows have higher numbers, and no number is ever used twice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct OutboxId(pub u64);

impl fmt::Display for OutboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Kind of an outgoing message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxKind {
    /// The answer of a turn. It is left out if a [`Message`](Self::Message) of the same turn said the same in the same
    /// chat.
    Final,
    /// A question that a person is to answer.
    Question,
    /// Sent by a tool in the middle of a turn.
    Message,
    /// Written by the host: reports of failures, and replies to commands.
    Notice,
}

impl OutboxKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Final, Self::Question, Self::Message, Self::Notice];

    /// Returns its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Question => "question",
            Self::Message => "message",
            Self::Notice => "notice",
        }
    }
}

/// A message to send: a row of an outbox, once it is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    /// Names it forever: another one under the same key is passed over. Of 1 to [`Self::KEY_BYTES_MAX`] bytes.
    pub key: String,
    /// The channel that sends it.
    pub channel: String,
    /// The chat within the channel, as the host names it. Messages to one chat are sent in order.
    pub chat: String,
    /// The session that it is from.
    pub session: SessionId,
    /// The turn that it is from; `None` if it is from no turn.
    pub turn: Option<TurnId>,
    /// Kind of message.
    pub kind: OutboxKind,
    /// Text of the message.
    pub text: String,
    /// Further details, in a form that its host reads; may be empty.
    pub details: String,
}

impl OutboxEntry {
    /// The bound on a key, in bytes.
    pub const KEY_BYTES_MAX: usize = 512;
    /// The bound on text and details together, in bytes. Longer text is cut, with a mark at its end.
    pub const BYTES_MAX: usize = 1 << 20;

    /// Returns it with its text cut to the bound.
    #[must_use]
    pub fn within_bounds(mut self) -> Self {
        const MARK: &str = "\n[the rest was left out]";
        let room = Self::BYTES_MAX.saturating_sub(self.details.len());
        if self.text.len() > room {
            let end = self
                .text
                .floor_char_boundary(room.saturating_sub(MARK.len()));
            self.text.truncate(end);
            self.text.push_str(MARK);
        }
        self
    }
}

/// A row that a host keeps beside its sessions, such as what it knows of a chat. Its tables are names that the host
/// chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// The table.
    pub table: String,
    /// The row's key within its table.
    pub key: String,
    /// New value; `None` removes the row.
    pub value: Option<String>,
}

impl HostRow {
    /// The bound on a key and its value together, in bytes.
    pub const BYTES_MAX: usize = 1 << 20;

    /// Sets a row.
    pub fn set(table: &str, key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            table: table.to_owned(),
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// Removes a row.
    pub fn removed(table: &str, key: impl Into<String>) -> Self {
        Self {
            table: table.to_owned(),
            key: key.into(),
            value: None,
        }
    }
}
