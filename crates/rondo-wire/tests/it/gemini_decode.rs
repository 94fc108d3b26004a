//! Shapes of Gemini bodies. All bodies here are synthetic: written by hand from the documented and
//! reported shapes.

use crate::support::{Decoded, decode, decode_pieces, encode, origin, sse, target, with_messages};
use rondo_types::{ErrorClass, FinishReason, ModelEvent, Part, Usage};
use rondo_wire::{Bounds, dialect};
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
    assert_eq!(cut.error.unwrap().class, ErrorClass::Protocol);
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

/// A part of a call in pieces.
fn piece(call: &Value) -> Value {
    json!({ "functionCall": call })
}

#[test]
fn a_call_in_pieces_is_put_together_with_its_signature() {
    let parts = json!([
        {"functionCall": {"id": "c1", "name": "f", "willContinue": true}, "thoughtSignature": "s"},
        piece(&json!({"partialArgs": [{"jsonPath": "$.where", "stringValue": "Bos", "willContinue": true}],
            "willContinue": true})),
        piece(&json!({"partialArgs": [
            {"jsonPath": "$.where", "stringValue": "ton"},
            {"jsonPath": "$.list[0].a", "numberValue": 50},
            {"jsonPath": "$['list'][1]", "numberValue": 0.5},
            {"jsonPath": "$.on", "boolValue": true},
            {"jsonPath": "$[\"no one\"]", "nullValue": null}
        ], "willContinue": true})),
        piece(&json!({})),
        {"functionCall": {"name": "g", "partialArgs": [{"jsonPath": "$.x", "stringValue": "a"}], "willContinue": true}},
        piece(&json!({"partialArgs": [{"jsonPath": "$.x", "stringValue": "b"}]})),
        {"text": "done"}
    ]);
    let decoded = of_parts(&parts);
    assert_eq!(
        (decoded.error.clone(), decoded.candidate().text()),
        (None, "done".into())
    );
    let expected = json!({"where": "Boston", "list": [{"a": 50}, 0.5], "on": true, "no one": null});
    let candidate = decoded.candidate();
    let calls: Vec<_> = candidate.tool_calls().collect();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|it| it.complete));
    assert_eq!(
        (calls[0].name.as_str(), calls[0].wire_id.as_deref()),
        ("f", Some("c1"))
    );
    assert_eq!(read(&calls[0].arguments), expected);
    assert_eq!(
        (calls[1].name.as_str(), read(&calls[1].arguments)),
        ("g", json!({"x": "ab"}))
    );
    assert_eq!(calls[1].opaque, None);
    let part = read(&calls[0].opaque.as_ref().unwrap().json);
    let whole = json!({
        "functionCall": {"id": "c1", "name": "f", "args": expected}, "thoughtSignature": "s"
    });
    assert_eq!(part, whole);
    // The pieces cut anywhere lead to the same.
    let body = sse(&[&chunk(&parts), STOP]);
    for cut in 0..=body.len() {
        let (head, tail) = body.as_bytes().split_at(cut);
        let again = decode_pieces(&target("gemini"), &[head, tail]);
        assert_eq!(again.events, decoded.events, "cut at {cut}");
    }
}

#[test]
fn a_call_in_pieces_that_was_not_closed_is_whole_only_where_the_reply_ended_by_itself() {
    let begun = |goes_on: bool| {
        json!([{"functionCall": {"name": "f", "willContinue": true, "partialArgs": [
            {"jsonPath": "$.x", "stringValue": "a", "willContinue": goes_on}]}}])
    };
    let end =
        |reason: &str| json!({"candidates": [{"index": 0, "finishReason": reason}]}).to_string();
    let cases = [
        (false, "STOP", true),
        (true, "STOP", false),
        (false, "MAX_TOKENS", false),
        (false, "OTHER", false),
    ];
    for (goes_on, reason, is_whole) in cases {
        let decoded = decode("gemini", &sse(&[&chunk(&begun(goes_on)), &end(reason)]));
        let arguments = if is_whole { r#"{"x":"a"}"# } else { "" };
        let expected = [("f".to_owned(), arguments.to_owned(), is_whole)];
        assert_eq!(decoded.calls(), expected, "{goes_on} {reason}");
    }
}

#[test]
fn pieces_that_cannot_be_put_together_are_no_whole_call() {
    let text = |path: &str| json!([{"jsonPath": path, "stringValue": "x"}]);
    let deep = format!("${}", ".a".repeat(33));
    let broken = [
        text(&deep),
        text("$.a[4294967295]"),
        text("$.a[99999999999999999999]"),
        text("$.a[1]"),
        text("$.a[-1]"),
        text("$"),
        text("$[0]"),
        text("$."),
        text("$.a["),
        text("$.a[]"),
        text("$['a"),
        text("$..a"),
        text("$.a[*]"),
        text("a"),
        text(""),
        json!([{"stringValue": "x"}]),
        json!([{"jsonPath": 1, "stringValue": "x"}]),
        json!([{"jsonPath": "$.a", "stringValue": 1}]),
        json!([{"jsonPath": "$.a", "numberValue": "NaN"}]),
        json!([{"jsonPath": "$.a", "boolValue": 1}]),
        json!([{"jsonPath": "$.a", "stringValue": "x", "numberValue": 1}]),
        json!([{"jsonPath": "$.a", "laterValue": 1}]),
        json!([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a", "numberValue": 1}]),
        json!([{"jsonPath": "$.a", "numberValue": 1}, {"jsonPath": "$.a", "numberValue": 2}]),
        json!([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b", "numberValue": 2}]),
        json!([{"jsonPath": "$.a[0]", "stringValue": "x"}, {"jsonPath": "$.a.b", "numberValue": 2}]),
        json!([1]),
        json!({"jsonPath": "$.a"}),
        json!("x"),
    ];
    for pieces in broken {
        let parts = json!([
            piece(&json!({"name": "f", "partialArgs": pieces, "willContinue": true})),
            piece(&json!({})),
            {"text": "done"}
        ]);
        let decoded = of_parts(&parts);
        assert_eq!(decoded.error, None, "{pieces}");
        assert_eq!(decoded.candidate().text(), "done", "{pieces}");
        let expected = [("f".to_owned(), String::new(), false)];
        assert_eq!(decoded.calls(), expected, "{pieces}");
    }
}

#[test]
fn pieces_without_an_end_are_bounded() {
    let bounds = Bounds {
        event_bytes_max: 4096,
        ..Bounds::default()
    };
    let more = piece(&json!({"willContinue": true, "partialArgs": [
        {"jsonPath": "$.a", "stringValue": "x".repeat(1000), "willContinue": true}]}));
    let mut bodies = vec![chunk(&json!([piece(
        &json!({"name": "f", "willContinue": true})
    )]))];
    bodies.extend((0..9).map(|_| chunk(&json!([more]))));
    bodies.extend([chunk(&json!([piece(&json!({}))])), STOP.to_owned()]);
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let mut decoder = dialect("gemini")
        .unwrap()
        .decoder(&target("gemini"), bounds);
    let mut events = Vec::new();
    decoder.push(sse(&bodies).as_bytes(), &mut events).unwrap();
    decoder.finish(&mut events).unwrap();
    let is_whole = |it: &ModelEvent| matches!(it, ModelEvent::ToolCallFinished { .. });
    assert!(!events.iter().any(is_whole));
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
fn a_stream_without_finish_reason_cannot_be_used_and_may_be_asked_for_again() {
    let text = chunk(&json!([{"text": "a"}]));
    let error = decode("gemini", &sse(&[&text])).error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Protocol, true));
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
    assert_eq!((error.class, error.retryable), (ErrorClass::Protocol, true));
    let called = chunk(&json!([{"functionCall": {"name": "f", "args": {}}}]));
    assert_eq!(decode("gemini", &sse(&[&called, end])).error, None);
}
