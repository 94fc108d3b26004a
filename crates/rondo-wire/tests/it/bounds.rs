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

#[test]
fn calls_are_bounded_in_both_dialects() {
    let chat = |count: usize| {
        let call = |index: usize| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"function":{{"name":"f"}}}}]}}}}]}}"#
            )
        };
        let calls: Vec<String> = (0..count).map(call).collect();
        let mut payloads: Vec<&str> = calls.iter().map(String::as_str).collect();
        payloads.push(STOP);
        sse(&payloads)
    };
    let gemini = |count: usize| {
        let calls = vec![r#"{"functionCall":{"name":"f"}}"#; count].join(",");
        format!(r#"{{"candidates":[{{"content":{{"parts":[{calls}]}},"finishReason":"STOP"}}]}}"#)
    };
    for (count, expected) in [(2, None), (3, None), (4, Some(ErrorClass::TooLarge))] {
        assert_eq!(
            class("openai-chat", SMALL, &chat(count)),
            expected,
            "{count}"
        );
        assert_eq!(class("gemini", SMALL, &gemini(count)), expected, "{count}");
    }
    assert_eq!(
        class("openai-chat", Bounds::default(), &chat(100_000)),
        Some(ErrorClass::TooLarge)
    );
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
fn a_hundred_thousand_open_calls_are_refused() {
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
        for bounds in [SMALL, Bounds::default()] {
            assert_eq!(class(name, bounds, &body), Some(ErrorClass::TooLarge));
        }
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
