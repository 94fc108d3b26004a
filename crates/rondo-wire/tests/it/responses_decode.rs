//! Decoded bodies of OpenAI Responses.

use crate::support::{
    Decoded, assert_cut_off, call, decode, decode_pieces, recorded_call, recordings, sse, target,
};
use rondo_types::{ErrorClass, FinishReason, ModelEvent, Part, TimeMs};
use rondo_wire::dialect;
use serde_json::{Value, json};

const NAME: &str = "openai-responses";

const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"","status":"in_progress"}}"#;
const DELTA: &str =
    r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":1}"}"#;
const DONE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\":1}","status":"completed"}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

fn whole(body: &[u8]) -> Decoded {
    decode_pieces(&target(NAME), &[body])
}

#[test]
fn recorded_bodies_decode_as_expected() {
    let list = recordings(NAME);
    assert_eq!(list.len(), 8);
    for recorded in list {
        let (name, expected) = (&recorded.name, &recorded.expected);
        let decoded = whole(&recorded.body);
        let candidate = decoded.candidate();
        assert_eq!(decoded.error, None, "{name}");
        assert_eq!(json!(candidate.text()), expected["text"], "{name}");
        let summary = json!(candidate.reasoning());
        assert_eq!(summary, expected["reasoning_summary"], "{name}");
        assert_eq!(json!(candidate.refusal()), expected["refusal"], "{name}");
        let calls: Vec<Value> = candidate
            .tool_calls()
            .map(|call| recorded_call("call_id", call))
            .collect();
        let mut expected_calls = expected["tool_calls"].clone();
        for call in expected_calls.as_array_mut().unwrap() {
            call.as_object_mut().unwrap().remove("item_status");
        }
        assert_eq!(json!(calls), expected_calls, "{name}");
        assert_eq!(
            json!(candidate.raw_finish_reasons),
            json!([expected["status"]]),
            "{name}"
        );
        let usage = decoded.usage.unwrap_or_default();
        assert_eq!(json!(usage.input), expected["usage"]["input"], "{name}");
        assert_eq!(json!(usage.output), expected["usage"]["output"], "{name}");
    }
}

#[test]
fn cutting_a_recorded_body_anywhere_changes_nothing() {
    let target = target(NAME);
    for recorded in recordings(NAME) {
        let whole = whole(&recorded.body);
        for size in [1, 2, 3, 7, 64, 1000] {
            let pieces: Vec<&[u8]> = recorded.body.chunks(size).collect();
            let cut = decode_pieces(&target, &pieces);
            assert_eq!(cut, whole, "{} in pieces of {size}", recorded.name);
        }
    }
}

#[test]
fn a_body_that_is_cut_at_any_event_has_no_whole_call() {
    for recorded in recordings(NAME) {
        let text = String::from_utf8(recorded.body.clone()).unwrap();
        let end = text.find("response.completed").unwrap();
        let mut at = 0;
        while let Some(next) = text.get(at..).and_then(|rest| rest.find('\n')) {
            at += next + 1;
            if at > end {
                break;
            }
            let decoded = whole(&recorded.body[..at]);
            assert_cut_off(&decoded, &format!("{} at {at}", recorded.name));
        }
    }
}

#[test]
fn calls_are_keyed_by_their_output_index() {
    let other = DELTA.replace(r#""output_index":0"#, r#""output_index":1,"item_id":"x9""#);
    let second = |text: &str| {
        text.replace(r#""output_index":0"#, r#""output_index":1"#)
            .replace("c1", "c2")
            .replace("fc_1", "renamed")
    };
    let body = sse(&[
        ADDED,
        &second(ADDED),
        &other,
        DELTA,
        &second(DONE),
        DONE,
        COMPLETED,
    ]);
    let decoded = decode(NAME, &body);
    let expected = [call("f", r#"{"a":1}"#, true), call("f", r#"{"a":1}"#, true)];
    assert_eq!(decoded.calls(), expected);
    let candidate = decoded.candidate();
    let ids: Vec<_> = candidate
        .tool_calls()
        .map(|it| it.wire_id.as_deref())
        .collect();
    assert_eq!(ids, [Some("c1"), Some("c2")]);
    assert_eq!(candidate.finish_reason, Some(FinishReason::ToolCalls));
}

#[test]
fn arguments_without_deltas_are_taken_once() {
    let done = r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}"#;
    for list in [
        vec![ADDED, done, DONE, COMPLETED],
        vec![ADDED, DONE, COMPLETED],
        vec![DONE, COMPLETED],
        vec![ADDED, DELTA, done, DONE, COMPLETED],
        vec![ADDED, DELTA, done, DONE, DONE, COMPLETED],
    ] {
        let decoded = decode(NAME, &sse(&list));
        assert_eq!(decoded.calls(), [call("f", r#"{"a":1}"#, true)], "{list:?}");
    }
}

#[test]
fn empty_arguments_are_an_empty_object() {
    let done = DONE.replace(r#"{\"a\":1}"#, "");
    let decoded = decode(NAME, &sse(&[ADDED, &done, COMPLETED]));
    assert_eq!(decoded.calls(), [call("f", "{}", true)]);
}

#[test]
fn a_call_that_is_not_whole_is_not_run() {
    let item_cut = DONE.replace("completed", "incomplete");
    let response_cut = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
    let other_arguments = DONE.replace(r#"{\"a\":1}"#, r#"{\"a\":2}"#);
    let open = DONE.replace(r#"{\"a\":1}"#, r#"{\"a\":1"#);
    for list in [
        vec![ADDED, DELTA, &item_cut, COMPLETED],
        vec![ADDED, DELTA, DONE, response_cut],
        vec![ADDED, DELTA, &other_arguments, COMPLETED],
        vec![ADDED, &open, COMPLETED],
        vec![ADDED, DELTA, COMPLETED],
    ] {
        let decoded = decode(NAME, &sse(&list));
        assert_eq!(decoded.error, None, "{list:?}");
        assert_eq!(decoded.calls().len(), 1, "{list:?}");
        assert!(!decoded.calls()[0].2, "{list:?}");
    }
}

#[test]
fn why_a_response_is_incomplete_is_told() {
    for (reason, expected) in [
        ("max_output_tokens", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("who_knows", FinishReason::Other),
    ] {
        let end = json!({"type": "response.incomplete", "response": {"status": "incomplete",
            "incomplete_details": {"reason": reason}}});
        let decoded = decode(NAME, &sse(&[&end.to_string()]));
        let candidate = decoded.candidate();
        assert_eq!(candidate.finish_reason, Some(expected));
        assert_eq!(candidate.raw_finish_reasons, [reason]);
    }
}

#[test]
fn a_done_behind_the_last_event_is_tolerated_and_one_before_it_is_a_cut() {
    let decoded = decode(NAME, &sse(&[ADDED, DONE, COMPLETED, "[DONE]"]));
    assert_eq!((decoded.error.clone(), decoded.calls()[0].2), (None, true));
    let decoded = decode(NAME, &sse(&[ADDED, DONE, "[DONE]"]));
    assert_eq!(decoded.error.as_ref().unwrap().class, ErrorClass::Network);
    assert!(!decoded.calls()[0].2);
}

#[test]
fn what_follows_the_last_event_is_not_looked_at() {
    let mut body = sse(&[
        ADDED,
        DONE,
        COMPLETED,
        r#"{"type":"error","message":"late"}"#,
    ]);
    body.push_str("data: {\"cut");
    let target = target(NAME);
    let at_once = whole(body.as_bytes());
    assert_eq!(at_once.error, None);
    let pieces: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(decode_pieces(&target, &pieces), at_once);
    let mut decoder = dialect(NAME)
        .unwrap()
        .decoder(&target, rondo_wire::Bounds::default());
    let mut events = Vec::new();
    decoder.push(sse(&[ADDED]).as_bytes(), &mut events).unwrap();
    assert!(!decoder.ended());
    decoder
        .push(sse(&[DONE, COMPLETED]).as_bytes(), &mut events)
        .unwrap();
    assert!(decoder.ended());
}

#[test]
fn failures_inside_a_response_are_errors() {
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}}"#;
    let flat = r#"{"type":"error","code":"server_error","message":"broken","param":null}"#;
    let nested = r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}"#;
    let bare = r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#;
    let cancelled = r#"{"object":"response","status":"cancelled","output":[]}"#;
    for (event, class, retryable) in [
        (failed, ErrorClass::RateLimited, true),
        (flat, ErrorClass::Server, true),
        (nested, ErrorClass::ContextTooLong, false),
        (bare, ErrorClass::Server, true),
        (cancelled, ErrorClass::Server, true),
    ] {
        let decoded = decode(NAME, &sse(&[ADDED, DONE, event]));
        let error = decoded.error.clone().unwrap();
        assert_eq!(
            (error.class, error.retryable),
            (class, retryable),
            "{event}"
        );
        assert!(!decoded.calls()[0].2, "{event}");
    }
}

#[test]
fn items_are_kept_as_they_came_when_they_were_done() {
    let early = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"early"}}"#;
    let sealed = r#"{"type":"reasoning", "id":"rs","summary":[],"encrypted_content":"whole"}"#;
    let unknown = r#"{"type":"tool_search_call","x":[1, 2.50]}"#;
    let done = |index: u32, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let body = sse(&[early, &done(0, sealed), &done(1, unknown), COMPLETED]);
    let decoded = decode(NAME, &body);
    let kept: Vec<String> = decoded
        .candidate()
        .parts
        .iter()
        .map(|part| match part {
            Part::Opaque(opaque) => opaque.json.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kept, [sealed, unknown]);
}

#[test]
fn parts_of_a_summary_are_parted_and_sealed_together() {
    let part = |index: u32| {
        format!(
            r#"{{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":{index}}}"#
        )
    };
    let delta = r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"hm"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"hm"}]}}"#;
    let streamed = decode(
        NAME,
        &sse(&[&part(0), delta, &part(1), delta, done, COMPLETED]),
    );
    assert_eq!(streamed.candidate().reasoning(), "hm\n\nhm");
    let at_once = decode(NAME, &sse(&[done, COMPLETED]));
    assert_eq!(at_once.candidate(), streamed.candidate());
}

#[test]
fn a_whole_response_decodes_like_its_stream() {
    for recorded in recordings(NAME) {
        let text = String::from_utf8(recorded.body.clone()).unwrap();
        let last = text
            .lines()
            .rfind(|line| line.contains("response.completed\"") && line.starts_with("data:"))
            .unwrap();
        let event: Value = serde_json::from_str(last.trim_start_matches("data:")).unwrap();
        let document = decode(NAME, &event["response"].to_string());
        let streamed = whole(&recorded.body);
        assert_eq!(document.error, None, "{}", recorded.name);
        assert_eq!(document.calls(), streamed.calls(), "{}", recorded.name);
        assert_eq!(document.candidate().text(), streamed.candidate().text());
        assert_eq!(document.usage, streamed.usage, "{}", recorded.name);
    }
}

#[test]
fn a_refusal_is_one() {
    let delta = r#"{"type":"response.refusal.delta","output_index":0,"delta":"no"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"no"}]}}"#;
    for list in [vec![delta, done, COMPLETED], vec![done, COMPLETED]] {
        let decoded = decode(NAME, &sse(&list));
        assert_eq!(decoded.candidate().refusal(), "no");
    }
}

#[test]
fn a_document_of_another_kind_is_no_reply() {
    let decoded = decode(NAME, r#"{"hello":1}"#);
    assert_eq!(decoded.error.unwrap().class, ErrorClass::Protocol);
    let decoded = decode(
        NAME,
        r#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#,
    );
    assert_eq!(decoded.error.unwrap().class, ErrorClass::RateLimited);
}

#[test]
fn an_error_response_is_classed() {
    let body = br#"{"error":{"message":"No tool output found for function call c1.","type":"invalid_request_error","param":"input","code":null}}"#;
    let error = dialect(NAME)
        .unwrap()
        .error(400, &|_| None, body, TimeMs(0));
    assert_eq!(
        (error.class, error.retryable),
        (ErrorClass::BadRequest, false)
    );
    assert!(error.message.contains("No tool output found"));
}

#[test]
fn items_and_calls_are_bounded() {
    let items: Vec<String> = (0..5000)
        .map(|index| ADDED.replace(r#""output_index":0"#, &format!(r#""output_index":{index}"#)))
        .collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let decoded = decode(NAME, &sse(&items));
    let calls = decoded.calls();
    assert_eq!(calls.len(), 256);
    assert!(calls.iter().all(|call| !call.2));
    let messages: Vec<String> = items
        .iter()
        .map(|item| item.replace("function_call", "x"))
        .collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let decoded = decode(NAME, &sse(&messages));
    assert_eq!(decoded.error.unwrap().class, ErrorClass::TooLarge);
    assert!(
        decoded
            .events
            .iter()
            .all(|it| !matches!(it, ModelEvent::ToolCallStarted { .. }))
    );
}

fn text(index: u32, text: &str) -> String {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0,
        "delta": text})
    .to_string()
}

fn text_done(index: u32, text: &str) -> String {
    json!({"type": "response.output_text.done", "output_index": index, "content_index": 0,
        "text": text})
    .to_string()
}

fn message(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn message_done(index: u32, text: &str) -> String {
    json!({"type": "response.output_item.done", "output_index": index, "item": message(text)})
        .to_string()
}

fn completed(output: &[Value]) -> String {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
        .to_string()
}

fn decoded(payloads: &[String]) -> Decoded {
    decode(
        NAME,
        &sse(&payloads.iter().map(String::as_str).collect::<Vec<_>>()),
    )
}

#[test]
fn a_whole_text_says_what_its_pieces_said_or_adds_what_their_end_lost() {
    let (a, b) = (text(0, "one "), text(0, "two"));
    let whole = "one two";
    let good = [
        vec![a.clone(), b.clone(), COMPLETED.to_owned()],
        vec![
            a.clone(),
            b.clone(),
            text_done(0, whole),
            message_done(0, whole),
            completed(&[message(whole)]),
        ],
        // Some servers trim the whole, leave it empty, or send no items at the end.
        vec![
            a.clone(),
            text(0, "two\n\n"),
            text_done(0, whole),
            message_done(0, whole),
            completed(&[]),
        ],
        vec![
            a.clone(),
            b.clone(),
            text_done(0, ""),
            message_done(0, ""),
            completed(&[message(whole)]),
        ],
        // What was lost at the end is in the whole.
        vec![
            a.clone(),
            text_done(0, whole),
            message_done(0, whole),
            completed(&[message(whole)]),
        ],
        vec![
            a.clone(),
            message_done(0, whole),
            completed(&[message(whole)]),
        ],
        vec![a.clone(), completed(&[message(whole)])],
        vec![
            text_done(0, whole),
            message_done(0, whole),
            completed(&[message(whole)]),
        ],
        vec![message_done(0, whole), completed(&[message(whole)])],
        vec![completed(&[message(whole)])],
        // Its place among the items differs from that of its events.
        vec![text(3, whole), completed(&[message(whole)])],
    ];
    for payloads in good {
        let decoded = decoded(&payloads);
        assert_eq!(decoded.error, None, "{payloads:?}");
        assert_eq!(decoded.candidate().text().trim(), whole, "{payloads:?}");
    }
}

#[test]
fn a_whole_text_that_contradicts_its_pieces_shows_a_loss() {
    let (a, b) = (text(0, "one "), text(0, "two"));
    let whole = "one two";
    let lost = [
        vec![b.clone(), text_done(0, whole)],
        vec![a.clone(), b.clone(), text_done(0, "one")],
        vec![b.clone(), message_done(0, whole)],
        vec![b.clone(), completed(&[message(whole)])],
        vec![
            a.clone(),
            b.clone(),
            message_done(0, whole),
            completed(&[message("one three")]),
        ],
        vec![
            a.clone(),
            message_done(0, "one"),
            completed(&[message(whole)]),
        ],
    ];
    for mut payloads in lost {
        payloads.push(COMPLETED.to_owned());
        let error = decoded(&payloads)
            .error
            .unwrap_or_else(|| panic!("{payloads:?}"));
        assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    }
}

#[test]
fn texts_of_several_parts_and_items_are_compared_in_their_order() {
    let part = |part: u32, text: &str| {
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": part,
            "delta": text})
        .to_string()
    };
    let done = json!({"type": "response.output_text.done", "output_index": 0, "content_index": 1,
        "text": "b"});
    let item = json!({"type": "message", "content": [
        {"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]});
    let item_done =
        json!({"type": "response.output_item.done", "output_index": 0, "item": item.clone()});
    let payloads = [
        part(0, "a"),
        part(1, "b"),
        done.to_string(),
        item_done.to_string(),
        text(1, "c"),
        completed(&[item, message("c")]),
    ];
    let decoded = decoded(&payloads);
    assert_eq!(
        (decoded.candidate().text().as_str(), decoded.error),
        ("abc", None)
    );
}

#[test]
fn what_a_response_says_of_itself_is_worth_more_than_the_name_of_its_event() {
    let end = |response: Value| {
        let end = json!({"type": "response.completed", "response": response});
        decoded(&[text(0, "so far"), end.to_string()])
    };
    let failed =
        end(json!({"status": "failed", "error": {"code": "server_error", "message": "m"}}));
    assert_eq!(failed.error.unwrap().class, ErrorClass::Server);
    let cancelled = end(json!({"status": "cancelled"}));
    assert_eq!(cancelled.error.unwrap().class, ErrorClass::Server);
    for (response, reason) in [
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            FinishReason::Length,
        ),
        (
            json!({"status": "completed", "incomplete_details": {"reason": "content_filter"}}),
            FinishReason::ContentFilter,
        ),
        (json!({"status": "in_progress"}), FinishReason::Stop),
        (
            json!({"status": "completed", "incomplete_details": null}),
            FinishReason::Stop,
        ),
    ] {
        let decoded = end(response.clone());
        assert_eq!(decoded.error, None, "{response}");
        assert_eq!(
            decoded.candidate().finish_reason,
            Some(reason),
            "{response}"
        );
    }
    let calls = [
        ADDED,
        DELTA,
        DONE,
        r#"{"type":"response.completed","response":{"status":"incomplete"}}"#,
    ];
    assert_eq!(
        decode(NAME, &sse(&calls)).calls(),
        [call("f", r#"{"a":1}"#, false)]
    );
}

#[test]
fn a_call_whose_beginning_and_end_were_lost_is_noticed() {
    let decoded = decode(NAME, &sse(&[DELTA, COMPLETED]));
    let error = decoded.error.unwrap();
    assert_eq!((error.class, error.retryable), (ErrorClass::Network, true));
    // Its end alone tells all of it.
    let decoded = decode(NAME, &sse(&[DELTA, DONE, COMPLETED]));
    assert_eq!(decoded.calls(), [call("f", r#"{"a":1}"#, true)]);
}

#[test]
fn counts_of_nothing_are_no_counts() {
    for count in ["0", "-7", "null"] {
        let end = format!(
            r#"{{"type":"response.completed","response":{{"status":"completed","usage":{{"input_tokens":{count},"output_tokens":{count}}}}}}}"#
        );
        let decoded = decoded(&[text(0, "a"), end]);
        assert_eq!(
            (decoded.reply.usage, decoded.usage),
            (None, None),
            "{count}"
        );
    }
}

#[test]
fn an_end_that_does_not_repeat_the_response_ends_what_came_whole() {
    let bare = r#"{"type":"response.completed"}"#;
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"hello"}"#;
    let decoded = decode(NAME, &sse(&[text, bare]));
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.candidate().text(), "hello");
    assert_eq!(decoded.candidate().finish_reason, Some(FinishReason::Stop));

    let decoded = decode(NAME, &sse(&[ADDED, DELTA, DONE, bare]));
    assert_eq!(decoded.error, None);
    assert_eq!(decoded.calls(), [call("f", "{\"a\":1}", true)]);

    for body in [sse(&[bare]), sse(&[ADDED, DELTA, bare])] {
        let error = decode(NAME, &body).error.unwrap();
        assert_eq!(error.class, ErrorClass::Protocol);
    }
}
