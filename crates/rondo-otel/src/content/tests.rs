//! Tests: messages in the form of the conventions, within their bounds.

use super::*;
use rondo_types::{CallId, ToolCall, ToolContent, ToolResult};

#[test]
fn messages_take_the_conventions_form() {
    let call = Part::ToolCall(ToolCall {
        id: CallId::new("c1"),
        wire_id: None,
        name: "add".into(),
        arguments: r#"{"a": 1}"#.into(),
        complete: true,
        opaque: None,
    });
    let asked = Message {
        parts: vec![call],
        ..Message::assistant("")
    };
    let answered = Message::tool_results(vec![ToolResult {
        call_id: CallId::new("c1"),
        wire_id: None,
        name: "add".into(),
        error: None,
        content: ToolContent::Json(json!({"sum": 1})),
        blocks: Vec::new(),
        synthetic: false,
    }]);
    let all = messages([&Message::user("hello"), &asked, &answered]);
    let expected = json!([
        {"role": "user", "parts": [{"type": "text", "content": "hello"}]},
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}},
        ]},
        {"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "{\"sum\":1}"},
        ]},
    ]);
    assert_eq!(serde_json::from_str::<Value>(&all).unwrap(), expected);
}

#[test]
fn a_text_is_cut_only_past_its_bound() {
    let at = "x".repeat(TEXT_CHARS_MAX);
    assert_eq!(without_middle(&at, TEXT_CHARS_MAX), at);
    let past = format!("a{}z", "x".repeat(TEXT_CHARS_MAX - 1));
    let short = without_middle(&past, TEXT_CHARS_MAX);
    assert_eq!(short.chars().count(), TEXT_CHARS_MAX);
    assert!(short.starts_with('a') && short.ends_with('z') && short.contains('…'));
}

#[test]
fn the_oldest_messages_are_left_out_first() {
    let long = "x".repeat(TEXT_CHARS_MAX);
    let mut all = vec![Message::user("the oldest")];
    all.extend((0..ATTRIBUTE_BYTES_MAX / TEXT_CHARS_MAX).map(|_| Message::user(long.clone())));
    all.push(Message::user("the newest"));
    let kept = messages(&all);
    assert!(kept.len() <= ATTRIBUTE_BYTES_MAX + 64);
    assert!(kept.contains("the newest") && !kept.contains("the oldest"));
    assert!(serde_json::from_str::<Value>(&kept).is_ok());
}

#[test]
fn a_message_of_many_parts_is_bounded_too() {
    let long = Part::text("x".repeat(TEXT_CHARS_MAX));
    let many = vec![long; ATTRIBUTE_BYTES_MAX / TEXT_CHARS_MAX * 2];
    let message = Message {
        parts: many,
        ..Message::user("")
    };
    let kept = messages([&message]);
    assert!(kept.len() <= ATTRIBUTE_BYTES_MAX + 64);
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert!(!kept[0]["parts"].as_array().unwrap().is_empty());
}
