//! Events that are only a delta, as nearly all are.

use super::event::Delta;
use crate::json::nonempty;
use crate::template::between_quotes;

/// What a delta says, but for its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plain {
    /// Its block.
    pub(super) index: u32,
    pub(super) voice: Voice,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Voice {
    Text,
    Thinking,
    Arguments,
}

/// Where a delta goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    Part {
        thinking: bool,
    },
    /// A call, by its place in the list of calls.
    Call(usize),
}

/// Returns what a delta says, and its text, if its type is that of what it says.
pub(super) fn plain<'d>(delta: &'d Delta<'_>) -> Option<(Voice, &'d str)> {
    let (voice, text) = match nonempty(delta.kind.as_ref())? {
        "text_delta" => (Voice::Text, &delta.text),
        "thinking_delta" => (Voice::Thinking, &delta.thinking),
        "input_json_delta" => (Voice::Arguments, &delta.partial_json),
        _ => return None,
    };
    Some((voice, between_quotes((*text)?)?))
}
