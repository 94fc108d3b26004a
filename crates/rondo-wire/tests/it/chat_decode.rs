//! Quirks of openai-chat servers. All bodies here are synthetic: written by hand from the shapes
//! that servers are known to send.

use crate::support::{Decoded, decode, decode_pieces, offered, sse, target};
use rondo_types::{ErrorClass, FinishReason, ModelEvent, Part, Usage};
use serde_json::{Value, json};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const LENGTH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

fn call_delta(call: &Value) -> String {
    delta(&json!({"tool_calls": [call]}))
}

fn streamed(deltas: &[Value], end: &str) -> Decoded {
    let mut payloads: Vec<String> = deltas.iter().map(call_delta).collect();
    payloads.push(end.to_owned());
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    decode("openai-chat", &sse(&payloads))
}

fn call(name: &str, arguments: &str, complete: bool) -> (String, String, bool) {
    (name.to_owned(), arguments.to_owned(), complete)
}

fn text_of(body: &str) -> String {
    let decoded = decode("openai-chat", body);
    assert_eq!(decoded.error, None);
    decoded.candidate().text()
}

#[test]
fn line_ends_comments_marks_and_a_missing_done_make_no_difference() {
    let hello = delta(&json!({"content": "hello"}));
    let bodies = [
        format!("data: {hello}\n\ndata: {STOP}\n\ndata: [DONE]\n\n"),
        format!("data: {hello}\r\n\r\ndata: {STOP}\r\n\r\ndata: [DONE]\r\n\r\n"),
        format!("data: {hello}\r\rdata: {STOP}\r\r"),
        format!("\u{feff}: ping\n\ndata: {hello}\n\n: OPENROUTER PROCESSING\n\ndata: {STOP}\n\n"),
        format!("data:{hello}\n\ndata:{STOP}\n\ndata:[DONE]"),
        format!("data: {hello}\ndata: {STOP}\ndata: [DONE]\n"),
        format!("id: 1\nretry: 10\nevent: message\ndata: {hello}\n\nunknown\n\ndata: {STOP}"),
        format!("data: {hello}\n\ndata: {STOP}\n\ndata: [DONE]\n\ndata: {hello}\n\nrubbish"),
    ];
    for body in bodies {
        assert_eq!(text_of(&body), "hello", "{body}");
    }
}

#[test]
fn an_end_without_finish_reason_and_without_done_is_a_cut() {
    let hello = delta(&json!({"content": "hello"}));
    let error = decode("openai-chat", &sse(&[&hello])).error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    assert_eq!(
        decode("openai-chat", "").error.unwrap().class,
        ErrorClass::Network
    );
    let done = decode("openai-chat", &sse(&[&hello, "[DONE]"]));
    assert_eq!(
        (done.error.clone(), done.candidate().finish_reason),
        (None, None)
    );
}

#[test]
fn content_may_be_a_list_of_text_and_thinking() {
    let thinking = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
        {"type": "reference", "reference_ids": [1]},
    ]});
    let candidate = decode("openai-chat", &sse(&[&delta(&thinking), STOP])).candidate();
    assert_eq!(
        (candidate.reasoning(), candidate.text()),
        ("hm".into(), "yes".into())
    );
}

#[test]
fn reasoning_in_two_fields_is_read_once() {
    let both = json!({"reasoning": "a", "reasoning_content": "a", "reasoning_details":
        [{"type": "reasoning.text", "text": "a", "signature": "s"}]});
    let decoded = decode("openai-chat", &sse(&[&delta(&both), STOP]));
    assert_eq!(decoded.candidate().reasoning(), "a");
    let kept = json!(decoded.candidate().parts).to_string();
    assert!(kept.contains("signature"), "{kept}");
}

#[test]
fn calls_without_index_are_told_apart_by_id_and_by_name() {
    let by_id = streamed(
        &[
            json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}),
            json!({"id": "b", "function": {"name": "g", "arguments": "{}"}}),
            json!({"id": "a", "function": {"arguments": "1}"}}),
        ],
        CALLS,
    );
    assert_eq!(
        by_id.calls(),
        [call("f", "{\"x\":1}", true), call("g", "{}", true)]
    );
    let by_name = streamed(
        &[
            json!({"function": {"name": "f", "arguments": "{\"x\":"}}),
            json!({"function": {"arguments": "1}"}}),
            json!({"function": {"name": "f", "arguments": {"x": 2}}}),
        ],
        CALLS,
    );
    assert_eq!(
        by_name.calls(),
        [call("f", "{\"x\":1}", true), call("f", "{\"x\":2}", true)]
    );
}

#[test]
fn parallel_calls_that_all_say_index_zero_stay_apart() {
    let with_ids = streamed(
        &[
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "f", "arguments": "{\"x\""}}),
            json!({"index": 0, "id": "b", "function": {"name": "", "arguments": ":1}"}}),
        ],
        STOP,
    );
    assert_eq!(
        with_ids.calls(),
        [call("f", "{}", true), call("f", "{\"x\":1}", true)]
    );
    let without_ids = streamed(
        &[
            json!({"index": 0, "function": {"name": "f", "arguments": "{}"}}),
            json!({"index": 0, "function": {"name": "g", "arguments": "{}"}}),
        ],
        CALLS,
    );
    assert_eq!(
        without_ids.calls(),
        [call("f", "{}", true), call("g", "{}", true)]
    );
}

#[test]
fn interleaved_calls_are_joined_by_index() {
    let decoded = streamed(
        &[
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}),
            json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g"}}),
            json!({"index": 0, "function": {"arguments": "{\"x\""}}),
            json!({"index": 1, "function": {"arguments": "{}"}}),
            json!({"index": 0, "type": "function", "function": {"name": "", "arguments": ":1}"}}),
        ],
        CALLS,
    );
    assert_eq!(
        decoded.calls(),
        [call("f", "{\"x\":1}", true), call("g", "{}", true)]
    );
}

#[test]
fn a_name_or_id_that_comes_late_is_taken() {
    let decoded = streamed(
        &[
            json!({"index": 0, "function": {"arguments": "{"}}),
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "}"}}),
        ],
        CALLS,
    );
    assert_eq!(decoded.calls(), [call("f", "{}", true)]);
    let candidate = decoded.candidate();
    let wire_id = candidate.tool_calls().next().unwrap().wire_id.clone();
    assert_eq!(wire_id.as_deref(), Some("a"));
}

#[test]
fn no_arguments_in_any_form_are_an_empty_object() {
    for arguments in [
        json!(""),
        json!("null"),
        json!(null),
        json!({}),
        json!(" "),
        json!("{}"),
    ] {
        let decoded = streamed(
            &[json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}})],
            CALLS,
        );
        assert_eq!(decoded.calls(), [call("f", "{}", true)], "{arguments}");
    }
    let pieces = ["nu", "ll"]
        .map(|piece| json!({"index": 0, "function": {"name": "f", "arguments": piece}}));
    assert_eq!(streamed(&pieces, CALLS).calls(), [call("f", "{}", true)]);
}

#[test]
fn arguments_cut_by_length_are_never_whole() {
    for (arguments, end) in [
        ("{\"x\":", LENGTH),
        ("", LENGTH),
        ("nu", LENGTH),
        ("{\"x\":", CALLS),
    ] {
        let decoded = streamed(
            &[json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}})],
            end,
        );
        assert_eq!(
            decoded.calls(),
            [call("f", arguments, false)],
            "{arguments} {end}"
        );
    }
    let whole = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}});
    assert_eq!(
        streamed(&[whole], LENGTH).calls(),
        [call("f", "{\"x\":1}", true)]
    );
}

#[test]
fn broken_arguments_of_a_reply_that_was_not_cut_are_left_to_the_repair() {
    let broken =
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{'x': 1,}"}});
    assert_eq!(
        streamed(&[broken], CALLS).calls(),
        [call("f", "{'x': 1,}", true)]
    );
}

#[test]
fn calls_beside_a_filter_or_a_failure_are_not_whole() {
    for reason in ["content_filter", "error"] {
        let end = json!({"choices": [{"index": 0, "finish_reason": reason}]}).to_string();
        let whole = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
        assert_eq!(streamed(&[whole], &end).calls(), [call("f", "{}", false)]);
    }
}

#[test]
fn a_nameless_call_is_not_whole() {
    let nameless = json!({"index": 0, "function": {"arguments": "{}"}});
    assert_eq!(
        streamed(&[nameless], CALLS).calls(),
        [call("", "{}", false)]
    );
}

#[test]
fn unknown_fields_of_a_call_are_kept_for_the_way_back() {
    let signed = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s"}}});
    let candidate = streamed(&[signed], CALLS).candidate();
    let opaque = candidate
        .tool_calls()
        .next()
        .unwrap()
        .opaque
        .clone()
        .unwrap();
    assert_eq!(
        opaque.json,
        r#"{"extra_content":{"google":{"thought_signature":"s"}}}"#
    );
}

#[test]
fn candidates_of_one_reply_stay_apart() {
    let decoded = decode(
        "openai-chat",
        &sse(&[
            r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ]),
    );
    assert_eq!(decoded.error, None);
    let read: Vec<_> = decoded
        .reply
        .candidates
        .iter()
        .map(|it| (it.text(), it.finish_reason.unwrap()))
        .collect();
    assert_eq!(
        read,
        [
            ("a".to_owned(), FinishReason::Stop),
            ("b".to_owned(), FinishReason::Length)
        ]
    );
}

#[test]
fn one_unfinished_candidate_makes_the_body_cut() {
    let body = sse(&[
        r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(
        decode("openai-chat", &body).error.unwrap().class,
        ErrorClass::Network
    );
}

#[test]
fn counts_come_from_wherever_the_server_puts_them() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 5}});
    for payload in [
        json!({"choices": [], "usage": usage}),
        json!({"choices": [], "x_groq": {"usage": usage}}),
        json!({"choices": [{"index": 0, "delta": {}, "usage": usage}], "usage": null}),
    ] {
        let decoded = decode("openai-chat", &sse(&[STOP, &payload.to_string()]));
        let expected = Usage {
            input: 7,
            output: 3,
            cache_read: 5,
            ..Usage::default()
        };
        assert_eq!(decoded.reply.usage, Some(expected), "{payload}");
    }
}

#[test]
fn reasoning_counted_beside_the_output_is_added_to_it() {
    let beside = r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":1,
        "total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}}"#;
    let decoded = decode("openai-chat", &sse(&[STOP, &beside.replace('\n', "")]));
    assert_eq!(decoded.usage.unwrap().output, 1);
    assert_eq!(decoded.reply.usage.unwrap().output, 291);
}

#[test]
fn a_whole_reply_decodes_like_a_streamed_one() {
    let body = json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "looking", "reasoning_content": "hm",
            "tool_calls": [{"id": "a", "type": "function",
                "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}
    });
    let decoded = decode("openai-chat", &serde_json::to_string_pretty(&body).unwrap());
    assert_eq!(decoded.error, None);
    let candidate = decoded.candidate();
    assert_eq!(
        (candidate.text(), candidate.reasoning()),
        ("looking".into(), "hm".into())
    );
    assert_eq!(decoded.calls(), [call("f", "{\"x\": 1}", true)]);
}

#[test]
fn errors_inside_a_stream_end_it_with_their_class() {
    let failed = |payload: &str| {
        let body = format!("data: {}\n\n{payload}\n\n", delta(&json!({"content": "a"})));
        let decoded = decode("openai-chat", &body);
        assert_eq!(decoded.candidate().text(), "a");
        let error = decoded.error.unwrap();
        (error.class, error.retryable)
    };
    assert_eq!(
        failed(
            r#"data: {"error":{"message":"x","code":"tool_use_failed","failed_generation":"<f>"}}"#
        ),
        (ErrorClass::InvalidToolCall, false)
    );
    assert_eq!(
        failed("event: error\ndata: {\"message\":\"overload\",\"type\":\"overloaded_error\"}"),
        (ErrorClass::Overloaded, true)
    );
    assert_eq!(
        failed(
            r#"data: {"object":"error","message":"too long: maximum context length is 8","code":400}"#
        ),
        (ErrorClass::ContextTooLong, false)
    );
    assert_eq!(
        failed(r#"error: {"code":500,"message":"boom","type":"server_error"}"#),
        (ErrorClass::Server, true)
    );
    assert_eq!(
        failed(
            "data: {\"error\":{\"code\":429,\"message\":\"slow\"},\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}"
        ),
        (ErrorClass::RateLimited, true)
    );
    assert_eq!(
        failed("event: error\ndata: out of memory"),
        (ErrorClass::Server, true)
    );
    assert_eq!(
        failed("{\n \"error\": {\"message\": \"no\", \"type\": \"authentication_error\"}\n}"),
        (ErrorClass::Auth, false)
    );
}

#[test]
fn an_error_is_repeated_and_nothing_follows_it() {
    let mut decoder = rondo_wire::dialect("openai-chat")
        .unwrap()
        .decoder(&target("openai-chat"), rondo_wire::Bounds::default());
    let mut events = Vec::new();
    let first = decoder.push(b"data: {\"error\":\"x\"}\n\n", &mut events);
    assert!(first.is_err());
    assert_eq!(decoder.push(STOP.as_bytes(), &mut events), first);
    assert_eq!(decoder.finish(&mut events), first);
    assert_eq!(events, []);
}

#[test]
fn a_web_page_is_no_reply() {
    for body in [
        "<html><title>502 Bad Gateway</title>",
        "upstream unavailable\n",
    ] {
        let error = decode("openai-chat", body).error.unwrap();
        assert_eq!(error.class, ErrorClass::Protocol, "{}", error.message);
    }
}

#[test]
fn broken_json_in_an_event_is_an_error_of_the_protocol() {
    let error = decode("openai-chat", "data: {\"choices\": [}\n\n")
        .error
        .unwrap();
    assert_eq!(
        (error.class, error.retryable),
        (ErrorClass::Protocol, false)
    );
}

#[test]
fn a_call_written_as_text_is_read_only_with_the_quirk() {
    let text =
        delta(&json!({"content": "{\"name\": \"exec\", \"arguments\": {\"command\": \"ls\"}}"}));
    let body = sse(&[&text, STOP]);
    let mut target = target("openai-chat");
    target.tools = offered(&["exec"]);
    assert_eq!(decode_pieces(&target, &[body.as_bytes()]).calls(), []);
    target.quirks.lenient_tool_calls = true;
    let decoded = decode_pieces(&target, &[body.as_bytes()]);
    assert_eq!(
        decoded.calls(),
        [call("exec", "{\"command\": \"ls\"}", true)]
    );
    assert_eq!(decoded.candidate().text(), "");
}

/// Seen from Qwen2.5-Coder 1.5B, which copies the braces of its template.
#[test]
fn a_call_written_in_doubled_braces_is_read_too() {
    let text =
        delta(&json!({"content": "{{\"name\": \"exec\", \"arguments\": {\"command\": \"ls\"}}}"}));
    let mut target = target("openai-chat");
    target.tools = offered(&["exec"]);
    target.quirks.lenient_tool_calls = true;
    let decoded = decode_pieces(&target, &[sse(&[&text, STOP]).as_bytes()]);
    assert_eq!(
        decoded.calls(),
        [call("exec", "{\"command\": \"ls\"}", true)]
    );
}

#[test]
fn text_is_kept_when_a_native_call_came_or_none_was_written() {
    let mut target = target("openai-chat");
    target.tools = offered(&["exec"]);
    target.quirks.lenient_tool_calls = true;
    let written = "{\"name\": \"exec\", \"arguments\": {}}";
    let text = delta(&json!({"content": written}));
    let native = call_delta(
        &json!({"index": 0, "id": "a", "function": {"name": "exec", "arguments": "{}"}}),
    );
    let decoded = decode_pieces(&target, &[sse(&[&text, &native, CALLS]).as_bytes()]);
    assert_eq!(decoded.calls().len(), 1);
    assert_eq!(decoded.candidate().text(), written);

    let json_answer = delta(&json!({"content": "{\"answer\": 1}"}));
    let decoded = decode_pieces(&target, &[sse(&[&json_answer, STOP]).as_bytes()]);
    assert_eq!(
        (decoded.calls().len(), decoded.candidate().text()),
        (0, "{\"answer\": 1}".into())
    );
    let started = |event: &ModelEvent| matches!(event, ModelEvent::ToolCallStarted { .. });
    assert!(!decoded.events.iter().any(started));
}

#[test]
fn json_of_another_kind_is_no_reply() {
    for (name, body) in [("openai-chat", "{\"detail\": \"x\"}"), ("gemini", "{}")] {
        let error = decode(name, body).error.unwrap();
        assert_eq!(error.class, ErrorClass::Protocol, "{name}");
    }
}

#[test]
fn an_index_that_is_no_number_counts_as_absent_or_as_its_number() {
    for index in [json!("0"), json!(null), json!(-1), json!({})] {
        let pieces = ["{\"x\":", "1}"].map(
            |arguments| json!({"index": index, "function": {"name": "", "arguments": arguments}}),
        );
        let named = json!({"index": index, "id": "a", "function": {"name": "f"}});
        let [head, tail] = pieces;
        let decoded = streamed(&[named, head, tail], CALLS);
        assert_eq!(decoded.calls(), [call("f", "{\"x\":1}", true)], "{index}");
    }
}

#[test]
fn calls_of_a_whole_message_are_told_apart_by_their_places() {
    let calls = json!([
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":2}"}},
        {"id": "", "index": 0, "function": {"name": "g", "arguments": "{}"}},
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let body =
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    assert_eq!(
        decode("openai-chat", &body.to_string()).calls(),
        [
            call("f", "{\"x\":1}", true),
            call("f", "{\"x\":2}", true),
            call("g", "{}", true),
        ]
    );
}

#[test]
fn a_surrogate_that_was_cut_off_loses_no_arguments_and_no_text() {
    // Servers that cut strings by UTF-16 units send halves of a pair; the call must not run with
    // what is left of its arguments.
    let piece = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    let pieces = [
        piece(r#"{\"a\":\"x\ud83d"#),
        piece(r#"\uDE00 \\\\ud83d\"}"#),
    ];
    let body = sse(&[&pieces[0], &pieces[1], CALLS]);
    let decoded = decode("openai-chat", &body);
    let expected = "{\"a\":\"x\u{1f600} \\\\ud83d\"}";
    assert_eq!(decoded.calls(), [call("f", expected, true)]);
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d\u0041 \ud83d\ude00"}}]}"#;
    assert_eq!(text_of(&sse(&[text, STOP])), "a\u{fffd}A \u{1f600}");
}

#[test]
fn an_index_that_comes_late_continues_its_call() {
    let head = json!({"id": "a", "function": {"name": "f", "arguments": ""}});
    for tail in [
        json!({"index": 0, "function": {"arguments": "{\"x\":1}"}}),
        json!({"index": 0, "id": "a", "function": {"arguments": "{\"x\":1}"}}),
    ] {
        let decoded = streamed(&[head.clone(), tail], CALLS);
        assert_eq!(decoded.calls(), [call("f", "{\"x\":1}", true)]);
    }
}

#[test]
fn a_delta_that_says_nothing_starts_no_call() {
    for silent in [
        json!({"content": "a", "tool_calls": [{}]}),
        json!({"content": "a", "tool_calls": [{"index": 0, "id": "", "function": null}]}),
        json!({"content": "a", "function_call": {"name": "", "arguments": ""}}),
    ] {
        let decoded = decode("openai-chat", &sse(&[&delta(&silent), STOP]));
        assert_eq!(decoded.calls(), [], "{silent}");
        assert_eq!(decoded.candidate().text(), "a");
    }
}

#[test]
fn a_call_in_the_old_and_the_new_form_is_one_call() {
    let function = json!({"name": "f", "arguments": "{}"});
    let message = json!({"content": null, "function_call": function,
        "tool_calls": [{"id": "a", "type": "function", "function": function}]});
    let body = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let decoded = decode("openai-chat", &body.to_string());
    assert_eq!(decoded.calls(), [call("f", "{}", true)]);
}

#[test]
fn a_later_finish_reason_does_not_make_a_refused_or_cut_call_whole() {
    let filtered = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#;
    for (end, arguments) in [(filtered, "{}"), (LENGTH, "")] {
        let head = call_delta(&json!({"index": 0, "id": "a", "function":
            {"name": "f", "arguments": arguments}}));
        let decoded = decode("openai-chat", &sse(&[&head, end, STOP]));
        assert_eq!(decoded.calls(), [call("f", arguments, false)]);
    }
}

#[test]
fn a_whole_message_beside_an_empty_delta_is_read() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hello"},
        "delta": {"role": "assistant", "content": ""}}]});
    assert_eq!(text_of(&body.to_string()), "hello");
    let chunk = |so_far: &str, piece: &str, end: Value| {
        json!({"choices": [{"index": 0, "finish_reason": end,
            "message": {"content": so_far}, "delta": {"content": piece}}]})
        .to_string()
    };
    let chunks = [
        chunk("he", "he", Value::Null),
        chunk("hello", "llo", Value::Null),
        chunk("hello", "", json!("stop")),
    ];
    assert_eq!(
        text_of(&sse(&[&chunks[0], &chunks[1], &chunks[2]])),
        "hello"
    );
}

#[test]
fn counts_of_an_unexpected_type_count_as_absent() {
    for usage in [json!([]), json!(""), json!({"prompt_tokens_details": []})] {
        let end = json!({"choices": [{"index": 0, "delta": {"content": "a"},
            "finish_reason": "stop"}], "usage": usage});
        assert_eq!(text_of(&sse(&[&end.to_string()])), "a", "{usage}");
    }
}

#[test]
fn an_error_field_without_a_line_end_is_read() {
    let error = r#"{"code":500,"message":"it broke","type":"server_error"}"#;
    let message = |body: &str| decode("openai-chat", body).error.unwrap().message;
    assert!(message(&format!("error: {error}")).contains("it broke"));
    assert!(message(&format!("error: {}", &error[..20])).contains("ended early"));
}

#[test]
fn an_error_of_groq_outside_the_choices_is_read() {
    let failed = json!({"choices": [], "x_groq": {"id": "r", "error": "over capacity"}});
    let body = format!("{}data: [DONE]\n\n", sse(&[&failed.to_string()]));
    let error = decode("openai-chat", &body).error.unwrap();
    assert!(error.retryable && error.message.contains("over capacity"));
}

#[test]
fn pieces_of_a_reasoning_text_go_back_as_one_with_its_signature() {
    let piece = |detail: Value| delta(&json!({"reasoning_details": [detail]}));
    let text = |text: &str| piece(json!({"type": "reasoning.text", "text": text, "index": 0}));
    let payloads = [
        text("let "),
        text("me"),
        piece(json!({"type": "reasoning.text", "signature": "s", "index": 0})),
        piece(json!({"type": "reasoning.encrypted", "data": "x", "index": 1})),
        piece(json!({"type": "reasoning.encrypted", "data": "y", "index": 1})),
        piece(json!({"type": "reasoning.text", "text": "so", "index": 2})),
        STOP.to_owned(),
    ];
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    let decoded = decode("openai-chat", &sse(&payloads));
    let parts = decoded.candidate().parts;
    let Some(Part::Opaque(opaque)) = parts.last() else {
        panic!("{parts:?}");
    };
    let kept: Value = serde_json::from_str(&opaque.json).unwrap();
    let expected = json!([
        {"type": "reasoning.text", "text": "let me", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "x", "index": 1},
        {"type": "reasoning.encrypted", "data": "y", "index": 1},
        {"type": "reasoning.text", "text": "so", "index": 2},
    ]);
    assert_eq!(kept["reasoning_details"], expected);
}

#[test]
fn nulls_in_lists_are_passed_over() {
    let body = sse(&[
        r#"{"choices":[null,{"index":0,"delta":{"content":"a","tool_calls":[null]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[null,{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    let decoded = decode("openai-chat", &body);
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.candidate().text(), "a");
    assert_eq!(decoded.calls(), [("f".to_owned(), "{}".to_owned(), true)]);
}

#[test]
fn a_reply_that_announces_a_call_and_has_none_lost_it() {
    let said = delta(&json!({"content": "Let me look."}));
    let body = sse(&[&said, CALLS]);
    let mut with_tools = target("openai-chat");
    with_tools.tools = offered(&["f"]);
    let decoded = decode_pieces(&with_tools, &[body.as_bytes()]);
    let error = decoded.error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    // Several servers say so of any reply if no tools were offered.
    assert_eq!(text_of(&body), "Let me look.");
}
