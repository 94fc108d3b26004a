//! The shapes of a `GenerateContentResponse`. Parts stay raw until they are read one by one, since
//! some go back byte for byte.

use super::SIGNATURE;
use crate::json::{Count, RawObject, Text, nonempty};
use rondo_types::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) response_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<WireCandidate<'a>>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    pub(super) usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireCandidate<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) content: Option<WireContent<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) finish_message: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Option<Text<'a>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: Option<Count>,
    candidates_token_count: Option<Count>,
    thoughts_token_count: Option<Count>,
    cached_content_token_count: Option<Count>,
    tool_use_prompt_token_count: Option<Count>,
}

impl UsageMetadata {
    /// Returns the counts as Gemini counts: output without thoughts, the prompt without what its
    /// own tools added.
    pub(super) fn reported(self) -> Usage {
        let count = |count: Option<Count>| count.unwrap_or_default().0;
        Usage {
            input: count(self.prompt_token_count),
            output: count(self.candidates_token_count),
            reasoning: count(self.thoughts_token_count),
            cache_read: count(self.cached_content_token_count),
            cache_write: 0,
        }
    }

    /// Returns the counts in our way.
    pub(super) fn ours(self) -> Usage {
        let mut usage = self.reported();
        let tools = self.tool_use_prompt_token_count.unwrap_or_default().0;
        usage.input = usage.input.saturating_add(tools);
        usage.output = usage.output.saturating_add(usage.reasoning);
        usage
    }
}

/// A part; its fields say of which kind it is.
#[derive(Debug)]
pub(super) enum WirePart<'a> {
    /// Text or a thought, with the raw JSON of its other fields, if there are any.
    Text {
        text: Text<'a>,
        thought: bool,
        opaque: Option<String>,
    },
    /// A call that came whole.
    Call {
        call: WireCall<'a>,
        /// Set if rebuilding the part from name, arguments and id would lose something.
        is_opaque: bool,
    },
    /// A piece of a call (Vertex only), or one that could not be run.
    PartialCall(PartialCall<'a>),
    /// Anything else.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct WireCall<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Text<'a>,
    pub(super) args: Option<&'a RawValue>,
}

/// A piece of a call.
#[derive(Debug, Default)]
pub(super) struct PartialCall<'a> {
    call: WireCall<'a>,
    /// Arguments that came whole.
    pub(super) args: Option<&'a RawValue>,
    /// Those that come in pieces.
    pub(super) pieces: Option<&'a RawValue>,
    /// Set if more of the call follows.
    pub(super) will_continue: bool,
    /// Set if there is a part of an unknown kind.
    pub(super) has_unknown: bool,
    /// Fields of the part beside the call.
    pub(super) fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl PartialCall<'_> {
    pub(super) fn name(&self) -> Option<&str> {
        nonempty(Some(&self.call.name))
    }

    pub(super) fn id(&self) -> Option<&str> {
        nonempty(self.call.id.as_ref())
    }
}

/// Reads a part. One that is not an object, or has no known content, is [`WirePart::Other`].
pub(super) fn read_part(raw: &RawValue) -> WirePart<'_> {
    let Ok(RawObject(fields)) = serde_json::from_str(raw.get()) else {
        return WirePart::Other;
    };
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|it| it.1);
    if let Some(call) = field("functionCall") {
        let beside = fields.iter().filter(|(key, _)| key != "functionCall");
        let beside: Vec<_> = beside.cloned().collect();
        return read_call(call, beside).unwrap_or(WirePart::Other);
    }
    let bare = |(key, _): &(Cow<'_, str>, _)| key == "thought" || key == SIGNATURE;
    let text = match field("text") {
        Some(text) => serde_json::from_str(text.get()).ok(),
        // A part without content is refused when it comes back; as an empty text it is taken.
        None => fields.iter().all(bare).then(Text::default),
    };
    let Some(text) = text else {
        return WirePart::Other;
    };
    let thought = field("thought").is_some_and(|thought| thought.get() == "true");
    let opaque: Vec<String> = fields
        .iter()
        .filter(|(key, value)| !matches!(key.as_ref(), "text" | "thought") && value.get() != "null")
        .map(|(key, value)| {
            let key = serde_json::Value::from(key.as_ref());
            format!("{key}:{value}")
        })
        .collect();
    WirePart::Text {
        text,
        thought,
        opaque: (!opaque.is_empty()).then(|| opaque.join(",")),
    }
}

fn read_call<'a>(
    raw: &'a RawValue,
    beside: Vec<(Cow<'a, str>, &'a RawValue)>,
) -> Option<WirePart<'a>> {
    let RawObject(fields) = serde_json::from_str(raw.get()).ok()?;
    let mut call = WireCall::default();
    let mut partial = PartialCall::default();
    let mut is_partial = false;
    for (key, value) in fields {
        match key.as_ref() {
            "id" => call.id = serde_json::from_str(value.get()).ok(),
            "name" => call.name = serde_json::from_str(value.get()).unwrap_or_default(),
            "args" => call.args = Some(value).filter(|args| args.get() != "null"),
            "partialArgs" => {
                is_partial = true;
                partial.pieces = Some(value).filter(|pieces| pieces.get() != "null");
            }
            "willContinue" => {
                is_partial = true;
                partial.will_continue = value.get() == "true";
            }
            _ => partial.has_unknown = true,
        }
    }
    Some(if is_partial || call.name.is_empty() {
        WirePart::PartialCall(PartialCall {
            args: call.args,
            call,
            fields: beside,
            ..partial
        })
    } else {
        // Arguments that were left out are not sent back as an empty object.
        let is_opaque = partial.has_unknown || !beside.is_empty() || call.args.is_none();
        WirePart::Call { call, is_opaque }
    })
}
