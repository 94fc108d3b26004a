//! The shapes of events, and of a whole response, which is an event without a type. Items stay raw
//! until they are read one by one, since they go back byte for byte.

use crate::json::{Count, Text, lenient};
use rondo_types::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of any type; each has a few of the fields.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) object: Option<Text<'a>>,
    pub(super) output_index: Option<Count>,
    pub(super) summary_index: Option<Count>,
    pub(super) content_index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// Id of a response, in its first events.
#[derive(Debug, Deserialize)]
pub(super) struct ResponseNames<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
}

/// The response object of the last event, or a whole document.
#[derive(Debug, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) incomplete_details: Option<IncompleteDetails>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

/// An output item of any type.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
}

/// One piece of a message's content or of a reasoning's text.
#[derive(Debug, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    #[serde(default, deserialize_with = "lenient")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct InputDetails {
    cached_tokens: Option<Count>,
    cache_write_tokens: Option<Count>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<Count>,
}

impl WireUsage {
    /// Returns the counts; the provider counts as we do.
    pub(super) fn counts(self) -> Usage {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        let input = self.input_tokens_details;
        let output = self.output_tokens_details;
        Usage {
            input: count(self.input_tokens),
            output: count(self.output_tokens),
            reasoning: count(output.and_then(|it| it.reasoning_tokens)),
            cache_read: count(input.and_then(|it| it.cached_tokens)),
            cache_write: count(input.and_then(|it| it.cache_write_tokens)),
        }
    }
}

/// Reads the pieces of a content, or none if it has another shape.
pub(super) fn pieces(raw: Option<&RawValue>) -> Vec<Piece<'_>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// Returns the text of a message, refusals included.
pub(super) fn message_text(item: &Item<'_>) -> String {
    let pieces = pieces(item.content);
    let texts = pieces
        .iter()
        .flat_map(|piece| [&piece.text, &piece.refusal]);
    texts.flatten().map(|text| text.0.as_ref()).collect()
}
