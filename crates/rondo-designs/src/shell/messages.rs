//! The messages of the design, in the shape of OpenAI's.

use rondo_types::{
    CallId, Message, Origin, Part, Role, ToolCall as Call, ToolContent, ToolResult, Transcript,
};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::Arc;

/// One message, in the shape of OpenAI's
/// (<https://platform.openai.com/docs/api-reference/chat/create>), both ways.
///
/// ```
/// use rondo::design::shell::ChatMessage;
///
/// let json = r#"{"role":"tool","content":"{\"stdout\":\"a\",\"exitCode\":0}","name":"exec","tool_call_id":"c1"}"#;
/// let message: ChatMessage = serde_json::from_str(json)?;
/// assert_eq!(message.tool_call_id.as_deref(), Some("c1"));
/// assert_eq!(serde_json::to_string(&message)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: ChatRole,
    /// The text; null on the wire if it is empty and there are calls.
    #[serde(default, deserialize_with = "text_or_null")]
    pub content: String,
    /// The tool, on its results.
    #[serde(default)]
    pub name: Option<String>,
    /// The call that a result answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// The calls of an assistant message.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// The agent's own prompt; not kept in a conversation.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool, with one result.
    Tool,
}

/// One call of an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call in its message.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Called function with its arguments.
    pub function: FunctionCall,
}

/// Function that a call names, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool.
    pub name: String,
    /// Its arguments as JSON text, as the model wrote them.
    pub arguments: String,
}

/// Why messages are not a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A result answers no call of the message before it.
    #[error("message {index} answers `{id}`, which the assistant message before it does not call")]
    Unasked {
        /// Its place, from 0.
        index: usize,
        /// The id it names.
        id: String,
    },
}

impl ChatMessage {
    /// Builds a message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::of(ChatRole::User, content.into())
    }

    /// Builds a message of the model without calls.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::of(ChatRole::Assistant, content.into())
    }

    fn of(role: ChatRole, content: String) -> Self {
        Self {
            role,
            content,
            name: None,
            tool_call_id: None,
            tool_calls: Vec::new(),
        }
    }

    fn of_result(result: &ToolResult) -> Self {
        Self {
            name: Some(result.name.clone()),
            tool_call_id: Some(id_of(result.wire_id.as_ref(), &result.call_id)),
            ..Self::of(ChatRole::Tool, result.content.to_text())
        }
    }
}

impl Serialize for ChatMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_calls = !self.tool_calls.is_empty();
        let content = Some(&self.content).filter(|content| !(has_calls && content.is_empty()));
        let mut fields = serializer.serialize_struct("ChatMessage", 5)?;
        fields.serialize_field("role", &self.role)?;
        fields.serialize_field("content", &content)?;
        if let Some(name) = &self.name {
            fields.serialize_field("name", name)?;
        }
        if let Some(id) = &self.tool_call_id {
            fields.serialize_field("tool_call_id", id)?;
        }
        if has_calls {
            fields.serialize_field("tool_calls", &self.tool_calls)?;
        }
        fields.end()
    }
}

fn text_or_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn function() -> String {
    "function".to_owned()
}

fn id_of(wire_id: Option<&String>, ours: &CallId) -> String {
    wire_id.cloned().unwrap_or_else(|| ours.to_string())
}

/// Returns a conversation in the design's shape: one message for each result.
pub(super) fn chat_messages(transcript: &Transcript) -> Vec<ChatMessage> {
    transcript.iter().flat_map(|it| chat_message(it)).collect()
}

fn chat_message(message: &Message) -> Vec<ChatMessage> {
    match message.role {
        Role::User => vec![ChatMessage::user(message.text())],
        Role::Assistant => vec![ChatMessage {
            tool_calls: message.tool_calls().map(chat_call).collect(),
            ..ChatMessage::assistant(message.text())
        }],
        Role::Tool => message.results().map(ChatMessage::of_result).collect(),
    }
}

fn chat_call(call: &Call) -> ToolCall {
    ToolCall {
        id: id_of(call.wire_id.as_ref(), &call.id),
        kind: function(),
        function: FunctionCall {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    }
}

/// Reads a conversation with a model, whose own ids go back to it. System messages are left out,
/// since the agent brings its own prompt; a call without a result gets one when the conversation is
/// gone on with.
pub(super) fn transcript(
    messages: Vec<ChatMessage>,
    origin: &Origin,
) -> Result<Transcript, MessageError> {
    let mut transcript = Transcript::new();
    // The calls of the latest assistant message, in order, while results may follow.
    let mut asked: VecDeque<(String, CallId, String)> = VecDeque::new();
    let mut results: Vec<ToolResult> = Vec::new();
    for (index, message) in messages.into_iter().enumerate() {
        if message.role != ChatRole::Tool {
            close(&mut transcript, &mut results);
        }
        match message.role {
            ChatRole::System => {}
            ChatRole::User => {
                asked.clear();
                transcript.push(Arc::new(Message::user(message.content)));
            }
            ChatRole::Assistant => {
                let message = assistant(message, index, origin);
                let calls = message.tool_calls();
                let named = calls.map(|it| {
                    let id = id_of(it.wire_id.as_ref(), &it.id);
                    (id, it.id.clone(), it.name.clone())
                });
                asked = named.collect();
                transcript.push(Arc::new(message));
            }
            ChatRole::Tool => results.push(result(message, index, &mut asked)?),
        }
    }
    close(&mut transcript, &mut results);
    Ok(transcript)
}

fn close(transcript: &mut Transcript, results: &mut Vec<ToolResult>) {
    if !results.is_empty() {
        let results = std::mem::take(results);
        transcript.push(Arc::new(Message::tool_results(results)));
    }
}

/// Calls are named by their place, in a turn that no run of ours has.
fn assistant(message: ChatMessage, index: usize, origin: &Origin) -> Message {
    let step = u32::try_from(index).unwrap_or(u32::MAX);
    let calls = (0..).zip(message.tool_calls).map(|(index, call)| {
        Part::ToolCall(Call {
            id: CallId::generated(0, step, index),
            wire_id: Some(call.id).filter(|id| !id.is_empty()),
            name: call.function.name,
            arguments: call.function.arguments,
            complete: true,
            opaque: None,
        })
    });
    let text = Some(message.content).filter(|text| !text.is_empty());
    let mut said = Message::assistant("");
    said.origin = Some(origin.clone());
    said.parts = text.map(Part::text).into_iter().chain(calls).collect();
    said
}

fn result(
    message: ChatMessage,
    index: usize,
    asked: &mut VecDeque<(String, CallId, String)>,
) -> Result<ToolResult, MessageError> {
    let id = message.tool_call_id.unwrap_or_default();
    let place = asked.iter().position(|(asked, _, _)| *asked == id);
    let call = place.and_then(|place| asked.remove(place));
    let Some((_, call_id, name)) = call else {
        return Err(MessageError::Unasked { index, id });
    };
    Ok(ToolResult {
        call_id,
        wire_id: Some(id).filter(|id| !id.is_empty()),
        name: message.name.unwrap_or(name),
        error: None,
        content: ToolContent::Text(message.content),
        blocks: Vec::new(),
        synthetic: false,
    })
}
