//! The messages and parts of the design.

use async_trait::async_trait;
use rondo_core::Model;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantRole {
    /// The person.
    User,
    /// The model.
    Model,
    /// The functions; `user` on the wire.
    Tool,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text.
    Text(String),
    /// A function that the model wants called.
    FunctionCall {
        /// The provider's id, if it sends one; the response has the same.
        id: Option<String>,
        /// The function.
        name: String,
        /// Its arguments, an object.
        args_json: Value,
    },
    /// Result of a function.
    FunctionResponse {
        /// The id of the call.
        id: Option<String>,
        /// The function.
        name: String,
        /// `{"ok":true,"result":..}` or `{"ok":false,"error":{"code","message","details"}}`.
        response_json: Value,
    },
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Author of the message.
    pub role: AssistantRole,
    /// Parts of the message, in order.
    pub parts: Vec<AssistantPart>,
}

/// Everything that a provider is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantInput {
    /// The system prompt.
    pub system_instruction: Option<String>,
    /// The whole history of this question.
    pub messages: Vec<AssistantMessage>,
    /// The functions on offer.
    pub tools: Vec<FunctionDeclaration>,
    /// Permission to call them.
    pub tool_calling_mode: ToolCallingMode,
}

/// One alternative of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantCandidate {
    /// Message of the reply.
    pub message: AssistantMessage,
    /// Why it ended, in the provider's words (`STOP`, `MAX_TOKENS`, `MALFORMED_FUNCTION_CALL`, ..:
    /// <https://ai.google.dev/api/generate-content#FinishReason>).
    pub finish_reason: Option<String>,
    /// Set if a filter blocked it, so that nothing of it may be used.
    pub safety_blocked: bool,
}

/// A reply: the first usable candidate counts, wherever it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantOutput {
    /// The alternatives, in the provider's order.
    pub candidates: Vec<AssistantCandidate>,
}

impl AssistantOutput {
    /// Builds a reply of one candidate that ended as it should.
    #[must_use]
    pub fn of_parts(parts: Vec<AssistantPart>) -> Self {
        let message = AssistantMessage {
            role: AssistantRole::Model,
            parts,
        };
        Self {
            candidates: vec![AssistantCandidate {
                message,
                finish_reason: Some("STOP".to_owned()),
                safety_blocked: false,
            }],
        }
    }
}

/// The description of a function that the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionDeclaration {
    /// Name of the function.
    pub name: String,
    /// Description of the function.
    pub description: String,
    /// The JSON Schema of its arguments, an object schema.
    pub parameters_json_schema: Value,
}

/// Permission to call functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolCallingMode {
    /// As it likes.
    #[default]
    Auto,
}

/// Transports one request; it decides nothing.
#[async_trait]
pub trait LlmProvider: Send + Sync {
    /// Sends one request and returns the whole reply.
    ///
    /// # Errors
    /// When there is no reply. The message is shown to the user, so it must not hold keys.
    ///
    /// # Cancel safety
    /// Dropped when the step's or the question's time is over.
    async fn complete(&self, input: AssistantInput) -> anyhow::Result<AssistantOutput>;

    /// Returns the model behind this provider, if it is one of this crate: a question then runs
    /// on it directly, so that whatever a provider wants back unchanged is kept.
    fn model(&self) -> Option<Arc<dyn Model>> {
        None
    }
}
