//! Messages and their parts.

use crate::{CallId, ToolErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The ordered messages of a session.
///
/// Messages are shared, so handing a transcript to each step costs a pointer a message.
pub type Transcript = Vec<Arc<Message>>;

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the runtime speaking in their place ([`Message::synthetic`]).
    User,
    /// The model.
    Assistant,
    /// Results of the tool calls of the assistant message right before.
    Tool,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order. Never reordered, since providers validate the order.
    pub parts: Vec<Part>,
    /// Which model said it; present on assistant messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Whether the runtime wrote it (a corrective message, a nudge) rather than a person or model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
    /// Whether the provider paused in it ([`FinishReason::Paused`](crate::FinishReason::Paused)):
    /// as the last message it goes back as it is, and the model goes on in the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

impl Message {
    /// Builds a user message of one text part.
    pub fn user(text: impl Into<String>) -> Self {
        Self::of_parts(Role::User, vec![Part::text(text)])
    }

    /// Builds a user message that the runtime wrote.
    pub fn synthetic_user(text: impl Into<String>) -> Self {
        Self {
            synthetic: true,
            ..Self::user(text)
        }
    }

    /// Builds an assistant message of one text part, with no origin.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of_parts(Role::Assistant, vec![Part::text(text)])
    }

    /// Builds the message that carries the results of one step, in call order.
    #[must_use]
    pub fn tool_results(results: Vec<ToolResult>) -> Self {
        Self::of_parts(
            Role::Tool,
            results.into_iter().map(Part::ToolResult).collect(),
        )
    }

    fn of_parts(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            origin: None,
            synthetic: false,
            paused: false,
        }
    }

    /// Returns all text parts joined; reasoning and refusals are not text.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Iterates over the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Iterates over the tool results, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text meant for the reader.
    Text(TextPart),
    /// The model's reasoning, where the provider shows it.
    Reasoning(ReasoningPart),
    /// A refusal in the provider's own field (OpenAI: `refusal`).
    Refusal(TextPart),
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// An image or a file.
    Media(Media),
    /// A provider part that Rondo does not interpret and must return unchanged.
    Opaque(Opaque),
}

impl Part {
    /// Builds a plain text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart {
            text: text.into(),
            opaque: None,
        })
    }
}

/// Where a part came from: what may be returned to whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The wire protocol, such as `gemini` or `openai-chat`.
    pub dialect: String,
    /// The configured provider's name, such as `openrouter`.
    pub provider: String,
    /// The model's name as it was requested.
    pub model: String,
}

/// Provider data that must go back unchanged, and only to where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// Who sent it.
    pub origin: Origin,
    /// The raw JSON text, byte for byte as received; what it holds is the dialect's own business.
    pub json: String,
}

/// Text, with whatever the provider attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text. May be empty when the part only carries opaque data.
    pub text: String,
    /// Provider data of this part, such as a Gemini `thoughtSignature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Reasoning text, with whatever the provider attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningPart {
    /// The reasoning as shown; empty when the provider only sends it sealed.
    pub text: String,
    /// Provider data of this part: a signature, sealed content, or the wire field it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ours, unique in the session.
    pub id: CallId,
    /// The provider's id, if it sent one that is unique in its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, which may be broken.
    pub arguments: String,
    /// Whether the provider finished the call. An incomplete call is never run.
    pub complete: bool,
    /// Provider data of this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// The one result of a tool call, as the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub call_id: CallId,
    /// The provider's id of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The error's code; absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorCode>,
    /// What the model reads, rendered in the profile's way.
    pub content: ToolContent,
    /// Images and files that the tool returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the runtime wrote it for a call that did not run to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
}

/// What the model reads of a tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum ToolContent {
    /// Plain text.
    Text(String),
    /// A JSON value; dialects that carry only text send it compact.
    Json(Value),
}

impl ToolContent {
    /// Returns the content as text: itself, or compact JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(value) => value.to_string(),
        }
    }
}

/// An image or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// The media type, such as `image/png`.
    pub mime: String,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the bytes are.
    pub source: MediaSource,
}

/// Kinds of media that providers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Anything else.
    File,
}

/// Where the bytes of a [`Media`] are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum MediaSource {
    /// The bytes themselves, in standard base64.
    Base64(String),
    /// An address that the provider fetches.
    Url(String),
}
