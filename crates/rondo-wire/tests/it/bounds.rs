//! Memory stays bounded whatever arrives.

use crate::support::{decode_within, sse, target};
use rondo_types::ErrorClass;
use rondo_wire::{Bounds, dialect};

const SMALL: Bounds = Bounds {
    line_bytes_max: 1000,
    event_bytes_max: 2000,
    response_bytes_max: 100_000,
    open_calls_max: 3,
    candidates_max: 2,
};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn class(dialect: &str, bounds: Bounds, body: &str) -> Option<ErrorClass> {
    let pieces: Vec<&[u8]> = body.as_bytes().chunks(97).collect();
    let decoded = decode_within(&target(dialect), bounds, &pieces);
    decoded.error.map(|error| error.class)
}

fn framed(payloads: &[String]) -> String {
    sse(&payloads.iter().map(String::as_str).collect::<Vec<_>>())
}

fn text_of(bytes: usize) -> String {
    let frame = r#"{"choices":[{"index":0,"delta":{"content":""}}]}"#.len();
    let text = "x".repeat(bytes - frame);
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

#[test]
fn a_line_may_be_as_long_as_its_bound_and_no_longer() {
    let line = |bytes: usize| format!("data: {}\n\ndata: {STOP}\n\n", text_of(bytes - 6));
    assert_eq!(class("openai-chat", SMALL, &line(999)), None);
    assert_eq!(class("openai-chat", SMALL, &line(1000)), None);
    assert_eq!(
        class("openai-chat", SMALL, &line(1001)),
        Some(ErrorClass::TooLarge)
    );
}

#[test]
fn a_json_value_may_be_as_long_as_its_bound_and_no_longer() {
    for (bytes, expected) in [
        (1999, None),
        (2000, None),
        (2001, Some(ErrorClass::TooLarge)),
    ] {
        assert_eq!(
            class("openai-chat", SMALL, &text_of(bytes)),
            expected,
            "{bytes}"
        );
    }
}

#[test]
fn an_event_of_many_lines_is_bounded() {
    let body = "data: {\n".repeat(5000);
    assert_eq!(
        class("openai-chat", SMALL, &body),
        Some(ErrorClass::TooLarge)
    );
}

#[test]
fn a_body_may_be_as_long_as_its_bound_and_no_longer() {
    let end = format!("data: {STOP}\n\n");
    let body = |bytes: usize| format!("{}{end}", "\n".repeat(bytes - end.len()));
    for (bytes, expected) in [
        (99_999, None),
        (100_000, None),
        (100_001, Some(ErrorClass::TooLarge)),
    ] {
        assert_eq!(
            class("openai-chat", SMALL, &body(bytes)),
            expected,
            "{bytes}"
        );
    }
}

#[test]
fn what_fits_into_the_bound_of_a_body_is_read_however_it_is_cut() {
    let event = r#"data: {"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let body = format!("{event}\n\n").repeat(3000);
    let whole = decode_within(&target("openai-chat"), SMALL, &[body.as_bytes()]);
    let pieces: Vec<&[u8]> = body.as_bytes().chunks(97).collect();
    assert_eq!(decode_within(&target("openai-chat"), SMALL, &pieces), whole);
    assert!(!whole.events.is_empty());
}

/// A reply of so many calls of `f`, each with its number as its argument.
fn chat_calls(count: usize) -> String {
    let call = |index: usize| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"f","arguments":"{{\"n\":{index}}}"}}}}]}}}}]}}"#
        )
    };
    let mut payloads: Vec<String> = (0..count).map(call).collect();
    payloads.push(STOP.to_owned());
    framed(&payloads)
}

fn gemini_calls(count: usize) -> String {
    let call =
        |index: usize| format!(r#"{{"functionCall":{{"name":"f","args":{{"n":{index}}}}}}}"#);
    let calls: Vec<String> = (0..count).map(call).collect();
    let calls = calls.join(",");
    format!(r#"{{"candidates":[{{"content":{{"parts":[{calls}]}},"finishReason":"STOP"}}]}}"#)
}

fn responses_calls(count: usize) -> String {
    let call = |index: usize| {
        format!(
            r#"{{"type":"function_call","call_id":"c{index}","name":"f","arguments":"{{\"n\":{index}}}"}}"#
        )
    };
    let calls: Vec<String> = (0..count).map(call).collect();
    let mut payloads = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        payloads.push(format!(r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"function_call","call_id":"c{index}","name":"f"}}}}"#));
        payloads.push(format!(r#"{{"type":"response.function_call_arguments.delta","output_index":{index},"delta":"{{"}}"#));
        payloads.push(format!(
            r#"{{"type":"response.output_item.done","output_index":{index},"item":{call}}}"#
        ));
    }
    let output = calls.join(",");
    payloads.push(format!(
        r#"{{"type":"response.completed","response":{{"status":"completed","output":[{output}]}}}}"#
    ));
    framed(&payloads)
}

fn anthropic_calls(count: usize) -> String {
    let mut payloads = Vec::new();
    for index in 0..count {
        payloads.push(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"c{index}","name":"f","input":{{}}}}}}"#));
        payloads.push(format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":"{{\"n\":{index}}}"}}}}"#));
        payloads.push(format!(
            r#"{{"type":"content_block_stop","index":{index}}}"#
        ));
    }
    payloads.push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned());
    payloads.push(r#"{"type":"message_stop"}"#.to_owned());
    framed(&payloads)
}

#[test]
fn calls_beyond_their_bound_are_left_out_and_the_first_ones_stand() {
    type Body = fn(usize) -> String;
    let bodies: [(&str, Body); 4] = [
        ("openai-chat", chat_calls),
        ("gemini", gemini_calls),
        ("openai-responses", responses_calls),
        ("anthropic", anthropic_calls),
    ];
    for (name, body) in bodies {
        for (calls_max, count, kept) in [
            (3, 2, 2),
            (3, 3, 3),
            (3, 4, 3),
            (3, 90, 3),
            (256, 300, 256),
            (256, 9_000, 256),
        ] {
            let body = body(count);
            let bounds = Bounds {
                open_calls_max: calls_max,
                ..Bounds::default()
            };
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(997).collect();
            let decoded = decode_within(&target(name), bounds, &pieces);
            assert_eq!(decoded.error, None, "{name} {count}");
            let expected = |index| ("f".to_owned(), format!("{{\"n\":{index}}}"), true);
            let expected: Vec<_> = (0..kept).map(expected).collect();
            assert_eq!(decoded.calls(), expected, "{name} {count}");
        }
    }
}

#[test]
fn what_belongs_to_a_call_beyond_the_bound_reaches_no_other_call() {
    let delta =
        |call: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let whole = |it: u32| {
        format!(r#"{{"id":"c{it}","function":{{"name":"f","arguments":"{{\"n\":{it}}}"}}}}"#)
    };
    // With an index that is always 0, and with none at all.
    for place in [r#""index":0,"#, ""] {
        let placed = |call: &str| delta(&call.replacen('{', &format!("{{{place}"), 1));
        let mut payloads: Vec<String> = (0..3).map(|it| placed(&whole(it))).collect();
        payloads.push(placed(
            r#"{"id":"c9","function":{"name":"g","arguments":""}}"#,
        ));
        payloads.push(placed(r#"{"function":{"arguments":"{\"evil\":"}}"#));
        payloads.push(placed(r#"{"function":{"arguments":"1}"}}"#));
        payloads.push(STOP.to_owned());
        let body = framed(&payloads);
        let decoded = decode_within(&target("openai-chat"), SMALL, &[body.as_bytes()]);
        assert_eq!(decoded.error, None);
        let expected = |it| ("f".to_owned(), format!("{{\"n\":{it}}}"), true);
        assert_eq!(decoded.calls(), (0..3).map(expected).collect::<Vec<_>>());
    }
}

#[test]
fn candidates_are_bounded_in_both_dialects() {
    for (count, expected) in [(2, None), (3, Some(ErrorClass::TooLarge))] {
        let list = |one: &str| vec![one; count].join(",");
        let chat = list(r#"{"message":{"content":"a"},"finish_reason":"stop"}"#);
        assert_eq!(
            class("openai-chat", SMALL, &format!(r#"{{"choices":[{chat}]}}"#)),
            expected
        );
        let gemini = list(r#"{"finishReason":"STOP"}"#);
        assert_eq!(
            class("gemini", SMALL, &format!(r#"{{"candidates":[{gemini}]}}"#)),
            expected
        );
    }
}

#[test]
fn an_endless_line_ends_at_its_bound() {
    for (name, start) in [("openai-chat", "data: {\"a\":\""), ("gemini", "[{\"a\":\"")] {
        let target = target(name);
        let mut decoder = dialect(name).unwrap().decoder(&target, SMALL);
        let mut events = Vec::new();
        decoder.push(start.as_bytes(), &mut events).unwrap();
        let pushed = (0..3000).position(|_| decoder.push(b"x", &mut events).is_err());
        assert!(pushed.is_some(), "{name}");
        let again = decoder.push(&[b'x'; 5000], &mut events).unwrap_err();
        assert_eq!(again.class, ErrorClass::TooLarge, "{name}");
    }
}

#[test]
fn bytes_behind_the_end_are_not_kept() {
    let target = target("openai-chat");
    let mut decoder = dialect("openai-chat").unwrap().decoder(&target, SMALL);
    let mut events = Vec::new();
    decoder
        .push(
            format!("data: {STOP}\n\ndata: [DONE]\n\n").as_bytes(),
            &mut events,
        )
        .unwrap();
    assert!(decoder.ended());
    for _ in 0..100 {
        decoder.push(&[b'x'; 5000], &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap();
    assert_eq!(events.len(), 1);
}

#[test]
fn a_hundred_thousand_open_calls_take_no_more_than_the_bound() {
    let responses = |index: usize| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"function_call","call_id":"c{index}","name":"f"}}}}"#
        )
    };
    let anthropic = |index: usize| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"c{index}","name":"f"}}}}"#
        )
    };
    let body = |payload: &dyn Fn(usize) -> String| {
        let payloads: Vec<String> = (0..100_000).map(payload).collect();
        sse(&payloads.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for (name, body) in [
        ("openai-responses", body(&responses)),
        ("anthropic", body(&anthropic)),
    ] {
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(9973).collect();
        let decoded = decode_within(&target(name), Bounds::default(), &pieces);
        let calls = decoded.calls();
        assert!(
            calls.len() <= 256 && calls.iter().all(|call| !call.2),
            "{name}"
        );
        assert!(decoded.error.is_some(), "{name}");
    }
}

#[test]
fn nesting_is_passed_over_or_refused_however_deep() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let unknown = deep("[", "]");
    let body = format!("data: {{\"zz\":{unknown}}}\n\ndata: {STOP}\n\n");
    assert_eq!(class("openai-chat", Bounds::default(), &body), None);
    // What is read into itself ends at the recursion limit of serde_json, 128.
    let content = deep("[{\"thinking\":", "}]").replacen(":}", ":[]}", 1);
    let body = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{content}}}}}]}}\n\n");
    assert_eq!(
        class("openai-chat", Bounds::default(), &body),
        Some(ErrorClass::Protocol)
    );
}

#[test]
fn a_list_of_nothings_is_refused_before_it_takes_much_memory() {
    for (count, refused) in [(4095, false), (4096, false), (4097, true)] {
        let choices = vec!["{}"; count].join(",");
        let body = format!("data: {{\"choices\":[{choices}]}}\n\ndata: {STOP}\n\n");
        let bounds = Bounds {
            candidates_max: 5000,
            ..Bounds::default()
        };
        let found = class("openai-chat", bounds, &body);
        assert_eq!(found == Some(ErrorClass::Protocol), refused, "{count}");
    }
}
