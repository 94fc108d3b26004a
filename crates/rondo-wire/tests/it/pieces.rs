//! Characters and names that servers cut in two.

use crate::support::{decode, decode_pieces, sse, target};
use serde_json::{Value, json};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

fn text_of(body: &str) -> String {
    let decoded = decode("openai-chat", body);
    assert_eq!(decoded.error, None);
    decoded.candidate().text()
}

#[test]
fn a_pair_of_surrogates_that_two_events_share_is_one_character_in_any_dialect() {
    let bodies = [
        (
            "openai-chat",
            sse(&[
                r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"\ude00b"}}]}"#,
                STOP,
            ]),
        ),
        (
            "react",
            sse(&[
                r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"\ude00b"}}]}"#,
                STOP,
            ]),
        ),
        (
            "gemini",
            sse(&[
                r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"a\ud83d"}]}}]}"#,
                r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"\ude00b"}]},"finishReason":"STOP"}]}"#,
            ]),
        ),
        (
            "anthropic",
            sse(&[
                r#"{"type":"message_start","message":{"content":[]}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00b"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
                r#"{"type":"message_stop"}"#,
            ]),
        ),
        (
            "openai-responses",
            sse(&[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83d"}"#,
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"\ude00b"}"#,
                r#"{"type":"response.output_text.done","output_index":0,"text":"a\ud83d\ude00b"}"#,
                r#"{"type":"response.completed","response":{"status":"completed"}}"#,
            ]),
        ),
    ];
    for (name, body) in bodies {
        let decoded = decode(name, &body);
        assert_eq!(decoded.error, None, "{name}");
        assert_eq!(decoded.candidate().text(), "a\u{1f600}b", "{name}");
    }
}

#[test]
fn a_half_of_a_surrogate_pair_that_is_never_completed_is_one_mark() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}"#;
    assert_eq!(text_of(&sse(&[text, STOP])), "a\u{fffd}");
    let low = r#"{"choices":[{"index":0,"delta":{"content":"\ude00b"}}]}"#;
    assert_eq!(text_of(&sse(&[low, STOP])), "\u{fffd}b");
    let other = r#"{"choices":[{"index":0,"delta":{"content":"b"}}]}"#;
    assert_eq!(text_of(&sse(&[text, other, STOP])), "a\u{fffd}b");
}

/// Decodes the deltas of calls that a request with these tools is answered with.
fn streamed_for(tools: &[&str], deltas: &[Value]) -> Vec<(String, String, bool)> {
    let mut payloads: Vec<String> = deltas
        .iter()
        .map(|it| json!({"choices": [{"index": 0, "delta": {"tool_calls": [it]}}]}).to_string())
        .collect();
    payloads.push(CALLS.to_owned());
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    let mut to = target("openai-chat");
    let spec = |name: &&str| rondo_types::ToolSpec {
        name: (*name).to_owned(),
        ..rondo_types::ToolSpec::default()
    };
    to.tools = std::sync::Arc::new(tools.iter().map(spec).collect());
    decode_pieces(&to, &[sse(&payloads).as_bytes()]).calls()
}

#[test]
fn a_name_that_comes_in_pieces_is_put_together_and_a_repeated_one_is_not() {
    let named = |name: &str| json!({"index": 0, "function": {"name": name}});
    let begun = |name: &str| json!({"index": 0, "id": "a", "function": {"name": name}});
    let arguments = json!({"index": 0, "function": {"arguments": "{}"}});
    let tools = ["read", "read_file", "get_weather"];
    for (pieces, expected) in [
        (vec!["get_", "wea", "ther"], "get_weather"),
        (vec!["read", "_file"], "read_file"),
        (vec!["read", "read"], "read"),
        (vec!["get", "get_wea", "get_weather"], "get_weather"),
        (vec!["read_file", "other"], "read_file"),
    ] {
        let mut deltas = vec![begun(pieces[0])];
        deltas.extend(pieces[1..].iter().map(|it| named(it)));
        deltas.push(arguments.clone());
        assert_eq!(
            streamed_for(&tools, &deltas),
            [(expected.to_owned(), "{}".to_owned(), true)]
        );
    }
}
