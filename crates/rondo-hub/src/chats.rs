//! Which session a chat talks to: its id follows from the chat's own, so that no two chats share one.

use crate::channel::ChatKey;
use data_encoding::HEXLOWER;
use rondo_types::SessionId;
use sha2::{Digest as _, Sha256};

/// Bytes that the name of a chat may have within an id; longer ones are hashed. It leaves room for the number of `/new`
/// and for the ids of sessions that a session starts.
const NAME_BYTES_MAX: usize = 80;

impl ChatKey {
    /// Returns the id of the chat's session: `CHANNEL_CHAT`, with `@ACCOUNT` after the channel and `_TOPIC` at the end
    /// where there are such. Characters other than ASCII letters, digits and `-` are written as `:` and their hexadecimal digits,
    /// so that different chats have different ids. `generation` counts how often the chat began anew; from 1 on it is
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
            let hash = HEXLOWER.encode(&Sha256::digest(name.as_bytes()));
            // No escape makes `:x`.
            name = format!(":x{hash}");
        }
        match generation {
            0 => SessionId::new(name),
            _ => SessionId::new(format!("{name}+{generation}")),
        }
    }
}

fn escaped(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte.is_ascii_alphanumeric() || byte == b'-' {
            // What begins an id must not look like an option.
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
