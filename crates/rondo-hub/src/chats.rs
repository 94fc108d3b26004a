//! Which session a chat talks to: its id follows from the chat's own, so that no two chats share one.

use crate::channel::{ChatKey, ChatKind};
use data_encoding::HEXLOWER;
use rondo_core::ports::{HostRow, HostStore, MailboxError};
use rondo_types::SessionId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::iter::successors;
use std::sync::Arc;

/// The table of chats, by their keys.
pub(crate) const CHATS: &str = "chat";
/// The table of chats that take no messages until someone writes there again, with how many could not be sent. Apart from
/// the chats: who sends and who receives do not overwrite what the other one notes.
const GONE: &str = "gone_chat";
/// The table of the chats of sessions.
const SESSIONS: &str = "chat_of_session";

/// Bytes that the name of a chat may have within an id; longer ones are hashed. It leaves room for the number of `/new`
/// and for the ids of sessions that a session starts.
const NAME_BYTES_MAX: usize = 80;

impl ChatKey {
    /// Returns the id of the chat's session: `CHANNEL_CHAT`, with `@ACCOUNT` after the channel and `_TOPIC` at the end
    /// if there are such. Characters other than ASCII letters, digits and `-` are written as `:` and their hexadecimal digits,
    /// so that different chats have different ids. `generation` counts how often the chat started over; from 1 on it is
    /// appended as `+N`.
    #[must_use]
    pub fn session(&self, generation: u32) -> SessionId {
        let mut name = escaped(&self.channel);
        if !self.account.is_empty() {
            name = format!("{name}@{}", escaped(&self.account));
        }
        name = format!("{name}_{}", escaped(&self.chat_id));
        if let Some(topic) = &self.topic {
            name = format!("{name}_{}", escaped(topic));
        }
        if name.len() > NAME_BYTES_MAX {
            name = hashed(&name);
        }
        match generation {
            0 => SessionId::new(name),
            _ => SessionId::new(format!("{name}+{generation}")),
        }
    }
}

impl ChatKey {
    /// Returns it as text, from which it can be read again.
    #[must_use]
    pub fn text(&self) -> String {
        // A struct of strings can be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads it from that text.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Facts about a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chat {
    /// The chat.
    pub key: ChatKey,
    /// Readers of the chat.
    pub kind: ChatKind,
    /// How often it started over.
    #[serde(default)]
    pub generation: u32,
    /// The id of its session, if that does not follow from the key: a chat keeps its session when it gets another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Chat {
    /// A chat that is seen for the first time.
    #[must_use]
    pub fn new(key: ChatKey, kind: ChatKind) -> Self {
        Self {
            key,
            kind,
            generation: 0,
            session: None,
        }
    }

    /// Returns its session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        match &self.session {
            Some(session) => SessionId::new(session.clone()),
            None => self.key.session(self.generation),
        }
    }

    /// Returns the chat as it starts over: with another session, which is named after the first one, whose directory the chat
    /// keeps.
    #[must_use]
    pub fn anew(&self) -> Self {
        let generation = self.generation.saturating_add(1);
        let session = self.session.as_ref().map(|session| {
            let first = first_session(&SessionId::new(session.clone()));
            format!("{first}+{generation}")
        });
        Self {
            generation,
            session,
            ..self.clone()
        }
    }

    /// Returns the rows that say so.
    #[must_use]
    pub fn rows(&self) -> Vec<HostRow> {
        let json = serde_json::to_string(self).unwrap_or_default();
        let session = self.session().as_str().to_owned();
        vec![
            HostRow::set(CHATS, self.key.text(), json),
            HostRow::set(SESSIONS, session, self.key.text()),
        ]
    }
}

/// Returns the row by which a session that is not the chat's own speaks in it: that of spawned work, or of the heartbeat.
pub(crate) fn session_row(session: &SessionId, chat: &ChatKey) -> HostRow {
    HostRow::set(SESSIONS, session.as_str(), chat.text())
}

/// Returns the row by which a session that is gone speaks nowhere any more.
pub(crate) fn forget_session_row(session: &SessionId) -> HostRow {
    HostRow::removed(SESSIONS, session.as_str())
}

/// Returns the first session of the chat that has this one, or for which this one was started: a chat's sessions are
/// named alike, with `+N` for the N-th that followed.
pub(crate) fn first_session(session: &SessionId) -> SessionId {
    let ancestors = successors(session.parent(), SessionId::parent);
    let root = ancestors.last().unwrap_or_else(|| session.clone());
    let name = root.as_str();
    SessionId::new(name.split_once('+').map_or(name, |it| it.0))
}

/// Store of the chats.
#[derive(Clone)]
pub struct Chats(Arc<dyn HostStore>);

impl Chats {
    /// Looks it up there.
    #[must_use]
    pub fn new(store: Arc<dyn HostStore>) -> Self {
        Self(store)
    }

    /// Returns a chat that was seen before.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn find(&self, key: &ChatKey) -> Result<Option<Chat>, MailboxError> {
        read(&*self.0, CHATS, &key.text()).await
    }

    /// Returns a chat that was seen before and takes messages.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn find_open(&self, key: &ChatKey) -> Result<Option<Chat>, MailboxError> {
        match missed(&*self.0, key).await? {
            0 => self.find(key).await,
            _ => Ok(None),
        }
    }

    /// Returns the chat of a session; none if it is not a chat's.
    ///
    /// # Errors
    /// When the storage fails.
    pub async fn of_session(&self, session: &SessionId) -> Result<Option<Chat>, MailboxError> {
        let Some(key) = self.0.row(SESSIONS, session.as_str()).await? else {
            return Ok(None);
        };
        read(&*self.0, CHATS, &key).await
    }
}

/// Returns how many messages could not be sent to a chat since someone wrote there.
pub(crate) async fn missed(store: &dyn HostStore, key: &ChatKey) -> Result<u32, MailboxError> {
    let missed = read(store, GONE, &key.text()).await?;
    Ok(missed.unwrap_or_default())
}

/// Returns the row by which a chat takes no messages for now, and has missed so many; by which it takes them again at 0.
pub(crate) fn missed_row(key: &ChatKey, count: u32) -> HostRow {
    match count {
        0 => HostRow::removed(GONE, key.text()),
        _ => HostRow::set(GONE, key.text(), count.to_string()),
    }
}

/// Reads a row of JSON.
pub(crate) async fn read<T: DeserializeOwned>(
    store: &dyn HostStore,
    table: &str,
    key: &str,
) -> Result<Option<T>, MailboxError> {
    let row = store.row(table, key).await?;
    let parsed = row.map(|json| serde_json::from_str(&json));
    parsed
        .transpose()
        .map_err(|err| MailboxError::Io(err.into()))
}

/// Returns the name of a person's directory: different names have different ones, and none leads elsewhere.
pub(crate) fn folder(name: &str) -> String {
    let folder = escaped(name);
    match folder.len() > NAME_BYTES_MAX {
        true => hashed(&folder),
        false => folder,
    }
}

/// Returns a name for one that is too long.
fn hashed(name: &str) -> String {
    let hash = HEXLOWER.encode(&Sha256::digest(name.as_bytes()));
    // No escape makes `:x`.
    format!(":x{hash}")
}

fn escaped(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte.is_ascii_alphanumeric() || byte == b'-' {
            // The beginning of an id must not look like an option.
            true if !(byte == b'-' && escaped.is_empty()) => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!(":{byte:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn chat(channel: &str, account: &str, chat_id: &str, topic: Option<&str>) -> ChatKey {
        ChatKey {
            channel: channel.to_owned(),
            account: account.to_owned(),
            chat_id: chat_id.to_owned(),
            topic: topic.map(str::to_owned),
        }
    }

    #[test]
    fn hub_27_a_session_is_named_by_its_channel_and_chat() {
        let id = |key: ChatKey| key.session(0).as_str().to_owned();
        assert_eq!(id(chat("telegram", "", "4711", None)), "telegram_4711");
        let group = chat("telegram", "", "-1001", Some("7"));
        assert_eq!(id(group.clone()), "telegram_:2d1001_7");
        assert_eq!(group.session(2).as_str(), "telegram_:2d1001_7+2");
        assert_eq!(id(chat("telegram", "12", "4711", None)), "telegram@12_4711");
    }

    #[test]
    fn different_chats_have_different_sessions_with_valid_ids() {
        let parts = [
            "", "a", "b", "a_b", "a.b", "a:5f", "_", "@", "+1", "-", "ü", "A", "a@b",
        ];
        let long = "x".repeat(300);
        let mut seen = HashSet::new();
        for channel in ["api", "web"] {
            for account in parts {
                for chat_id in parts.iter().copied().chain([long.as_str()]) {
                    for topic in [None, Some(""), Some("a"), Some("a_b"), Some(&*long)] {
                        for generation in [0, 1, 12] {
                            let id = chat(channel, account, chat_id, topic).session(generation);
                            assert!(SessionId::parse(id.as_str()).is_ok(), "{id}");
                            assert_eq!(id.parent(), None, "{id}");
                            assert!(seen.insert(id.clone()), "{id}");
                        }
                    }
                }
            }
        }
    }
}
