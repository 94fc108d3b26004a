//! Shapes of Gemini bodies. All bodies here are synthetic: written by hand from the documented and
//! reported shapes.

use crate::support::{Decoded, decode, encode, origin, sse, target, with_messages};
use rondo_types::{ErrorClass, FinishReason, Part, Usage};
use serde_json::{Value, json};

const STOP: &str = r#"{"candidates":[{"index":0,"finishReason":"STOP"}]}"#;

fn chunk(parts: &Value) -> String {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]}).to_string()
}

fn of_parts(parts: &Value) -> Decoded {
    decode("gemini", &sse(&[&chunk(parts), STOP]))
}

/// Returns each part's text and opaque JSON.
fn texts(decoded: &Decoded) -> Vec<(String, String)> {
    let candidate = decoded.candidate();
    let read = |part: &Part| match part {
        Part::Text(text) => {
            let json = text.opaque.as_ref().map(|it| it.json.clone());
            (text.text.clone(), json.unwrap_or_default())
        }
        other => (format!("{other:?}"), String::new()),
    };
    candidate.parts.iter().map(read).collect()
}

#[test]
fn an_array_body_decodes_like_a_stream() {
    let text = chunk(&json!([{"text": "hello"}]));
    let body = format!("[{text}\n,\r\n{STOP}\n]\n");
    let decoded = decode("gemini", &body);
    assert_eq!(
        (decoded.error.clone(), decoded.candidate().text()),
        (None, "hello".into())
    );
    let cut = decode("gemini", &body[..body.len() - 3]);
    assert_eq!(cut.error.unwrap().class, ErrorClass::Network);
}

#[test]
fn text_behind_the_first_finish_reason_counts() {
    let body = sse(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#,
    ]);
    let candidate = decode("gemini", &body).candidate();
    assert_eq!(candidate.text(), "ab");
    assert_eq!(candidate.raw_finish_reasons, ["STOP", "STOP"]);
}

#[test]
fn a_signed_part_is_joined_with_no_neighbour() {
    let signed = json!([{"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": "s1"},
        {"text": "", "thoughtSignature": "s2"}, {"text": "d"}]);
    let part = |text: &str, json: &str| (text.to_owned(), json.to_owned());
    assert_eq!(
        texts(&of_parts(&signed)),
        [
            part("ab", "{}"),
            part("c", r#"{"thoughtSignature":"s1"}"#),
            part("", r#"{"thoughtSignature":"s2"}"#),
            part("d", ""),
        ]
    );
}

#[test]
fn parts_nobody_knows_are_kept_byte_for_byte() {
    let part = r#"{"executableCode":{"language":"PYTHON",  "code":"print(1.0)"},"id":7}"#;
    let body = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
    );
    let decoded = decode("gemini", &body);
    let candidate = decoded.candidate();
    let [Part::Opaque(opaque)] = candidate.parts.as_slice() else {
        panic!("{candidate:?}");
    };
    assert_eq!(opaque.json, part);
    assert_eq!(opaque.origin.dialect, "gemini");
}

#[test]
fn arguments_may_be_absent_and_ids_are_kept() {
    let parts = json!([{"functionCall": {"name": "f"}},
        {"functionCall": {"name": "g", "args": null, "id": "c1"}}]);
    let decoded = of_parts(&parts);
    let candidate = decoded.candidate();
    let calls: Vec<_> = candidate
        .tool_calls()
        .map(|call| {
            (
                call.arguments.as_str(),
                call.wire_id.as_deref(),
                call.complete,
            )
        })
        .collect();
    assert_eq!(calls, [("{}", None, true), ("{}", Some("c1"), true)]);
}

#[test]
fn calls_in_pieces_are_not_whole_and_do_not_break_the_reply() {
    let parts = json!([
        {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.x", "stringValue": "a"}],
            "willContinue": true}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.x", "stringValue": "b"}]}},
        {"functionCall": {}},
        {"text": "done"}
    ]);
    let decoded = of_parts(&parts);
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.candidate().text(), "done");
    assert_eq!(decoded.calls(), [("f".to_owned(), String::new(), false)]);
}

#[test]
fn a_call_beside_a_malformed_one_is_not_whole() {
    let parts = json!([{"functionCall": {"name": "f", "args": {}}}]);
    for (raw, reason) in [
        ("MALFORMED_FUNCTION_CALL", FinishReason::MalformedCall),
        ("UNEXPECTED_TOOL_CALL", FinishReason::MalformedCall),
        ("SAFETY", FinishReason::ContentFilter),
        ("MISSING_THOUGHT_SIGNATURE", FinishReason::Error),
    ] {
        let end = json!({"candidates": [{"index": 0, "finishReason": raw}]}).to_string();
        let decoded = decode("gemini", &sse(&[&chunk(&parts), &end]));
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.candidate().finish_reason, Some(reason));
        assert_eq!(decoded.calls(), [("f".to_owned(), "{}".to_owned(), false)]);
    }
}

#[test]
fn py_19_py_20_py_21_calls_reasons_and_all_candidates_are_read() {
    let body = json!({"candidates": [
        {"finishReason": "SAFETY", "safetyRatings": [{"category": "X", "blocked": true}]},
        {"content": {"parts": [{"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}}]},
            "finishReason": "STOP"}
    ]});
    let decoded = decode("gemini", &body.to_string());
    let reasons: Vec<_> = decoded
        .reply
        .candidates
        .iter()
        .map(|it| it.finish_reason.unwrap())
        .collect();
    assert_eq!(reasons, [FinishReason::ContentFilter, FinishReason::Stop]);
    assert_eq!(
        decoded.calls(),
        [("f".to_owned(), "{\"a\":1}".to_owned(), true)]
    );
}

#[test]
fn an_unknown_reason_parses() {
    let end = r#"{"candidates":[{"finishReason":"ESCALATION"}]}"#;
    let decoded = decode("gemini", &sse(&[end]));
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.candidate().finish_reason, Some(FinishReason::Other));
}

#[test]
fn feedback_without_a_reason_blocks_nothing() {
    let feedback = r#"{"promptFeedback":{"safetyRatings":[]},"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    let decoded = decode("gemini", &sse(&[feedback]));
    assert_eq!(
        (
            decoded.reply.prompt_blocked.clone(),
            decoded.candidate().text()
        ),
        (None, "a".into())
    );
}

#[test]
fn the_last_counts_win_and_output_includes_thoughts() {
    let first = r#"{"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":5}}"#;
    let last = r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":6,"cachedContentTokenCount":2,"toolUsePromptTokenCount":1}}"#;
    let decoded = decode("gemini", &sse(&[first, STOP, last]));
    let ours = Usage {
        input: 10,
        output: 10,
        reasoning: 6,
        cache_read: 2,
        cache_write: 0,
    };
    assert_eq!(decoded.reply.usage, Some(ours));
    let reported = decoded.usage.unwrap();
    assert_eq!((reported.input, reported.output), (9, 4));
}

#[test]
fn an_unframed_error_behind_events_is_read() {
    let text = chunk(&json!([{"text": "a"}]));
    for error in [
        "{\n  \"error\": {\n    \"code\": 499,\n    \"status\": \"CANCELLED\"\n  }\n}\n",
        "[{\n  \"error\": {\"code\": 503, \"status\": \"UNAVAILABLE\"}\n}]\n",
    ] {
        let decoded = decode("gemini", &format!("data: {text}\r\n\r\n{error}"));
        assert_eq!(decoded.candidate().text(), "a");
        assert!(decoded.error.unwrap().retryable);
    }
}

#[test]
fn a_reply_without_parts_is_an_empty_reply_and_no_error() {
    for content in [
        json!({}),
        json!({"role": "model"}),
        json!(null),
        json!({"parts": null}),
    ] {
        let body = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
        let decoded = decode("gemini", &body.to_string());
        assert_eq!(
            (decoded.error.clone(), decoded.candidate().parts.len()),
            (None, 0)
        );
    }
}

#[test]
fn a_stream_without_finish_reason_is_a_cut() {
    let text = chunk(&json!([{"text": "a"}]));
    let error = decode("gemini", &sse(&[&text])).error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
}

#[test]
fn a_part_without_content_does_not_go_back_as_one() {
    let parts = json!([{"text": "a"}, {}, {"thought": true}, {"thoughtSignature": "s"}]);
    let decoded = decode("gemini", &sse(&[&chunk(&parts), STOP]));
    let message = decoded.candidate().into_message(Some(origin("gemini")));
    let sent = encode(&target("gemini"), &with_messages(vec![message]));
    // Gemini refuses a part that has no content.
    assert_eq!(
        sent["contents"][0]["parts"],
        json!([{"text": "a"}, {"text": "", "thoughtSignature": "s"}])
    );
}

#[test]
fn a_reply_that_announces_a_call_and_has_none_lost_it() {
    let end = r#"{"candidates":[{"index":0,"finishReason":"STOP","finishMessage":"Model generated function call(s)."}]}"#;
    let said = chunk(&json!([{"text": "Let me look."}]));
    let error = decode("gemini", &sse(&[&said, end])).error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    let called = chunk(&json!([{"functionCall": {"name": "f", "args": {}}}]));
    assert_eq!(decode("gemini", &sse(&[&called, end])).error, None);
}
