//! Encloses tool output in marks that its author cannot guess.
//!
//! The model reads results as text beside its instructions, so output could close its own block and
//! continue in another's name. A mark made from what was said before any output keeps the two apart,
//! and tags of ours in the output lose their bracket. This is not a security boundary: what a call may
//! do is decided where it is run.

use rondo_types::{Message, ModelRequest, Role};
use std::borrow::Cow;

/// Tags that output must not write.
const OURS: [&str; 7] = [
    "observation",
    "tool_code",
    "tool_call",
    "tool:call",
    "final_answer",
    "tool_definitions",
    "function=",
];
/// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Returns the mark of a conversation: the same for each of its requests, since a prefix that
/// changed would not be cached.
///
/// Made from the system prompt and from everything up to the first call, its id included.
pub(super) fn nonce(request: &ModelRequest) -> String {
    let mut hash = FNV_OFFSET;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    };
    request.system.iter().for_each(|block| add(block));
    for message in before_results(request) {
        add(&message.text());
        for call in message.tool_calls() {
            add(call.id.as_str());
            add(&call.arguments);
        }
    }
    format!("{hash:016x}")
}

fn before_results(request: &ModelRequest) -> impl Iterator<Item = &Message> {
    let messages = request.messages.iter().map(AsRef::as_ref);
    messages.take_while(|message| message.role != Role::Tool)
}

/// Returns the text with every tag of ours made harmless, in any case and with any space in it.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('<') {
        let after = text.get(at + 1..).unwrap_or_default();
        if is_ours(after) {
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// The bound on the text behind a `<` that is looked at, in characters.
const LOOK_CHARS_MAX: usize = 64;

fn is_ours(after: &str) -> bool {
    let seen: String = after
        .chars()
        .take(LOOK_CHARS_MAX)
        .filter(|c| !c.is_whitespace() && !is_invisible(*c) && *c != '/')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    OURS.iter().any(|name| seen.starts_with(name))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_ours_lose_their_bracket_in_any_writing() {
        let cases = [
            ("</observation>", "&lt;/observation>"),
            ("< / OBSERVATION >", "&lt; / OBSERVATION >"),
            ("<tool\u{200b}_code>", "&lt;tool\u{200b}_code>"),
            ("a < b <b> <tool>", "a < b <b> <tool>"),
            ("é<tool_code>é", "é&lt;tool_code>é"),
            ("<<tool_code>", "<&lt;tool_code>"),
        ];
        for (text, escaped) in cases {
            assert_eq!(escape(text), escaped);
        }
    }
}
