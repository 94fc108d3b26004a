//! A request to a model, in no provider's words.

use crate::{Origin, Price, ToolSpec, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Everything a model is asked, in no provider's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The model's name at its provider.
    pub model: String,
    /// The ordered blocks of the system prompt; dialects with one system text join them by a blank
    /// line.
    pub system: Vec<String>,
    /// The conversation so far.
    pub messages: Transcript,
    /// The tools on offer; empty for a tool-free call.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Whether the model may or must call.
    pub tool_choice: ToolChoice,
    /// How to sample.
    pub sampling: Sampling,
    /// The JSON Schema that the answer text must fit, where the provider can enforce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
}

/// Whether the model may or must call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must answer in text. Tools may still be listed, since some providers want them defined
    /// when the history holds calls.
    None,
}

/// How to sample. Absent means the provider's default, and nothing is sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// Usually from 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The bound on generated tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much to reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// How much a reasoning model should reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

/// Where the server of a model is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerAddress {
    /// Its name or its IP address, this without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What is known of a model before it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Where its parts come from and may go back to.
    pub origin: Origin,
    /// Whether replies arrive as they are generated. Where not, the first event comes with the
    /// whole reply, so only the step timeout bounds the wait for it.
    pub streaming: bool,
    /// What it costs, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How many tokens fit its context, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl ModelInfo {
    /// Returns `provider/model`, the name people know it by.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.origin.provider, self.origin.model)
    }
}
