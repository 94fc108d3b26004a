//! Events that are only a delta, as nearly all are.

use super::event::Delta;
use crate::json::nonempty;
use crate::template::between_quotes;

/// A delta without its text: which block and kind of content it continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plain {
    /// Its block.
    pub(super) index: u32,
    pub(super) kind: DeltaKind,
}

/// The kind of content that a delta continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DeltaKind {
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

/// Returns a delta's kind and the text of that kind, between the quotes; `None` for other types of deltas.
pub(super) fn plain<'d>(delta: &'d Delta<'_>) -> Option<(DeltaKind, &'d str)> {
    let (kind, text) = match nonempty(delta.kind.as_ref())? {
        "text_delta" => (DeltaKind::Text, &delta.text),
        "thinking_delta" => (DeltaKind::Thinking, &delta.thinking),
        "input_json_delta" => (DeltaKind::Arguments, &delta.partial_json),
        _ => return None,
    };
    Some((kind, between_quotes((*text)?)?))
}
