//! A conversation that was begun on one dialect continues on any other.

use crate::support::{
    decode, encode, lowerings, origin, sse, target, tool_result, tool_spec, with_messages,
};
use rondo_types::{
    CallId, Media, MediaKind, MediaSource, Message, ModelRequest, Part, ToolContent, ToolErrorCode,
};
use rondo_wire::Lowering;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const DIALECTS: [&str; 4] = ["openai-chat", "gemini", "openai-responses", "anthropic"];

/// A synthetic body of each dialect: reasoning, a text, and two calls in parallel.
fn body(dialect: &str) -> String {
    match dialect {
        "openai-chat" => sse(&[
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"I look."}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"w1","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"w2","function":{"name":"g","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            "[DONE]",
        ]),
        "gemini" => sse(&[
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"id":"w1","name":"f","args":{"a":1}},"thoughtSignature":"s"},{"functionCall":{"id":"w2","name":"g","args":{}}}]},"finishReason":"STOP"}]}"#,
        ]),
        "openai-responses" => json!({"object": "response", "status": "completed", "output": [
            {"type": "reasoning", "id": "rs", "encrypted_content": "e",
                "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "id": "m", "role": "assistant",
                "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "w1", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call", "call_id": "w2", "name": "g", "arguments": "{}"}]})
        .to_string(),
        _ => json!({"type": "message", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "w1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "w2", "name": "g", "input": {}}]})
        .to_string(),
    }
}

/// An image, a step of two calls of which one was cancelled, and a question.
fn request(from: &str) -> ModelRequest {
    let mut asked = Message::user("what is this?");
    asked.parts.push(Part::Media(Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: None,
        source: MediaSource::Base64("QUJD".to_owned()),
    }));
    let mut said = decode(from, &body(from))
        .candidate()
        .into_message(Some(origin(from)));
    let mut results = Vec::new();
    for part in &mut said.parts {
        if let Part::ToolCall(call) = part {
            let index = u32::try_from(results.len()).unwrap();
            call.id = CallId::generated(1, 1, index);
            assert!(call.complete, "{from}");
            results.push(tool_result(call, ToolContent::Text("done".to_owned())));
        }
    }
    assert_eq!(results.len(), 2, "{from}");
    results[1].error = Some(ToolErrorCode::Cancelled);
    results[1].synthetic = true;
    let mut request = with_messages(vec![
        asked,
        said,
        Message::tool_results(results),
        Message::user("and now?"),
    ]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    request.tools = Arc::new(vec![tool_spec("f", schema.clone()), tool_spec("g", schema)]);
    request.sampling.max_output_tokens = Some(500);
    request
}

/// Returns the strings under a key, in order.
fn under(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner {
                    Value::String(text) if name == key => found.push(text.clone()),
                    inner => under(inner, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| under(item, key, found)),
        _ => {}
    }
}

fn strings(value: &Value, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    under(value, key, &mut found);
    found
}

/// Returns the ids of the calls and of the results in a request of a dialect.
fn ids(dialect: &str, sent: &Value) -> (Vec<String>, Vec<String>) {
    match dialect {
        "openai-chat" => {
            let calls = strings(&sent["messages"], "id");
            (calls, strings(&sent["messages"], "tool_call_id"))
        }
        "openai-responses" => {
            let ids = |kind: &str| {
                let items = sent["input"].as_array().unwrap().iter();
                items
                    .filter(|item| item["type"] == kind)
                    .map(|item| item["call_id"].as_str().unwrap().to_owned())
                    .collect()
            };
            (ids("function_call"), ids("function_call_output"))
        }
        "anthropic" => {
            let calls = strings(&sent["messages"], "id");
            (calls, strings(&sent["messages"], "tool_use_id"))
        }
        _ => {
            let parts = |key: &str| {
                let contents = sent["contents"].as_array().unwrap().iter();
                contents
                    .flat_map(|content| content["parts"].as_array().unwrap())
                    .filter_map(|part| part[key]["name"].as_str().map(str::to_owned))
                    .collect()
            };
            (parts("functionCall"), parts("functionResponse"))
        }
    }
}

fn expected_ids(from: &str, to: &str) -> Vec<String> {
    match (from == to, to) {
        (_, "gemini") => ["f", "g"].map(str::to_owned).into(),
        (true, _) => ["w1", "w2"].map(str::to_owned).into(),
        (false, _) => [0, 1]
            .map(|index| CallId::generated(1, 1, index).as_str().to_owned())
            .into(),
    }
}

/// Notes about left-out parts: reasoning and signatures stay where they were made, and chat takes none back.
fn expected_notes(from: &str, to: &str) -> Vec<Lowering> {
    let (reasoning, opaque) = (Lowering::ReasoningDropped, Lowering::OpaqueDropped);
    match (from, to) {
        ("openai-chat", "openai-chat") => vec![reasoning],
        (from, to) if from == to => vec![],
        ("openai-chat", _) => vec![reasoning],
        ("gemini", _) => vec![reasoning, opaque],
        // Chat has no place for what belongs to a text, so it leaves that out without a word.
        ("openai-responses", "openai-chat") => vec![reasoning, opaque],
        ("openai-responses", _) => vec![reasoning, opaque],
        _ => vec![reasoning],
    }
}

#[test]
fn a_conversation_goes_on_on_any_dialect() {
    for from in DIALECTS {
        let request = request(from);
        for to in DIALECTS {
            let sent = encode(&target(to), &request);
            let text = sent.to_string();
            for said in ["what is this?", "QUJD", "I look.", "done", "and now?"] {
                assert!(text.contains(said), "{from} to {to}: {said}");
            }
            let (calls, results) = ids(to, &sent);
            assert_eq!(calls, expected_ids(from, to), "{from} to {to}");
            assert_eq!(results, calls, "{from} to {to}");
            let notes: BTreeSet<_> = lowerings(&target(to), &request)
                .into_iter()
                .map(Lowering::as_str)
                .collect();
            let expected: BTreeSet<_> = expected_notes(from, to)
                .into_iter()
                .map(Lowering::as_str)
                .collect();
            assert_eq!(notes, expected, "{from} to {to}");
        }
    }
}

#[test]
fn reasoning_stays_where_it_was_made() {
    for from in DIALECTS {
        let request = request(from);
        for to in DIALECTS {
            let sent = encode(&target(to), &request).to_string();
            let kept = from == to && from != "openai-chat";
            assert_eq!(sent.contains("\"hm\""), kept, "{from} to {to}");
        }
    }
}
