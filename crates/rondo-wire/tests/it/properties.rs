//! Properties of every body.

use crate::support::{Decoded, decode_pieces, offered, recordings, sse, target};
use proptest::prelude::*;
use rondo_types::TimeMs;
use rondo_wire::{dialect, dialect_names};
use serde_json::{Value, json};

/// Cases of each property: enough to meet every fragment many times, and done in a second.
const CASES: u32 = 48;

/// Pieces that bring the decoders deeper than random bytes do.
const FRAGMENTS: [&str; 36] = [
    "data: ",
    "\n",
    "\r\n",
    "\r",
    ":",
    "event: error\n",
    "error: ",
    "[DONE]",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "\\",
    "null",
    "\u{feff}",
    "é",
    r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}"#,
    r#"{"error":{"code":429,"message":"m"}}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f"}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
    r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning"}]}}"#,
    r#"{"object":"response","status":"incomplete"}"#,
    r#"{"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"a"}]}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}"#,
    r#"{"type":"message_stop"}"#,
];

fn body() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        4 => proptest::sample::select(FRAGMENTS.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(fragment, 0..30).prop_map(|list| list.concat())
}

/// JSON under names that no protocol uses.
fn unknown() -> impl Strategy<Value = (String, Value)> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    ("zz_[a-z]{1,6}", value)
}

/// Adds a field to every object on the way down to the text, except inside signed parts.
fn sprinkle(value: &mut Value, key: &str, extra: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter_mut() {
                if !matches!(
                    name.as_str(),
                    "args" | "parts" | "tool_calls" | "item" | "output" | "content_block"
                ) {
                    sprinkle(inner, key, extra);
                }
            }
            fields.insert(key.to_owned(), extra.clone());
        }
        Value::Array(items) => {
            for item in items {
                sprinkle(item, key, extra);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn sprinkled(body: &str, key: &str, extra: &Value) -> String {
    let payloads: Vec<String> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|payload| match serde_json::from_str::<Value>(payload) {
            Ok(mut value) => {
                sprinkle(&mut value, key, extra);
                value.to_string()
            }
            Err(_) => payload.to_owned(),
        })
        .collect();
    let mut framed = vec![": comment".to_owned()];
    framed.extend(
        payloads
            .iter()
            .map(|payload| format!("zz: 1\nevent: zz\ndata: {payload}\n")),
    );
    framed.join("\n") + "\n"
}

fn whole(dialect: &str, body: &[u8]) -> Decoded {
    decode_pieces(&target(dialect), &[body])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_body_panics_and_no_cut_changes_the_events(body in body(), size in 1usize..9) {
        for name in dialect_names() {
            for lenient in [false, true] {
                let mut target = target(name);
                target.quirks.lenient_tool_calls = lenient;
                target.tools = offered(&["f"]);
                let at_once = decode_pieces(&target, &[&body]);
                let pieces: Vec<&[u8]> = body.chunks(size).collect();
                prop_assert_eq!(decode_pieces(&target, &pieces), at_once);
            }
        }
    }

    #[test]
    fn no_error_body_panics_or_grows(body in body(), status in 300u16..600) {
        for name in dialect_names() {
            let header = |_: &str| Some(String::from_utf8_lossy(&body).into_owned());
            let error = dialect(name).unwrap().error(status, &header, &body, TimeMs(0));
            prop_assert!(error.message.len() < 600);
            prop_assert_eq!(error.status, Some(status));
        }
    }

    #[test]
    fn unknown_fields_lines_and_events_change_nothing((key, extra) in unknown()) {
        for name in dialect_names() {
            for recorded in recordings(name).iter().take(4) {
                let body = String::from_utf8_lossy(&recorded.body);
                if !body.contains("data: ") {
                    continue;
                }
                let other = sprinkled(&body, &key, &extra);
                let (plain, other) = (whole(name, &recorded.body), whole(name, other.as_bytes()));
                prop_assert_eq!(&plain, &other, "{}", recorded.name);
            }
        }
    }

    #[test]
    fn unknown_finish_reasons_end_a_reply(reason in "[a-zA-Z_]{1,20}") {
        let chat = json!({"choices": [{"index": 0, "finish_reason": reason}]}).to_string();
        let gemini = json!({"candidates": [{"index": 0, "finishReason": reason}]}).to_string();
        for (name, payload) in [("openai-chat", chat), ("gemini", gemini)] {
            let decoded = whole(name, sse(&[&payload]).as_bytes());
            prop_assert_eq!(decoded.error.clone(), None);
            prop_assert_eq!(&decoded.candidate().raw_finish_reasons, std::slice::from_ref(&reason));
        }
    }
}
