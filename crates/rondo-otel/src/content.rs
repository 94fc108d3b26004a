//! Messages as the JSON that the conventions want on a span:
//! <https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai>, files
//! `gen-ai-input-messages.json` and its neighbors.
//!
//! A text is cut in its middle, and the oldest messages and the last parts are left out, to keep a
//! span within what collectors take. Pictures and files are named, not copied.

use crate::convention as name;
use opentelemetry::KeyValue;
use rondo_types::text::without_middle;
use rondo_types::{
    CallId, Candidate, FinishReason, Media, Message, ModelRequest, Part, Reply, Role, ToolCall,
    ToolSpec,
};
use serde_json::{Value, json};

/// The bound on one text, in characters.
const TEXT_CHARS_MAX: usize = 16_384;
/// The bound on one attribute, in bytes of JSON, but for its brackets and commas.
const ATTRIBUTE_BYTES_MAX: usize = 262_144;

/// Returns the system prompt as an attribute, if there is one.
pub(crate) fn system(blocks: &[String]) -> Option<KeyValue> {
    if blocks.is_empty() {
        return None;
    }
    let parts = fitting(blocks.iter().map(|block| text(block)));
    Some(KeyValue::new(name::SYSTEM, Value::Array(parts).to_string()))
}

/// Returns everything that a request tells the model.
pub(crate) fn request(request: &ModelRequest) -> Vec<KeyValue> {
    let mut all: Vec<KeyValue> = system(&request.system).into_iter().collect();
    let said = messages(request.messages.iter().map(AsRef::as_ref));
    all.push(KeyValue::new(name::INPUT, said));
    if !request.tools.is_empty() {
        let tools = fitting(request.tools.iter().map(definition));
        let tools = Value::Array(tools).to_string();
        all.push(KeyValue::new(name::TOOL_DEFINITIONS, tools));
    }
    all
}

/// Returns messages as JSON, the newest that fit.
pub(crate) fn messages<'a>(all: impl IntoIterator<Item = &'a Message>) -> String {
    let mut newest = Vec::new();
    let mut bytes = 0;
    let all: Vec<&Message> = all.into_iter().collect();
    for message in all.into_iter().rev() {
        let message = said(message).to_string();
        bytes += message.len();
        if bytes > ATTRIBUTE_BYTES_MAX && !newest.is_empty() {
            break;
        }
        newest.push(message);
    }
    newest.reverse();
    format!("[{}]", newest.join(","))
}

/// Returns the candidates of a reply as JSON. `id` names a call by its place in its candidate: a
/// reply comes before its calls have the ids that they run under.
pub(crate) fn reply(reply: &Reply, id: impl Fn(u32) -> CallId) -> String {
    let candidates = reply.candidates.iter().map(|it| candidate(it, &id));
    Value::Array(fitting(candidates)).to_string()
}

/// Returns the answer of a turn as JSON.
pub(crate) fn answer(said: &str, reason: Option<FinishReason>) -> String {
    json!([output(&[text(said)], reason)]).to_string()
}

/// Returns arguments or a result as JSON text.
pub(crate) fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    without_middle(&text, TEXT_CHARS_MAX)
}

fn candidate(candidate: &Candidate, id: impl Fn(u32) -> CallId) -> Value {
    let mut ids = (0..).map(id);
    let named = candidate.parts.iter().filter_map(|it| match it {
        Part::ToolCall(call) => Some(tool_call(call, &ids.next()?)),
        other => part(other),
    });
    output(&fitting(named), candidate.finish_reason)
}

fn output(parts: &[Value], reason: Option<FinishReason>) -> Value {
    let reason = reason.map_or("error", name::finish_reason);
    json!({"role": "assistant", "parts": parts, "finish_reason": reason})
}

fn said(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts = fitting(message.parts.iter().filter_map(part));
    json!({"role": role, "parts": parts})
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(it) | Part::Refusal(it) => text(&it.text),
        Part::Reasoning(it) => {
            json!({"type": "reasoning", "content": without_middle(&it.text, TEXT_CHARS_MAX)})
        }
        Part::ToolCall(call) => tool_call(call, &call.id),
        Part::ToolResult(result) => {
            let response = without_middle(&result.content.to_text(), TEXT_CHARS_MAX);
            json!({"type": "tool_call_response", "id": result.call_id, "response": response})
        }
        Part::Media(media) => media_part(media),
        // A provider's own data, which is nothing to read.
        Part::Opaque(_) => return None,
    })
}

fn tool_call(call: &ToolCall, id: &CallId) -> Value {
    let raw = without_middle(&call.arguments, TEXT_CHARS_MAX);
    let arguments = serde_json::from_str(&raw).unwrap_or(Value::String(raw));
    json!({"type": "tool_call", "id": id, "name": call.name, "arguments": arguments})
}

fn media_part(media: &Media) -> Value {
    json!({"type": "rondo.media", "mime_type": media.mime, "name": media.name})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "content": without_middle(text, TEXT_CHARS_MAX)})
}

fn definition(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    })
}

/// Keeps the first that an attribute has room for.
fn fitting(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut bytes = 0;
    let fit = values.take_while(|value| {
        bytes += value.to_string().len();
        bytes <= ATTRIBUTE_BYTES_MAX
    });
    fit.collect()
}

#[cfg(test)]
mod tests;
