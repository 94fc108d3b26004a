//! Decoded bodies of Anthropic Messages.

use crate::support::{
    Decoded, assert_cut_off, call, decode, decode_pieces, offered, recorded_call, recordings, sse,
    target,
};
use rondo_types::{ErrorClass, FinishReason, ModelEvent, Part, TimeMs, Usage};
use rondo_wire::dialect;
use serde_json::{Value, json};

const NAME: &str = "anthropic";

const START: &str = r#"{"type":"message_start","message":{"id":"m1","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}"#;
const CALL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}"#;
const PIECE: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#;
const BLOCK_STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const PING: &str = r#"{"type":"ping"}"#;

fn end(reason: &str) -> String {
    json!({"type": "message_delta", "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 9}})
    .to_string()
}

fn start(block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#)
}

fn delta(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

fn whole(body: &[u8]) -> Decoded {
    decode_pieces(&target(NAME), &[body])
}

fn opaque_parts(decoded: &Decoded) -> Vec<String> {
    let parts = decoded.candidate().parts;
    let opaque = parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) => Some(opaque.json.clone()),
        _ => None,
    });
    opaque.collect()
}

#[test]
fn recorded_bodies_decode_as_expected() {
    let list = recordings(NAME);
    assert_eq!(list.len(), 12);
    for recorded in list.iter().filter(|it| it.status == 200) {
        let (name, expected) = (&recorded.name, &recorded.expected);
        let decoded = whole(&recorded.body);
        let candidate = decoded.candidate();
        assert_eq!(decoded.error, None, "{name}");
        assert_eq!(json!(candidate.text()), expected["text"], "{name}");
        assert_eq!(json!(candidate.reasoning()), expected["thinking"], "{name}");
        let calls: Vec<Value> = candidate
            .tool_calls()
            .map(|call| recorded_call("id", call))
            .collect();
        assert_eq!(json!(calls), expected["tool_calls"], "{name}");
        let reasons = json!(candidate.raw_finish_reasons);
        assert_eq!(reasons, json!([expected["stop_reason"]]), "{name}");
        let usage = decoded.usage.unwrap();
        assert_eq!(json!(usage.input), expected["usage"]["input"], "{name}");
        assert_eq!(json!(usage.output), expected["usage"]["output"], "{name}");
        let thinking = expected["blocks"]
            .as_array()
            .unwrap()
            .contains(&json!("thinking"));
        let signature = json!(decoded.reply)
            .to_string()
            .contains("signature_REDACTED");
        assert_eq!(signature, thinking, "{name}");
    }
}

#[test]
fn cutting_a_recorded_body_anywhere_changes_nothing() {
    let target = target(NAME);
    for recorded in recordings(NAME).iter().filter(|it| it.status == 200) {
        let whole = whole(&recorded.body);
        for size in [1, 2, 3, 7, 64, 1000] {
            let pieces: Vec<&[u8]> = recorded.body.chunks(size).collect();
            let cut = decode_pieces(&target, &pieces);
            assert_eq!(cut, whole, "{} in pieces of {size}", recorded.name);
        }
        for at in 0..=recorded.body.len().min(3000) {
            let (head, tail) = recorded.body.split_at(at);
            let cut = decode_pieces(&target, &[head, tail]);
            assert_eq!(cut, whole, "{} cut at {at}", recorded.name);
        }
    }
}

#[test]
fn a_body_that_is_cut_at_any_byte_has_no_whole_call() {
    for recorded in recordings(NAME).iter().filter(|it| it.status == 200) {
        let text = String::from_utf8(recorded.body.clone()).unwrap();
        // All content is before the event with the stop reason.
        let end = text.find("\"stop_reason\":\"").unwrap();
        for at in 0..end {
            let decoded = whole(&recorded.body[..at]);
            assert_cut_off(&decoded, &format!("{} at {at}", recorded.name));
        }
    }
}

#[test]
fn usage_is_cumulative_and_every_figure_replaces_the_one_before() {
    let later = r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":6,"cache_creation_input_tokens":2,"output_tokens":4}}"#;
    let decoded = decode(NAME, &sse(&[START, later, &end("end_turn"), STOP]));
    let reported = Usage {
        input: 6,
        output: 9,
        reasoning: 0,
        cache_read: 7,
        cache_write: 2,
    };
    assert_eq!(decoded.usage, Some(reported));
    let ours = Usage {
        input: 15,
        ..reported
    };
    assert_eq!(decoded.reply.usage, Some(ours));
}

#[test]
fn arguments_are_joined_and_none_are_an_empty_object() {
    let pieces = [
        delta(r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#),
        delta(r#"{"type":"input_json_delta","partial_json":":1}"}"#),
    ];
    let body = sse(&[
        START,
        CALL,
        PING,
        &pieces[0],
        &pieces[1],
        BLOCK_STOP,
        &end("tool_use"),
        STOP,
    ]);
    let decoded = decode(NAME, &body);
    assert_eq!(decoded.calls(), [call("f", r#"{"a":1}"#, true)]);
    assert_eq!(
        decoded.candidate().finish_reason,
        Some(FinishReason::ToolCalls)
    );
    let empty = delta(r#"{"type":"input_json_delta","partial_json":""}"#);
    let decoded = decode(
        NAME,
        &sse(&[START, CALL, &empty, BLOCK_STOP, &end("tool_use"), STOP]),
    );
    assert_eq!(decoded.calls(), [call("f", "{}", true)]);
}

#[test]
fn a_call_that_is_not_whole_is_not_run() {
    let open = delta(r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#);
    let ends = [
        "max_tokens",
        "refusal",
        "pause_turn",
        "model_context_window_exceeded",
    ]
    .map(end);
    let tool_use = end("tool_use");
    let mut lists = vec![
        vec![START, CALL, PIECE, &tool_use, STOP],
        vec![START, CALL, &open, BLOCK_STOP, &tool_use, STOP],
    ];
    for end in &ends {
        lists.push(vec![START, CALL, PIECE, BLOCK_STOP, end, STOP]);
    }
    for list in lists {
        let decoded = decode(NAME, &sse(&list));
        assert_eq!(decoded.error, None, "{list:?}");
        assert_eq!(decoded.calls().len(), 1);
        assert!(!decoded.calls()[0].2, "{list:?}");
    }
}

#[test]
fn stop_reasons_are_told() {
    for (raw, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::Refusal),
        ("pause_turn", FinishReason::Paused),
        ("compaction", FinishReason::Other),
    ] {
        let decoded = decode(NAME, &sse(&[START, &end(raw), STOP]));
        assert_eq!(decoded.candidate().finish_reason, Some(expected), "{raw}");
        assert_eq!(decoded.candidate().raw_finish_reasons, [raw]);
    }
}

#[test]
fn thinking_is_kept_with_its_signature() {
    let thinking = start(r#"{"type":"thinking","thinking":"","signature":""}"#);
    let said = delta(r#"{"type":"thinking_delta","thinking":"hm"}"#);
    let signature = delta(r#"{"type":"signature_delta","signature":"sig"}"#);
    let shown = decode(
        NAME,
        &sse(&[
            START,
            &thinking,
            &said,
            &signature,
            BLOCK_STOP,
            &end("end_turn"),
            STOP,
        ]),
    );
    let candidate = shown.candidate();
    let [Part::Reasoning(part)] = candidate.parts.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!(part.text, "hm");
    assert_eq!(part.opaque.as_ref().unwrap().json, r#"{"signature":"sig"}"#);
    let sealed = decode(
        NAME,
        &sse(&[
            START,
            &thinking,
            &signature,
            BLOCK_STOP,
            &end("end_turn"),
            STOP,
        ]),
    );
    assert_eq!(
        opaque_parts(&sealed),
        [r#"{"type":"thinking","thinking":"","signature":"sig"}"#]
    );
}

#[test]
fn blocks_that_are_not_known_are_kept_and_never_run() {
    let redacted = r#"{"type":"redacted_thinking", "data":"abc","n":1.50}"#;
    let server = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;
    let piece = delta(r#"{"type":"input_json_delta","partial_json":"{\"q\":\"x\"}"}"#);
    let compaction = r#"{"type":"compaction","content":"a"}"#;
    let more = delta(r#"{"type":"compaction_delta","content":"b"}"#);
    let body = sse(&[
        START,
        &start(redacted),
        BLOCK_STOP,
        &start(server),
        &piece,
        BLOCK_STOP,
        r#"{"type":"who_knows","index":0}"#,
        &start(compaction),
        &more,
        BLOCK_STOP,
        &end("end_turn"),
        STOP,
    ]);
    let decoded = decode(NAME, &body);
    assert_eq!(decoded.calls(), []);
    assert_eq!(
        opaque_parts(&decoded),
        [
            redacted,
            r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}}"#,
            r#"{"type":"compaction","content":"ab"}"#,
        ]
    );
}

#[test]
fn citations_and_borders_of_texts_are_kept() {
    let text = start(r#"{"type":"text","text":"a"}"#);
    let citation = delta(r#"{"type":"citations_delta","citation":{"url":"u"}}"#);
    let body = sse(&[
        START,
        &text,
        BLOCK_STOP,
        &text,
        &citation,
        BLOCK_STOP,
        &text,
        BLOCK_STOP,
        &end("end_turn"),
        STOP,
    ]);
    let decoded = decode(NAME, &body);
    let seals: Vec<_> = decoded
        .candidate()
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.opaque.as_ref().map(|it| it.json.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let cited = Some(r#"{"citations":[{"url":"u"}]}"#.to_owned());
    assert_eq!(seals, [Some("{}".to_owned()), cited, None]);
}

#[test]
fn a_second_message_is_ignored_if_it_is_the_first_and_an_error_if_not() {
    let body = |second: &str| {
        sse(&[
            START,
            CALL,
            PIECE,
            BLOCK_STOP,
            second,
            &end("tool_use"),
            STOP,
        ])
    };
    let same = decode(NAME, &body(START));
    assert_eq!(
        (same.error.clone(), same.calls()),
        (None, vec![call("f", r#"{"a":1}"#, true)])
    );
    let other = decode(NAME, &body(&START.replace("m1", "m2")));
    assert_eq!(other.error.clone().unwrap().class, ErrorClass::Protocol);
    assert!(!other.calls()[0].2);
}

#[test]
fn a_message_may_begin_with_whole_blocks() {
    let begun = r#"{"type":"message_start","message":{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a": 1}}]}}"#;
    let decoded = decode(
        NAME,
        &sse(&[begun, CALL, PIECE, BLOCK_STOP, &end("tool_use"), STOP]),
    );
    assert_eq!(decoded.calls(), [call("f", r#"{"a": 1}"#, true)]);
}

#[test]
fn a_whole_message_decodes_like_its_stream() {
    let document = r#"{"type":"message","id":"m1","content":[
        {"type":"thinking","thinking":"hm","signature":"sig"},
        {"type":"text","text":"hi"},
        {"type":"tool_use","id":"c1","name":"f","input":{"a":1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":9}}"#;
    let decoded = decode(NAME, document);
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.candidate().text(), "hi");
    assert_eq!(decoded.candidate().reasoning(), "hm");
    assert_eq!(decoded.calls(), [call("f", r#"{"a":1}"#, true)]);
    let unfinished = decode(
        NAME,
        &document.replace(r#""tool_use","usage""#, r#"null,"usage""#),
    );
    assert_eq!(unfinished.error.clone().unwrap().class, ErrorClass::Network);
    assert!(!unfinished.calls()[0].2);
}

#[test]
fn gateways_may_end_with_done() {
    let list = [START, CALL, PIECE, BLOCK_STOP];
    let mut ended = list.to_vec();
    let reason = end("tool_use");
    ended.extend([reason.as_str(), "[DONE]"]);
    let decoded = decode(NAME, &sse(&ended));
    assert_eq!((decoded.error.clone(), decoded.calls()[0].2), (None, true));
    let mut cut = list.to_vec();
    cut.push("[DONE]");
    let decoded = decode(NAME, &sse(&cut));
    assert_eq!(decoded.error.as_ref().unwrap().class, ErrorClass::Network);
    assert!(!decoded.calls()[0].2);
}

#[test]
fn failures_are_classed_inside_a_stream_and_outside() {
    for (kind, status, class, retryable) in [
        ("invalid_request_error", 400, ErrorClass::BadRequest, false),
        ("authentication_error", 401, ErrorClass::Auth, false),
        ("billing_error", 402, ErrorClass::Quota, false),
        ("permission_error", 403, ErrorClass::Auth, false),
        ("not_found_error", 404, ErrorClass::NotFound, false),
        ("request_too_large", 413, ErrorClass::ContextTooLong, false),
        ("rate_limit_error", 429, ErrorClass::RateLimited, true),
        ("api_error", 500, ErrorClass::Server, true),
        ("timeout_error", 504, ErrorClass::Server, true),
        ("overloaded_error", 529, ErrorClass::Overloaded, true),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": "m"}}).to_string();
        let header = |name: &str| (name == "retry-after").then(|| "7".to_owned());
        let error = dialect(NAME)
            .unwrap()
            .error(status, &header, body.as_bytes(), TimeMs(0));
        assert_eq!((error.class, error.retryable), (class, retryable), "{kind}");
        assert_eq!(error.retry_after_ms, Some(7000));
        let streamed = format!(
            "{}event: error\ndata: {body}\n\n",
            sse(&[START, CALL, PIECE])
        );
        let decoded = decode(NAME, &streamed);
        assert_eq!(decoded.error.as_ref().unwrap().class, class, "{kind}");
        assert!(!decoded.calls()[0].2);
    }
}

#[test]
fn recorded_errors_are_classed_and_quoted() {
    let list = recordings(NAME);
    let recorded = list.iter().find(|it| it.status != 200).unwrap();
    let error = dialect(NAME)
        .unwrap()
        .error(recorded.status, &|_| None, &recorded.body, TimeMs(0));
    assert_eq!(
        (error.class, error.retryable),
        (ErrorClass::NotFound, false)
    );
    assert!(error.message.contains("claude-nonexistent-rig-test"));
}

#[test]
fn open_blocks_and_calls_are_bounded() {
    let many = |block: &str| {
        let list: Vec<String> = (0..400)
            .map(|index| {
                let start = start(&block.replace("ID", &index.to_string()));
                start.replace(r#""index":0"#, &format!(r#""index":{index}"#))
            })
            .collect();
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        decode(NAME, &sse(&list))
    };
    let decoded = many(r#"{"type":"who_knows"}"#);
    assert_eq!(decoded.error.unwrap().class, ErrorClass::TooLarge);
    let decoded = many(r#"{"type":"tool_use","id":"IDx","name":"f","input":{}}"#);
    let calls = decoded.events.iter();
    let calls = calls.filter(|it| matches!(it, ModelEvent::ToolCallStarted { .. }));
    assert_eq!(calls.count(), 256);
}

/// Decodes a reply to a request that offered tools.
fn decode_offered(payloads: &[&str]) -> Decoded {
    let mut target = target(NAME);
    target.tools = offered(&["f"]);
    decode_pieces(&target, &[sse(payloads).as_bytes()])
}

#[test]
fn a_reply_that_lost_an_event_is_no_answer() {
    let text = start(r#"{"type":"text","text":""}"#);
    let said = delta(r#"{"type":"text_delta","text":"Let me look."}"#);
    let second = |event: &str| event.replace(r#""index":0"#, r#""index":1"#);
    let (called, piece, stop) = (second(CALL), second(PIECE), second(BLOCK_STOP));
    let end = end("tool_use");
    let whole = [
        START, &text, &said, BLOCK_STOP, &called, &piece, &stop, &end, STOP,
    ];
    let decoded = decode_offered(&whole);
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.calls(), [call("f", r#"{"a":1}"#, true)]);
    let without = |left_out: &[&str]| {
        let kept = |event: &&str| !left_out.contains(event);
        let kept: Vec<&str> = whole.iter().copied().filter(kept).collect();
        decode_offered(&kept)
    };
    let lost: [&[&str]; 5] = [
        &[&called],
        &[&called, &piece],
        &[&called, &piece, &stop],
        &[&text],
        &[&end],
    ];
    for left_out in lost {
        let decoded = without(left_out);
        let error = decoded
            .error
            .clone()
            .unwrap_or_else(|| panic!("{left_out:?}"));
        assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
        assert!(decoded.calls().iter().all(|call| !call.2), "{left_out:?}");
    }
    // Nothing of what was said is missing.
    assert_eq!(without(&[STOP]).error, None);
    // Without tools there is no call to lose.
    assert_eq!(decode(NAME, &sse(&[START, &end, STOP])).error, None);
}

#[test]
fn counts_of_nothing_are_no_counts() {
    let usage = |count: &str| {
        let start = format!(
            r#"{{"type":"message_start","message":{{"id":"m1","content":[],"usage":{{"input_tokens":{count},"output_tokens":{count}}}}}}}"#
        );
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{"input_tokens":{count},"output_tokens":{count}}}}}"#
        );
        decode(NAME, &sse(&[&start, &end, STOP])).reply.usage
    };
    for count in ["0", "-5", "-0.5", "null", "\"none\""] {
        assert_eq!(usage(count), None, "{count}");
    }
    // A prompt that was counted stays so.
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":-1}}"#;
    let usage = decode(NAME, &sse(&[START, end, STOP])).reply.usage.unwrap();
    assert_eq!((usage.input, usage.output), (12, 0));
}
