//! The model port over the real engine.

use crate::support::{ask, engine, request, tool, weights};
use futures_util::StreamExt as _;
use rondo_core::Model as _;
use rondo_local::{LocalModel, LocalOptions};
use rondo_types::{
    CallId, ErrorClass, FinishReason, Message, ModelEvent, ModelRequest, Part, ToolCall,
    ToolContent, ToolResult, ToolSpec, Usage,
};
use serde_json::json;
use std::sync::Arc;

fn model() -> LocalModel {
    LocalModel::with_engine("smollm2-135m", 1_024, || Ok(engine())).unwrap()
}

fn short(messages: Vec<Message>) -> ModelRequest {
    let mut request = request(messages, Vec::new());
    request.sampling.max_output_tokens = Some(24);
    request
}

fn text(events: &[ModelEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn usage(events: &[ModelEvent]) -> Usage {
    let found = events.iter().find_map(|event| match event {
        ModelEvent::Usage(usage) => Some(*usage),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn an_answer_streams_and_the_next_request_computes_only_what_is_new() {
    let model = model();
    let first = ask(&model, short(vec![Message::user("Say hello.")])).unwrap();
    assert!(!text(&first).is_empty());
    assert!(matches!(
        first.last(),
        Some(ModelEvent::Finished {
            reason: FinishReason::Stop | FinishReason::Length,
            ..
        })
    ));
    assert_eq!(usage(&first).cache_read, 0);

    let messages = vec![
        Message::user("Say hello."),
        Message::assistant(text(&first)),
        Message::user("Again."),
    ];
    let second = usage(&ask(&model, short(messages)).unwrap());
    assert!(
        second.cache_read >= usage(&first).input - 1,
        "{second:?} after {:?}",
        usage(&first)
    );
    assert!(second.input > second.cache_read);

    let other = ask(&model, short(vec![Message::user("Name a colour.")])).unwrap();
    let shared = usage(&other).cache_read;
    assert!(shared > 10 && shared < usage(&first).input, "{shared}");
}

#[test]
fn a_second_step_reads_only_the_call_and_its_result_and_so_does_the_last_one_without_tools() {
    let schema = json!({
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"]
    });
    let model = model();
    let mut messages = vec![
        Message::user("How many files are there?"),
        Message::synthetic_user("<files>\na.txt (2 lines)\n</files>"),
    ];
    let asked = |messages: &[Message], tools: Vec<ToolSpec>| {
        let mut request = request(messages.to_vec(), tools);
        request.sampling.max_output_tokens = Some(24);
        usage(&ask(&model, request).unwrap())
    };
    let step = |id: &str| {
        let call = ToolCall {
            id: CallId::new(id),
            wire_id: None,
            name: "exec".into(),
            arguments: r#"{"command":"ls"}"#.into(),
            complete: true,
            opaque: None,
        };
        let result = ToolResult {
            call_id: CallId::new(id),
            wire_id: None,
            name: "exec".into(),
            error: None,
            content: ToolContent::Text("a.txt\n".into()),
            blocks: Vec::new(),
            synthetic: false,
        };
        let mut called = Message::assistant("");
        called.parts = vec![Part::ToolCall(call)];
        [called, Message::tool_results(vec![result])]
    };
    let tools = || vec![tool("exec", &schema)];
    let first = asked(&messages, tools());
    messages.extend(step("1"));
    let second = asked(&messages, tools());
    messages.extend(step("2"));
    let last = asked(&messages, Vec::new());
    assert!(second.cache_read >= first.input, "{first:?} {second:?}");
    assert!(last.cache_read >= second.input, "{second:?} {last:?}");
    for usage in [second, last] {
        assert!(usage.input - usage.cache_read < 80, "{usage:?}");
    }
}

#[test]
fn another_process_reads_only_what_is_new_and_answers_the_same() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join("prompts");
    let answer = |question: &str| {
        let mut options = LocalOptions::new(weights(), "smollm2-135m");
        options.prompt_cache = Some(cache.clone());
        // Each model has an engine of its own, as each process has.
        let model = LocalModel::start(options).unwrap();
        let mut request = short(vec![Message::user(question)]);
        let rules = "Answer in a few words, name the colour first, and never explain it. ";
        request.system = vec![
            rules.repeat(5),
            format!("The question has {} bytes.", question.len()),
        ]
        .into();
        let events = ask(&model, request).unwrap();
        (text(&events), usage(&events))
    };
    let (first, computed) = answer("What colour is the sea?");
    let (again, reused) = answer("What colour is the sea?");
    assert_eq!(computed.cache_read, 0);
    assert!(reused.cache_read > 64 && reused.cache_read < reused.input);
    assert_eq!(first, again);
    let (_, other) = answer("Which one is grass?");
    assert_eq!(other.cache_read, reused.cache_read);

    let file = std::fs::read_dir(&cache)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let (anew, computed) = answer("What colour is the sea?");
    assert_eq!((anew, computed.cache_read), (first, 0));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_second_question_in_a_directory_reads_neither_the_rules_nor_the_listing_again() {
    let home = tempfile::tempdir().unwrap();
    let answer = |files: &str, question: &str| {
        let mut options = LocalOptions::new(weights(), "smollm2-135m");
        options.prompt_cache = Some(home.path().to_owned());
        let model = LocalModel::start(options).unwrap();
        let listing = format!("<files>\n{files}</files>\n<found>\n{question}\n</found>");
        let mut request = short(vec![
            Message::user(question),
            Message::synthetic_user(listing),
        ]);
        request.system =
            vec!["Answer in a few words, and name the colour first. ".repeat(5)].into();
        let events = ask(&model, request).unwrap();
        (text(&events), usage(&events))
    };
    let here = "ships.txt (12 lines)\nharbours.csv (7 lines)\n".repeat(4);
    let there = "letters.md (3 lines)\n".repeat(9);
    let (_, first) = answer(&here, "What colour is the sea?");
    let (_, other) = answer(&there, "What colour is the sea?");
    let (second, again) = answer(&here, "Which one is grass?");
    assert_eq!(first.cache_read, 0);
    assert!(other.cache_read > 24, "{other:?}");
    assert!(again.cache_read > other.cache_read + 24, "{again:?}");
    assert!(again.input - again.cache_read < 60, "{again:?}");
    let files = || {
        std::fs::read_dir(home.path())
            .unwrap()
            .map(|it| it.unwrap())
    };
    assert_eq!(files().count(), 3);
    // Who computed the beginning changes nothing.
    for file in files() {
        std::fs::remove_file(file.path()).unwrap();
    }
    let (anew, computed) = answer(&here, "Which one is grass?");
    assert_eq!((anew, computed.cache_read), (second, 0));
}

#[tokio::test]
async fn a_reply_that_nobody_wants_ends_and_the_next_one_is_answered() {
    let model = model();
    let request = Arc::new(short(vec![Message::user("Count to ten.")]));
    let mut unwanted = model.stream(Arc::clone(&request));
    unwanted.next().await.unwrap().unwrap();
    drop(unwanted);
    let events: Vec<_> = model.stream(request).collect().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    assert!(matches!(
        events.last(),
        Some(Ok(ModelEvent::Finished { .. }))
    ));
}

#[test]
fn weights_that_are_missing_or_of_another_kind_are_named() {
    let missing = LocalModel::start(LocalOptions::new("/nonexistent/x.gguf", "x")).unwrap();
    let error = ask(&missing, short(vec![Message::user("Hello")])).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
    assert!(error.message.contains("/nonexistent/x.gguf"), "{error}");

    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let other = LocalModel::start(LocalOptions::new(here, "x")).unwrap();
    let error = ask(&other, short(vec![Message::user("Hello")])).unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert!(error.message.contains("GGUF"), "{error}");
}

#[test]
fn a_conversation_that_does_not_fit_is_refused_before_anything_is_computed() {
    let long = "word ".repeat(1_100);
    let error = ask(&model(), short(vec![Message::user(long)])).unwrap_err();
    assert_eq!(error.class, ErrorClass::ContextTooLong);
}
