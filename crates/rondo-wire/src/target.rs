//! The provider and model that a request is encoded for; and the encoded request.

use crate::LoweringNote;
use bytes::Bytes;
use rondo_types::{Origin, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The provider and model that a request is encoded for, and the provider's quirks.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The dialect, provider and model. Opaque data goes back only where dialect and provider are
    /// the same, and what may be signed or sealed only if the model is too.
    pub origin: Origin,
    /// How this provider differs from its dialect.
    pub quirks: Quirks,
    /// Ask for a streamed reply. Decoding does not depend on it.
    pub streaming: bool,
    /// Fields merged into the request body last: objects are merged, anything else is replaced.
    pub extra_body: Map<String, Value>,
    /// Offer the provider's own search of the web, if the dialect has one.
    pub web_search: bool,
    /// The tools on offer, whose names [`Quirks::lenient_tool_calls`] looks for.
    pub tools: Arc<Vec<ToolSpec>>,
}

impl Target {
    /// Builds a streaming target without quirks.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            quirks: Quirks::default(),
            streaming: true,
            extra_body: Map::new(),
            web_search: false,
            tools: Arc::default(),
        }
    }
}

/// How a provider differs from what its dialect says; everything is off by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// OpenAI chat: the message field in which reasoning of assistant messages with tool calls goes
    /// back to the provider it came from. DeepSeek refuses requests without `reasoning_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_reasoning: Option<String>,
    /// OpenAI chat: the field of the output bound.
    pub max_tokens_field: MaxTokensField,
    /// OpenAI chat: do not ask for token counts in the stream, for servers that refuse the field.
    pub omit_stream_usage: bool,
    /// Describe images and files instead of sending them, for models that read only text.
    pub omit_media: bool,
    /// Never send a temperature; some reasoning models refuse it.
    pub omit_temperature: bool,
    /// OpenAI chat: the value of `parallel_tool_calls`; absent sends nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// OpenAI chat: send `""` if an assistant message has only tool calls.
    pub empty_content_instead_of_null: bool,
    /// OpenAI chat: call ids are nine characters of `[A-Za-z0-9]` (Mistral refuses others).
    pub nine_char_ids: bool,
    /// OpenAI chat: read a call that the model wrote as text.
    ///
    /// Only when no native call came: the first balanced
    /// `{"name": known tool, "arguments": {}}` of the answer, bare or as a fence that is the whole
    /// answer. Text after the call is dropped, since a model that writes calls as text also
    /// writes their results. Text is held back from the first `{` on.
    pub lenient_tool_calls: bool,
    /// Gemini: mark the first call of model turns from elsewhere so that the provider does not ask
    /// for its signature. Some models refuse the mark.
    pub skip_signature_for_foreign_calls: bool,
}

/// The field of the output bound in OpenAI chat requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`, which compatible servers know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models require.
    MaxCompletionTokens,
}

impl MaxTokensField {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A request as it goes on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded<B = Vec<u8>> {
    /// Path after the base URL: `/chat/completions` if base URLs end in `/v1`, and
    /// `/v1beta/models/...` for Gemini, whose base URLs have no version. May hold a query.
    pub path: String,
    /// The JSON body: whole, or as the pieces that it is made of.
    pub body: B,
    /// Dropped or changed parts, in order.
    pub notes: Vec<LoweringNote>,
}

impl Encoded<Vec<Bytes>> {
    /// Returns the same request with its body in one piece.
    #[must_use]
    pub fn joined(self) -> Encoded {
        Encoded {
            path: self.path,
            body: self.body.concat(),
            notes: self.notes,
        }
    }
}
