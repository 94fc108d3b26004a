//! Replies in the words of OpenAI Chat Completions
//! (<https://platform.openai.com/docs/api-reference/chat>).

use crate::reply::frame;
use crate::{CallScript, ReplyScript, Response};
use bytes::Bytes;
use rondo_types::Usage;
use serde_json::{Map, Value, json};

/// Builds the streamed response: one chunk an event, `[DONE]` at the end.
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
pub fn error(status: u16, kind: &str, message: &str) -> Response {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": null}});
    Response::json(status, &body)
}

/// Returns the framed events of the streamed reply, `[DONE]` included.
#[must_use]
pub fn frames(reply: &ReplyScript) -> Vec<Bytes> {
    let mut frames = frame(&events(reply), "\n\n");
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    frames
}

/// Returns the chunks of the streamed reply.
#[must_use]
pub fn events(reply: &ReplyScript) -> Vec<Value> {
    let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}), None)];
    let reasoning = reply.reasoning.iter();
    events.extend(reasoning.map(|piece| chunk(&json!({"reasoning_content": piece}), None)));
    let text = reply.text.iter();
    events.extend(text.map(|piece| chunk(&json!({"content": piece}), None)));
    for (index, call) in reply.calls.iter().enumerate() {
        events.extend(call_events(index, call));
    }
    events.push(chunk(&json!({}), Some(finish(reply))));
    if let Some(counts) = reply.usage {
        let mut last = envelope("chat.completion.chunk");
        last.insert("choices".into(), json!([]));
        last.insert("usage".into(), usage(counts));
        events.push(Value::Object(last));
    }
    events
}

/// Returns the body of the reply that is not streamed.
#[must_use]
pub fn body(reply: &ReplyScript) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let text = reply.text.concat();
    let content = if text.is_empty() {
        Value::Null
    } else {
        json!(text)
    };
    message.insert("content".into(), content);
    if !reply.reasoning.is_empty() {
        let reasoning = json!(reply.reasoning.concat());
        message.insert("reasoning_content".into(), reasoning);
    }
    if !reply.calls.is_empty() {
        let calls: Vec<Value> = reply.calls.iter().map(whole_call).collect();
        message.insert("tool_calls".into(), json!(calls));
    }
    let mut body = envelope("chat.completion");
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(reply)});
    body.insert("choices".into(), json!([choice]));
    if let Some(counts) = reply.usage {
        body.insert("usage".into(), usage(counts));
    }
    Value::Object(body)
}

/// The first event names the call; its arguments follow in two pieces.
fn call_events(index: usize, call: &CallScript) -> Vec<Value> {
    let function = json!({"name": call.name, "arguments": ""});
    let mut first = json!({"index": index, "type": "function", "function": function});
    if let (Some(id), Some(fields)) = (&call.id, first.as_object_mut()) {
        fields.insert("id".into(), json!(id));
    }
    let mut events = vec![chunk(&json!({"tool_calls": [first]}), None)];
    for piece in halves(&call.arguments) {
        let delta = json!({"index": index, "function": {"arguments": piece}});
        events.push(chunk(&json!({"tool_calls": [delta]}), None));
    }
    events
}

fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (left, right) = text.split_at(middle);
    [left, right]
}

fn whole_call(call: &CallScript) -> Value {
    json!({
        "id": call.id.clone().unwrap_or_default(),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    let mut chunk = envelope("chat.completion.chunk");
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    chunk.insert("choices".into(), json!([choice]));
    Value::Object(chunk)
}

fn envelope(object: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("id".into(), json!("chatcmpl-scripted"));
    fields.insert("object".into(), json!(object));
    fields.insert("created".into(), json!(1_700_000_000));
    fields.insert("model".into(), json!("scripted"));
    fields
}

fn finish(reply: &ReplyScript) -> &str {
    match &reply.finish {
        Some(reason) => reason,
        None if reply.calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

fn usage(counts: Usage) -> Value {
    json!({
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.total(),
        "prompt_tokens_details": {"cached_tokens": counts.cache_read},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    })
}
