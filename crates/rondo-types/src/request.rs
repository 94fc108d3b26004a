//! A model request, independent of the provider.

use crate::{Origin, Price, ToolSpec, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A model request, independent of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The model's name at its provider.
    pub model: String,
    /// The ordered blocks of the system prompt; dialects with one system text join them by a blank
    /// line.
    pub system: Arc<Vec<String>>,
    /// The conversation so far.
    pub messages: Transcript,
    /// The tools that the model may call; may be empty.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Permission to call the tools.
    pub tool_choice: ToolChoice,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// The JSON Schema of the answer text, for providers that can enforce one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
}

/// Permission of the model to call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must answer in text. Tools may still be listed, since some providers require their
    /// definitions when the history has calls.
    None,
}

/// Sampling parameters. An absent one is not sent, so the provider's default applies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// The randomness of the reply, usually from 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The bound on generated tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// How much a reasoning model reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Less reasoning: faster and cheaper.
    Low,
    /// The middle level.
    Medium,
    /// More reasoning: slower and more expensive.
    High,
}

/// The address of a model's server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerAddress {
    /// The host name or IP address; an IPv6 address has no brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// Facts about a model that are known before the first request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The origin of the parts that it writes.
    pub origin: Origin,
    /// `true` if replies arrive as they are generated. If not, the first event comes with the whole
    /// reply, so only the step timeout bounds the wait for it.
    pub streaming: bool,
    /// The price per token, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The size of its context in tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl ModelInfo {
    /// Returns `provider/model`, the name used in settings and events.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.origin.provider, self.origin.model)
    }
}
