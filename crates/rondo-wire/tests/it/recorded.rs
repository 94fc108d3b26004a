//! Recorded bodies decode to what was read in them, however they are cut.

use crate::support::{Decoded, Recorded, decode_pieces, recorded_call, recordings, target};
use rondo_types::{ErrorClass, TimeMs};
use rondo_wire::dialect;
use serde_json::{Value, json};

/// Sizes of the pieces that bodies are cut into; 1 cuts at every offset.
const PIECE_BYTES: [usize; 6] = [1, 2, 3, 7, 64, 1000];

/// Bodies up to here are also cut in two at every offset.
const HALVED_BYTES_MAX: usize = 3000;

fn decoded(dialect: &str, recorded: &Recorded) -> Decoded {
    decode_pieces(&target(dialect), &[&recorded.body])
}

fn succeeded(dialect: &str) -> Vec<Recorded> {
    let mut list = recordings(dialect);
    list.retain(|recorded| recorded.status == 200);
    assert!(list.len() > 10, "the fixtures are missing");
    list
}

fn raw_finish_reasons(decoded: &Decoded) -> Value {
    json!(decoded.candidate().raw_finish_reasons)
}

#[test]
fn openai_chat_bodies_decode_as_expected() {
    for recorded in succeeded("openai-chat") {
        let Recorded { name, expected, .. } = &recorded;
        if !expected["stream"].as_bool().unwrap() {
            continue;
        }
        let decoded = decoded("openai-chat", &recorded);
        let candidate = decoded.candidate();
        assert_eq!(decoded.error, None, "{name}");
        assert_eq!(json!(candidate.text()), expected["text"], "{name}");
        assert_eq!(
            json!(candidate.reasoning()),
            expected["reasoning"],
            "{name}"
        );
        assert_eq!(json!(candidate.refusal()), expected["refusal"], "{name}");
        let calls: Vec<Value> = candidate.tool_calls().map(chat_call).collect();
        assert_eq!(json!(calls), expected["tool_calls"], "{name}");
        assert_eq!(
            raw_finish_reasons(&decoded),
            expected["finish_reasons"],
            "{name}"
        );
        let usage = decoded.usage.unwrap();
        assert_eq!(json!(usage.input), expected["usage"]["prompt"], "{name}");
        assert_eq!(
            json!(usage.output),
            expected["usage"]["completion"],
            "{name}"
        );
    }
}

fn chat_call(call: &rondo_types::ToolCall) -> Value {
    recorded_call("id", call)
}

#[test]
fn gemini_bodies_decode_as_expected() {
    for recorded in succeeded("gemini") {
        let Recorded { name, expected, .. } = &recorded;
        let decoded = decoded("gemini", &recorded);
        let candidate = decoded.candidate();
        assert_eq!(decoded.error, None, "{name}");
        assert_eq!(json!(candidate.text()), expected["text"], "{name}");
        assert_eq!(json!(candidate.reasoning()), expected["thought"], "{name}");
        let calls: Vec<Value> = candidate.tool_calls().map(gemini_call).collect();
        assert_eq!(json!(calls), expected["tool_calls"], "{name}");
        assert_eq!(
            raw_finish_reasons(&decoded),
            expected["finish_reasons"],
            "{name}"
        );
        assert_eq!(
            json!(decoded.reply.prompt_blocked),
            expected["block_reason"],
            "{name}"
        );
        let usage = decoded.usage.map(|usage| {
            let total = usage.input + usage.output + usage.reasoning;
            (json!(usage.input), json!(usage.output), json!(total))
        });
        let counts = &expected["usage"];
        let expected_usage = counts.is_object().then(|| {
            (
                counts["prompt"].clone(),
                counts["candidates"].clone(),
                counts["total"].clone(),
            )
        });
        assert_eq!(usage, expected_usage, "{name}");
        let signatures = serde_json::to_string(&decoded.reply).unwrap();
        let signatures = signatures.matches("thoughtSignature").count();
        assert_eq!(json!(signatures), expected["signatures"], "{name}");
    }
}

fn gemini_call(call: &rondo_types::ToolCall) -> Value {
    assert!(call.complete, "{}", call.name);
    json!({
        "id": call.wire_id,
        "name": call.name,
        "arguments_json": serde_json::from_str::<Value>(&call.arguments).unwrap(),
        "partial": false,
        "has_signature": call.opaque.is_some(),
    })
}

#[test]
fn cutting_a_body_anywhere_changes_nothing() {
    for dialect in ["openai-chat", "gemini"] {
        let target = target(dialect);
        for recorded in succeeded(dialect) {
            let whole = decoded(dialect, &recorded);
            for size in PIECE_BYTES {
                let pieces: Vec<&[u8]> = recorded.body.chunks(size).collect();
                let cut = decode_pieces(&target, &pieces);
                assert_eq!(cut, whole, "{} in pieces of {size}", recorded.name);
            }
            if recorded.body.len() <= HALVED_BYTES_MAX {
                for at in 0..=recorded.body.len() {
                    let (head, tail) = recorded.body.split_at(at);
                    let cut = decode_pieces(&target, &[head, tail]);
                    assert_eq!(cut, whole, "{} cut at {at}", recorded.name);
                }
            }
        }
    }
}

#[test]
fn recorded_errors_are_classed_and_quoted() {
    let mut seen = 0;
    for name in ["openai-chat", "gemini"] {
        for recorded in recordings(name).iter().filter(|it| it.status != 200) {
            let error =
                dialect(name)
                    .unwrap()
                    .error(recorded.status, &|_| None, &recorded.body, TimeMs(0));
            let (class, text) = if recorded.status == 404 {
                (ErrorClass::NotFound, "is not found for API version")
            } else {
                (ErrorClass::BadRequest, "type must be number, but is string")
            };
            assert_eq!((error.class, error.retryable), (class, false));
            assert_eq!(error.status, Some(recorded.status));
            assert!(error.message.contains(text), "{}", error.message);
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}
