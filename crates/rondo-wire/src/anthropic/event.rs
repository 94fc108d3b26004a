//! The shapes of events, and of a whole message; `decode` reads them and skips events of other types. Blocks stay raw until they are read one by one,
//! since some go back byte for byte.

use crate::json::{Count, Text, lenient, object};
use rondo_types::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of any type, or a whole message, which has a type too.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "object")]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
}

/// The delta of an event as it came, for a block that is not understood.
#[derive(Debug, Deserialize)]
pub(super) struct RawDelta<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
}

/// A message as it begins, or a whole one.
#[derive(Debug, Deserialize)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
}

/// Addition to a block, or the end of the message.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
}

/// Cumulative counts; absent ones were not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
}

impl WireUsage {
    /// Takes later figures. A prompt that was counted does not shrink to nothing, so such a figure
    /// was not counted; that of the output is a guess until the last event.
    pub(super) fn replace_by(&mut self, later: Self) {
        let counted = |count: Option<Count>| count.filter(|count| count.0 > 0);
        self.input_tokens = counted(later.input_tokens).or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens =
            counted(later.cache_read_input_tokens).or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            counted(later.cache_creation_input_tokens).or(self.cache_creation_input_tokens);
    }

    /// Returns the counts as Anthropic counts: the input without what its cache knew or learnt.
    pub(super) fn reported(self) -> Usage {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        Usage {
            input: count(self.input_tokens),
            output: count(self.output_tokens),
            reasoning: 0,
            cache_read: count(self.cache_read_input_tokens),
            cache_write: count(self.cache_creation_input_tokens),
        }
    }

    /// Returns the counts in our way.
    pub(super) fn ours(self) -> Usage {
        let mut usage = self.reported();
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        usage.input = usage.input.saturating_add(cached);
        usage
    }
}
