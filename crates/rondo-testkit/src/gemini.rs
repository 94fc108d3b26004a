//! Replies in the words of Gemini `generateContent`
//! (<https://ai.google.dev/api/generate-content>).

use crate::reply::frame;
use crate::{CallScript, ReplyScript, Response};
use bytes::Bytes;
use rondo_types::Usage;
use serde_json::{Map, Value, json};

/// Builds the streamed response (`alt=sse`): events end with CRLF CRLF, and nothing marks the end.
#[must_use]
pub fn streamed(reply: &ReplyScript) -> Response {
    Response::sse(frames(reply))
}

/// Builds the response that is not streamed.
#[must_use]
pub fn whole(reply: &ReplyScript) -> Response {
    Response::json(200, &body(reply))
}

/// Builds an error response in the provider's envelope.
#[must_use]
pub fn error(code: u16, status: &str, message: &str) -> Response {
    let body = json!({"error": {"code": code, "message": message, "status": status}});
    Response::json(code, &body)
}

/// Returns the framed events of the streamed reply.
#[must_use]
pub fn frames(reply: &ReplyScript) -> Vec<Bytes> {
    frame(&events(reply), "\r\n\r\n")
}

/// Returns the events of the streamed reply: a part each, the last with the finish reason.
#[must_use]
pub fn events(reply: &ReplyScript) -> Vec<Value> {
    let mut parts = parts(reply);
    let last = parts.pop();
    let mut events: Vec<Value> = parts
        .into_iter()
        .map(|part| event(&[part], None, reply.usage))
        .collect();
    events.push(event(last.as_slice(), Some(finish(reply)), reply.usage));
    events
}

/// Returns the body of the reply that is not streamed.
#[must_use]
pub fn body(reply: &ReplyScript) -> Value {
    event(&parts(reply), Some(finish(reply)), reply.usage)
}

fn parts(reply: &ReplyScript) -> Vec<Value> {
    let reasoning = reply.reasoning.iter();
    let text = reply.text.iter();
    reasoning
        .map(|piece| json!({"text": piece, "thought": true}))
        .chain(text.map(|piece| json!({"text": piece})))
        .chain(reply.calls.iter().map(call_part))
        .collect()
}

/// Broken argument text cannot be written in this dialect: the call is sent without `args`.
fn call_part(call: &CallScript) -> Value {
    let mut function = Map::new();
    if let Some(id) = &call.id {
        function.insert("id".into(), json!(id));
    }
    function.insert("name".into(), json!(call.name));
    if let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) {
        function.insert("args".into(), arguments);
    }
    let mut part = Map::new();
    part.insert("functionCall".into(), Value::Object(function));
    if let Some(signature) = &call.signature {
        part.insert("thoughtSignature".into(), json!(signature));
    }
    Value::Object(part)
}

fn event(parts: &[Value], finish: Option<&str>, usage: Option<Usage>) -> Value {
    let mut candidate = Map::new();
    candidate.insert("content".into(), json!({"parts": parts, "role": "model"}));
    if let Some(reason) = finish {
        candidate.insert("finishReason".into(), json!(reason));
    }
    candidate.insert("index".into(), json!(0));
    let mut event = Map::new();
    event.insert("candidates".into(), json!([candidate]));
    if let Some(counts) = usage {
        event.insert("usageMetadata".into(), usage_metadata(counts));
    }
    event.insert("modelVersion".into(), json!("scripted"));
    Value::Object(event)
}

fn finish(reply: &ReplyScript) -> &str {
    reply.finish.as_deref().unwrap_or("STOP")
}

/// Gemini counts thoughts beside the candidates' tokens, not within them.
fn usage_metadata(counts: Usage) -> Value {
    json!({
        "promptTokenCount": counts.input,
        "candidatesTokenCount": counts.output.saturating_sub(counts.reasoning),
        "thoughtsTokenCount": counts.reasoning,
        "cachedContentTokenCount": counts.cache_read,
        "totalTokenCount": counts.total(),
    })
}
