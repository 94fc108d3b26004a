//! Messages and their parts.

use crate::{CallId, ToolErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The ordered messages of a session.
///
/// Messages are reference-counted, so a copy of the transcript copies one pointer per message.
pub type Transcript = Vec<Arc<Message>>;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the runtime in the user's place ([`Message::synthetic`]).
    User,
    /// The model.
    Assistant,
    /// The results of the tool calls in the preceding assistant message.
    Tool,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content, in order. Never reordered, since providers validate the order.
    pub parts: Vec<Part>,
    /// The model that wrote it; absent on other messages, and on an assistant message that did not
    /// come from a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Set if the runtime wrote it (a corrective message, a nudge), not the user or a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
    /// Set if the provider paused the reply here
    /// ([`FinishReason::Paused`](crate::FinishReason::Paused)). As the last message it is sent back
    /// unchanged, and the model continues in the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Set if it holds text by others than those who decide what the agent does, such as people in a group or the
    /// author of a forwarded message: that text may be written to lead the model astray.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_outside: bool,
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
            from_outside: false,
        }
    }

    /// Returns all text parts joined, without reasoning and refusals.
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
    /// The model's reasoning, when the provider returns it.
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

/// The dialect, provider and model that a part came from. Provider data goes back only to its
/// origin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The wire protocol, such as `gemini` or `openai-chat`.
    pub dialect: String,
    /// The configured provider's name, such as `openrouter`.
    pub provider: String,
    /// The model's name as it was requested.
    pub model: String,
}

/// Provider data that must be sent back unchanged, and only to its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// Origin of the data.
    pub origin: Origin,
    /// The raw JSON text, byte for byte as received. Only the dialect interprets it.
    pub json: String,
}

/// Text, with the provider data attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text. May be empty when the part only carries opaque data.
    pub text: String,
    /// Provider data of this part, such as a Gemini `thoughtSignature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Reasoning text, with the provider data attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningPart {
    /// The readable reasoning; empty when the provider sends it only encrypted.
    pub text: String,
    /// Provider data of this part: a signature, encrypted content, or the wire field it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A tool call that the model requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The engine's id, unique in the session.
    pub id: CallId,
    /// The provider's id, if it sent one that is unique in its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, which may be invalid.
    pub arguments: String,
    /// `true` if the provider finished the call. An incomplete call is never run.
    pub complete: bool,
    /// Provider data of this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// The result of a tool call, as the model reads it. Each call has exactly one.
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
    /// Text for the model, in the profile's [`ResultRendering`](crate::ResultRendering).
    pub content: ToolContent,
    /// Blocks that follow `content`, in order. If a protocol has no place for media in a result, they follow it in a
    /// message of their own. `media` in records, which held nothing else at first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "media")]
    pub blocks: Vec<ContentBlock>,
    /// Set if the runtime wrote it for a call that did not run to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
}

impl ToolResult {
    /// Returns the images and files among the blocks, in order.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        ContentBlock::media_of(&self.blocks)
    }

    /// Returns the texts among the blocks in one, where each of the media is named at its place, for protocols
    /// whose results hold no media; `None` if no block is text, so that nothing but media follows.
    #[must_use]
    pub fn text_of_blocks(&self) -> Option<String> {
        let is_text = |it: &ContentBlock| matches!(it, ContentBlock::Text { .. });
        self.blocks.iter().any(is_text).then(|| {
            let texts = self.blocks.iter().map(|it| match it {
                ContentBlock::Text { text } => Cow::Borrowed(text.as_str()),
                ContentBlock::Media(media) => Cow::Owned(media.reference()),
            });
            texts.collect::<Vec<_>>().join("\n")
        })
    }

    /// Returns the content as text with [`Self::text_of_blocks`] below it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = self.content.to_text();
        match self.text_of_blocks() {
            Some(more) if text.is_empty() => more,
            Some(more) => format!("{text}\n{more}"),
            None => text,
        }
    }
}

/// One piece of a tool's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ContentBlock {
    /// An image or a file.
    Media(Media),
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

impl From<Media> for ContentBlock {
    fn from(media: Media) -> Self {
        Self::Media(media)
    }
}

impl ContentBlock {
    /// The bound on the blocks of one output.
    pub const COUNT_MAX: usize = 256;

    /// Builds a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the images and files among the blocks, in order.
    pub fn media_of(blocks: &[Self]) -> impl Iterator<Item = &Media> {
        blocks.iter().filter_map(|block| match block {
            Self::Media(media) => Some(media),
            Self::Text { .. } => None,
        })
    }
}

/// Content of a tool result, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum ToolContent {
    /// Plain text.
    Text(String),
    /// A JSON value; dialects that carry only text send it as compact JSON.
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
    /// Kind of media.
    pub kind: MediaKind,
    /// The media type, such as `image/png`.
    pub mime: String,
    /// The file name to display, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Location of the bytes.
    pub source: MediaSource,
}

/// Kinds of media that providers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A sound recording.
    Audio,
    /// Anything else.
    File,
}

/// Location of the bytes of a [`Media`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum MediaSource {
    /// The bytes themselves, in standard base64.
    Base64(String),
    /// An address that the provider fetches.
    Url(String),
}
