//! Messages of the gateway, and requests to a provider.

use rondo_types::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;

/// The longest text of one outgoing message, in characters; longer answers are sent in several.
pub const OUTBOUND_CHARS_MAX: usize = 4_000;
/// Key under which a channel puts the id of the message, which the answer then replies to.
const MESSAGE_ID: &str = "message_id";

/// A message that came in through a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboundMessage {
    /// The channel's name, such as `telegram`.
    pub channel: String,
    /// The chat in that channel.
    pub chat_id: String,
    /// The text.
    pub content: String,
    /// Further data of the channel; a text `message_id` is the message that the answer replies to.
    #[serde(default)]
    pub metadata: HashMap<String, Value>,
}

impl InboundMessage {
    /// Builds a message without metadata.
    pub fn new(
        channel: impl Into<String>,
        chat_id: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        Self {
            channel: channel.into(),
            chat_id: chat_id.into(),
            content: content.into(),
            metadata: HashMap::new(),
        }
    }

    /// Returns the id of the chat's session: `{channel}_{chat_id}`.
    ///
    /// Different chats have different ids, and each is a file name: in both parts, what is neither an ASCII letter or
    /// digit nor one of `-.` (in the chat's part, `_` too) is written as `%` and its bytes in hex.
    ///
    /// ```
    /// use rondo::design::hub::InboundMessage;
    ///
    /// assert_eq!(InboundMessage::new("telegram", "-100_7", "").session_id(), "telegram_-100_7");
    /// assert_eq!(InboundMessage::new("a_b", "c/d", "").session_id(), "a%5Fb_c%2Fd");
    /// ```
    #[must_use]
    pub fn session_id(&self) -> String {
        let mut id = String::new();
        escape(&self.channel, "-.", &mut id);
        id.push('_');
        escape(&self.chat_id, "-._", &mut id);
        id
    }

    /// Builds the answer to it.
    pub fn reply(&self, content: impl Into<String>) -> OutboundMessage {
        let id = self.metadata.get(MESSAGE_ID);
        OutboundMessage {
            channel: self.channel.clone(),
            chat_id: self.chat_id.clone(),
            content: content.into(),
            reply_to: id.and_then(Value::as_str).map(str::to_owned),
        }
    }
}

fn escape(text: &str, plain: &str, out: &mut String) {
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || plain.contains(letter) {
            out.push(letter);
            continue;
        }
        let mut bytes = [0; 4];
        for byte in letter.encode_utf8(&mut bytes).bytes() {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// A message that goes out through a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMessage {
    /// The channel's name.
    pub channel: String,
    /// The chat in that channel.
    pub chat_id: String,
    /// The text.
    pub content: String,
    /// The message that it replies to, if the channel named it.
    pub reply_to: Option<String>,
}

impl OutboundMessage {
    /// Returns it in messages of at most `chars_max` characters each, cut after a line if there is one. The first
    /// one replies.
    #[must_use]
    pub fn split(self, chars_max: usize) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut rest = self.content.as_str();
        while let Some((end, _)) = rest.char_indices().nth(chars_max.max(1)) {
            let beginning = rest.get(..end).unwrap_or_default();
            let cut = beginning.rfind('\n').map_or(end, |line| line + 1);
            pieces.push(rest.get(..cut).unwrap_or_default().trim_end().to_owned());
            rest = rest.get(cut..).unwrap_or_default();
        }
        pieces.push(rest.to_owned());
        pieces.retain(|piece| !piece.trim().is_empty());
        let mut reply_to = self.reply_to;
        let pieces = pieces.into_iter().map(|content| Self {
            channel: self.channel.clone(),
            chat_id: self.chat_id.clone(),
            content,
            reply_to: reply_to.take(),
        });
        pieces.collect()
    }
}

/// Author of a message to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmRole {
    /// The layers of the context that precede the history.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool, with one result.
    Tool,
}

/// One message to a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmMessage {
    /// Author of the message.
    pub role: LlmRole,
    /// The text.
    pub content: String,
    /// The calls of an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<LlmToolCall>,
    /// The call that a result answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl LlmMessage {
    /// Builds a message without calls.
    pub fn new(role: LlmRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// Builds the result of a call.
    pub fn tool_result(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(call_id.into()),
            ..Self::new(LlmRole::Tool, content)
        }
    }
}

/// A call that the model wants run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmToolCall {
    /// Names the call in its conversation.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, an object; the text as it came if that is not JSON.
    pub arguments: Value,
}

/// A provider's reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LlmResponse {
    /// The text; empty if there are only calls.
    pub content: String,
    /// The calls, in order. None of them ends the loop.
    pub tool_calls: Vec<LlmToolCall>,
    /// The tokens that it cost, if the provider says.
    pub usage: Option<Usage>,
}

impl LlmResponse {
    /// Builds a reply that is an answer.
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }
}
