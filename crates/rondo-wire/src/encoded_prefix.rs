//! The encoded beginning of a conversation, which its next request reuses.
//!
//! A conversation grows at its end, so nearly all of a request was encoded for the one before. The
//! bytes of its messages are kept and extended, so that a request costs what is new in it, however
//! long its history is. They are the bytes that a fresh encoding gives, which is also what the
//! providers' prompt caches look for.
//!
//! How many of the bytes are final depends on the dialect:
//! - `openai-chat`: to the last message that is not the user's, since messages of the user in a row become one.
//! - `openai-responses`: to the last message.
//! - `gemini`: to the last content of the model, since later messages may be joined to those behind it.
//! - `anthropic`: to the last but one message of the user; from there on the cache marks move.
//! - `react`: not at all, since it rewrites the conversation before the dialect below encodes it.

use crate::json::{Fields, Json};
use crate::lowering::Notes;
use crate::{LoweringNote, Quirks, Target};
use bytes::{Bytes, BytesMut};
use rondo_types::{Message, ModelRequest, Origin};
use std::sync::{Arc, Weak};

/// EncodedPrefix bytes below this are copied into the body, since a piece of its own costs more.
const PIECE_BYTES_MIN: usize = 16 * 1024;

/// The encoded beginning of one conversation, for its next request.
///
/// Messages are identified by their address, so it serves transcripts that share their messages, as those
/// of one session do. It holds encoded bytes but none of the messages.
#[derive(Debug, Default)]
pub struct EncodedPrefix {
    /// The provider and model that the bytes were encoded for.
    target: Option<(Origin, Quirks)>,
    /// The messages whose bytes are kept. Weak, so that the address of a message that is gone is
    /// not given to another one.
    messages: Vec<Weak<Message>>,
    /// Their elements, with commas between them.
    list: Bytes,
    mark: EncoderMark,
}

/// State of an encoder between two messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncoderMark {
    /// Set if the latest assistant message came from this dialect and provider.
    pub(crate) own: bool,
    /// The notes so far.
    pub(crate) notes: Vec<LoweringNote>,
    /// Names of the tools that were called so far; `anthropic` only.
    pub(crate) tools: Vec<String>,
    /// Set if a message was added before the first one; `anthropic` only.
    pub(crate) opened: bool,
}

impl EncodedPrefix {
    /// Returns the number of bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.list.len()
    }

    /// Returns the address of the last message whose bytes are kept, by which the conversation can
    /// be found again; nothing when nothing is kept.
    #[must_use]
    pub fn last_message(&self) -> Option<usize> {
        self.messages.last().map(|message| message.as_ptr().addr())
    }

    /// Returns whether its messages were all dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let last = self.messages.last();
        last.is_none_or(|message| message.strong_count() == 0)
    }

    /// Drops what is not at the beginning of this request to this target, and returns how
    /// many messages need no encoding.
    pub(crate) fn resume(&mut self, request: &ModelRequest, target: &Target) -> usize {
        let same = matches!(&self.target, Some((origin, quirks))
            if *origin == target.origin && *quirks == target.quirks);
        if !same || !self.begins(&request.messages) {
            *self = Self {
                target: Some((target.origin.clone(), target.quirks.clone())),
                ..Self::default()
            };
        }
        self.messages.len()
    }

    fn begins(&self, messages: &[Arc<Message>]) -> bool {
        let pairs = self.messages.iter().zip(messages);
        self.messages.len() <= messages.len()
            && pairs
                .into_iter()
                .all(|(kept, message)| kept.as_ptr() == Arc::as_ptr(message))
    }

    /// Returns the encoder's state at the end of the kept bytes.
    pub(crate) fn mark(&self) -> EncoderMark {
        self.mark.clone()
    }

    /// Adds the elements of further messages, which stay the same whatever comes after them.
    pub(crate) fn settle(
        &mut self,
        more: &[Arc<Message>],
        elements: &[Json<'_>],
        mark: EncoderMark,
    ) {
        self.messages.extend(more.iter().map(Arc::downgrade));
        self.mark = mark;
        if elements.is_empty() {
            return;
        }
        let mut more = Vec::new();
        for element in elements {
            if !self.list.is_empty() || !more.is_empty() {
                more.push(b',');
            }
            element.write_to(&mut more);
        }
        self.list = joined(std::mem::take(&mut self.list), &more);
    }

    /// Adds the elements of all messages from `from` on, where each message is encoded by itself.
    pub(crate) fn settle_all(
        &mut self,
        request: &ModelRequest,
        from: usize,
        elements: &[Json<'_>],
        own: bool,
        notes: &Notes,
    ) {
        let mark = EncoderMark {
            own,
            notes: notes.first(notes.len()),
            ..EncoderMark::default()
        };
        let more = request.messages.get(from..).unwrap_or_default();
        self.settle(more, elements, mark);
    }

    /// Writes a body, in pieces: its list called `name` has `before`, the kept elements, `after` and
    /// what was put into it, unless something else was put in its place.
    pub(crate) fn body(
        &self,
        fields: &Fields<'_>,
        name: &str,
        before: &[Json<'_>],
        after: &[Json<'_>],
    ) -> Vec<Bytes> {
        let mut body = Pieces::default();
        for (index, (key, value)) in fields.iter().enumerate() {
            body.open.push(if index == 0 { b'{' } else { b',' });
            body.write(&Json::str(key.as_ref()));
            body.open.push(b':');
            match value {
                Json::List(more) if key == name => {
                    body.write_list(before, &self.list, after.iter().chain(more));
                }
                value => body.write(value),
            }
        }
        body.open.push(b'}');
        body.into_list()
    }
}

/// Appends in place if the request before was sent and dropped, and there is room; else to a copy. There is room for an
/// eighth more than is needed: to double it would hold as many unused bytes as used ones, for each conversation.
fn joined(list: Bytes, more: &[u8]) -> Bytes {
    if list.is_empty() {
        return Bytes::copy_from_slice(more);
    }
    let mut list = BytesMut::from(list);
    let needed = list.len() + more.len();
    if list.capacity() < needed {
        let mut larger = BytesMut::with_capacity(needed + needed / 8);
        larger.extend_from_slice(&list);
        list = larger;
    }
    list.extend_from_slice(more);
    list.freeze()
}

#[derive(Default)]
struct Pieces {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

impl Pieces {
    fn write(&mut self, value: &Json<'_>) {
        value.write_to(&mut self.open);
    }

    fn write_list<'j, 'v: 'j>(
        &mut self,
        before: &[Json<'_>],
        kept: &Bytes,
        after: impl Iterator<Item = &'j Json<'v>>,
    ) {
        self.open.push(b'[');
        let mut is_first = true;
        for element in before {
            self.comma(&mut is_first);
            self.write(element);
        }
        if !kept.is_empty() {
            self.comma(&mut is_first);
            self.splice(kept);
        }
        for element in after {
            self.comma(&mut is_first);
            self.write(element);
        }
        self.open.push(b']');
    }

    fn comma(&mut self, is_first: &mut bool) {
        if !std::mem::replace(is_first, false) {
            self.open.push(b',');
        }
    }

    fn splice(&mut self, bytes: &Bytes) {
        if bytes.len() < PIECE_BYTES_MIN {
            self.open.extend_from_slice(bytes);
            return;
        }
        self.done.push(std::mem::take(&mut self.open).into());
        self.done.push(bytes.clone());
    }

    fn into_list(mut self) -> Vec<Bytes> {
        self.done.push(self.open.into());
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_takes_little_more_than_its_bytes() {
        let mut list = Bytes::new();
        for round in 1..200 {
            list = joined(list, &[b'x'; 100]);
            let kept = BytesMut::from(list);
            assert_eq!(kept.len(), round * 100);
            assert!(kept.capacity() <= kept.len() + kept.len() / 8 + 100);
            list = kept.freeze();
        }
    }

    #[test]
    fn a_list_that_is_still_sent_is_not_changed() {
        let list = joined(Bytes::new(), b"a");
        let sent = list.clone();
        let more = joined(joined(list, b"b"), b"c");
        assert_eq!((&sent[..], &more[..]), (&b"a"[..], &b"abc"[..]));
    }
}
