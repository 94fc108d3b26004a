//! Keeps the encoded beginnings of conversations between requests.

use rondo_types::Message;
use rondo_wire::EncodedPrefix;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The bound on conversations whose encoding is kept.
const CONVERSATIONS_MAX: usize = 4096;
/// The bound on the bytes kept for all of them together; only the latest one may be larger. If there are more, they are
/// encoded again for each step, which takes about a millisecond for so many bytes: with a thousand conversations memory
/// counts for more.
const BYTES_MAX: usize = 1024 * 1024;
/// Conversations shorter than this are not kept: to encode them costs less than to find them.
const BYTES_MIN: usize = 4 * 1024;

/// State that the latest request of each conversation left for the next.
///
/// A conversation is found by the last of its messages that is kept, so that it needs no name.
/// If two continue from the same message, the first takes the state and the other starts afresh.
#[derive(Debug, Default)]
pub(crate) struct Conversations(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    by_last_message: HashMap<usize, Entry>,
    /// The same, the longest unused first.
    by_use: BTreeMap<u64, usize>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    prefix: EncodedPrefix,
    used: u64,
}

impl Conversations {
    /// Takes the encoded prefix of the conversation that these messages continue.
    pub(crate) fn take(&self, messages: &[Arc<Message>]) -> EncodedPrefix {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.by_use.is_empty() {
            return EncodedPrefix::default();
        }
        let mut latest = messages.iter().rev();
        let found = latest.find_map(|message| shelf.remove(Arc::as_ptr(message).addr()));
        found.unwrap_or_default()
    }

    /// Keeps what the conversation's next request can use.
    pub(crate) fn put(&self, prefix: EncodedPrefix) {
        let Some(last) = prefix
            .last_message()
            .filter(|_| prefix.bytes() >= BYTES_MIN)
        else {
            return;
        };
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.remove(last);
        shelf.insert(last, prefix);
        shelf.clear(CONVERSATIONS_MAX, BYTES_MAX);
    }
}

impl Shelf {
    fn remove(&mut self, last: usize) -> Option<EncodedPrefix> {
        let Entry { prefix, used } = self.by_last_message.remove(&last)?;
        self.by_use.remove(&used);
        self.bytes -= prefix.bytes();
        Some(prefix)
    }

    fn insert(&mut self, last: usize, prefix: EncodedPrefix) {
        self.uses += 1;
        let used = self.uses;
        self.bytes += prefix.bytes();
        self.by_use.insert(used, last);
        self.by_last_message.insert(last, Entry { prefix, used });
    }

    /// Drops the longest unused until the bounds hold, and those whose messages are gone.
    fn clear(&mut self, conversations_max: usize, bytes_max: usize) {
        while let Some((_, &oldest)) = self.by_use.first_key_value() {
            let is_gone = self
                .by_last_message
                .get(&oldest)
                .is_none_or(|it| it.prefix.is_over());
            let count = self.by_use.len();
            let is_over = count > conversations_max || (self.bytes > bytes_max && count > 1);
            if !is_gone && !is_over {
                return;
            }
            self.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{ModelRequest, Origin, Sampling, ToolChoice, Transcript};
    use rondo_wire::{Target, dialect};

    /// Encodes a conversation of one long message, and returns it with what is kept of it.
    fn conversation() -> (Transcript, EncodedPrefix) {
        let messages = vec![Arc::new(Message::assistant("x".repeat(BYTES_MIN)))];
        let request = ModelRequest {
            model: "m".into(),
            system: vec![].into(),
            messages: messages.clone(),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            response_schema: None,
        };
        let target = Target::new(Origin {
            dialect: "openai-chat".into(),
            provider: "p".into(),
            model: "m".into(),
        });
        let mut prefix = EncodedPrefix::default();
        let dialect = dialect("openai-chat").unwrap();
        dialect.encode_onto(&mut prefix, &request, &target);
        (messages, prefix)
    }

    #[test]
    fn a_conversation_is_found_by_its_messages_once() {
        let conversations = Conversations::default();
        let (mut messages, prefix) = conversation();
        let (other, _) = conversation();
        let bytes = prefix.bytes();
        conversations.put(prefix);
        messages.extend((0..5).map(|_| Arc::new(Message::user("more"))));
        assert_eq!(conversations.take(&other).bytes(), 0);
        assert_eq!(conversations.take(&messages).bytes(), bytes);
        assert_eq!(conversations.take(&messages).bytes(), 0);
    }

    #[test]
    fn the_longest_unused_goes_first_at_either_bound_but_the_latest_may_be_larger() {
        let held: Vec<_> = (0..3).map(|_| conversation()).collect();
        let bytes: usize = held.iter().map(|(_, prefix)| prefix.bytes()).sum();
        for (conversations_max, bytes_max, left) in [
            (3, bytes, 3),
            (2, bytes, 2),
            (3, bytes - 1, 2),
            (3, 0, 1),
            (0, 0, 0),
        ] {
            let mut shelf = Shelf::default();
            let held: Vec<_> = (0..3).map(|_| conversation()).collect();
            let mut messages = Vec::new();
            for (said, prefix) in held {
                shelf.insert(prefix.last_message().unwrap(), prefix);
                messages.push(said);
            }
            shelf.clear(conversations_max, bytes_max);
            let found = |said: &Transcript| {
                shelf
                    .by_last_message
                    .contains_key(&Arc::as_ptr(&said[0]).addr())
            };
            let found: Vec<bool> = messages.iter().map(found).collect();
            assert_eq!(found, [left > 2, left > 1, left > 0]);
            assert_eq!((shelf.by_use.len(), shelf.bytes), (left, bytes / 3 * left));
        }
    }

    #[test]
    fn what_is_kept_goes_with_its_messages() {
        let conversations = Conversations::default();
        let (messages, prefix) = conversation();
        conversations.put(prefix);
        drop(messages);
        let (_held, prefix) = conversation();
        conversations.put(prefix);
        assert_eq!(conversations.0.lock().unwrap().by_use.len(), 1);
    }
}
