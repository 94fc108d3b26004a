//! Tests: steps that are read while they are generated.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// Reads a step cut into pieces of `size` bytes: text, calls and arguments joined.
fn read(step: &str, size: usize) -> (String, Vec<String>, String) {
    let mut reader = StepReader::new("answer");
    let mut events: Vec<StepEvent> = step
        .as_bytes()
        .chunks(size)
        .flat_map(|piece| reader.push(piece))
        .collect();
    events.extend(reader.finish());
    let (mut text, mut calls, mut arguments) = (String::new(), Vec::new(), String::new());
    for event in events {
        match event {
            StepEvent::Text(more) => text.push_str(&more),
            StepEvent::Call { name } => calls.push(name),
            StepEvent::Arguments(whole) => arguments.push_str(&whole),
        }
    }
    (text, calls, arguments)
}

#[test]
fn a_call_is_named_before_its_arguments_are_whole() {
    let mut reader = StepReader::new("answer");
    let named = reader.push(br#"{"action":"exec","args":{"comm"#);
    assert_eq!(
        named,
        [StepEvent::Call {
            name: "exec".into()
        }]
    );
    assert!(reader.is_call());
    assert_eq!(reader.push(br#"and":"ls"}}"#), []);
    assert_eq!(
        reader.finish(),
        Some(StepEvent::Arguments(r#"{"command":"ls"}"#.into()))
    );
}

#[test]
fn an_answer_is_shown_while_it_grows() {
    let mut reader = StepReader::new("answer");
    assert_eq!(
        reader.push(br#"{"action":"answer","args":{"text":"It is"#),
        [StepEvent::Text("It is".into())]
    );
    assert_eq!(
        reader.push(br#" 7.\"#),
        [StepEvent::Text(" 7.".into())],
        "half an escape waits"
    );
    assert_eq!(reader.push(b"n"), [StepEvent::Text("\n".into())]);
    assert_eq!(reader.push(br#""}}"#), []);
    assert_eq!(reader.finish(), None);
}

#[test]
fn an_answer_in_json_comes_whole() {
    let step = r#"{"action":"answer","args":{"json":{"a":[1,{"b":2}]}}}"#;
    for size in 1..step.len() {
        assert_eq!(read(step, size).0, r#"{"a":[1,{"b":2}]}"#);
    }
}

#[test]
fn characters_and_surrogate_pairs_are_never_cut() {
    let step = r#"{"action":"answer","args":{"text":"aé日🦀\ud83e\udd80\u00e9\"\\\n"}}"#;
    for size in 1..step.len() {
        assert_eq!(read(step, size).0, "aé日🦀🦀é\"\\\n", "pieces of {size}");
    }
}

proptest! {
    #[test]
    fn any_answer_arrives_as_it_was(text in "\\PC{0,60}[\\n\"\\\\]{0,3}", size in 1_usize..9) {
        let step = json!({"action": "answer", "args": {"text": text}}).to_string();
        prop_assert_eq!(read(&step, size).0, text);
    }

    #[test]
    fn any_call_arrives_as_it_was(
        name in "[a-z_\"\\\\é]{1,12}",
        value in "\\PC{0,40}",
        size in 1_usize..9,
    ) {
        prop_assume!(name != "answer");
        let arguments = json!({"value": value}).to_string();
        let step = format!(r#"{{"action":{},"args":{arguments}}}"#, Value::from(name.as_str()));
        prop_assert_eq!(read(&step, size), (String::new(), vec![name], arguments));
    }
}
