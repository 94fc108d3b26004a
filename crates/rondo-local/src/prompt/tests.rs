//! Tests: conversations as prompts of the model.

use super::*;
use rondo_types::{
    CallId, Concurrency, Effects, Media, MediaKind, MediaSource, Recovery, Sampling, ToolCall,
    ToolChoice, ToolContent, ToolResult,
};
use std::sync::Arc;

pub(super) fn exec() -> ToolSpec {
    ToolSpec {
        name: "exec".into(),
        description: "Runs a\n  command.".into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "mode": {"enum": ["a", "b"]},
                "timeout": {"type": ["number", "null"]}
            },
            "required": ["command"]
        }),
        effects: Effects::Writes,
        concurrency: Concurrency::Exclusive,
        recovery: Recovery::AtMostOnce,
        ..ToolSpec::default()
    }
}

fn request(messages: Vec<Message>, tools: Vec<ToolSpec>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: vec!["One.".into(), "Two.".into()].into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new(tools),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId::new(id),
        wire_id: None,
        name: "exec".into(),
        arguments: arguments.into(),
        complete: true,
        opaque: None,
    })
}

fn result(id: &str, text: &str) -> ToolResult {
    ToolResult {
        call_id: CallId::new(id),
        wire_id: None,
        name: "exec".into(),
        error: None,
        content: ToolContent::Text(text.into()),
        blocks: Vec::new(),
        synthetic: false,
    }
}

#[test]
fn tools_are_listed_in_a_line_each() {
    assert_eq!(
        tool_line(&exec()),
        "- exec(command: string): Runs a command."
    );
    let mut choice = exec();
    if let Value::Object(fields) = &mut choice.parameters {
        fields.remove("required");
    }
    assert_eq!(
        tool_line(&choice),
        "- exec(command?: string, mode?: \"a\"|\"b\", timeout?: number|null): Runs a command."
    );
}

#[test]
fn calls_of_one_message_become_steps_with_their_own_results() {
    let mut asked = Message::assistant("");
    asked.parts = vec![call("1", r#"{"command":"ls"}"#), call("2", "")];
    let messages = vec![
        Message::user("How many?"),
        asked,
        Message::tool_results(vec![result("1", "a\nb\n"), result("2", "none")]),
        Message::assistant("Two \"files\"."),
    ];
    let request = request(messages, vec![exec()]);
    let shape = StepShape::of(&request);
    let turns = turns(&request, &shape);
    let said: Vec<(&str, &str)> = turns
        .iter()
        .map(|(role, text)| (*role, text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            ("user", "How many?"),
            ("assistant", r#"{"action":"exec","args":{"command":"ls"}}"#),
            ("user", "<observation>\na\nb\n</observation>"),
            ("assistant", r#"{"action":"exec","args":{}}"#),
            ("user", "<observation>\nnone\n</observation>"),
            (
                "assistant",
                r#"{"action":"answer","args":{"text":"Two \"files\"."}}"#
            ),
        ]
    );
    let (fixed, rest) = system(&request.system, &request.tools, shape.answer);
    assert!(fixed.starts_with("One.\n\nTools:\n- exec("), "{fixed}");
    assert_eq!(rest, "\n\nTwo.");
}

#[test]
fn what_was_added_to_a_question_stands_before_it() {
    let messages = vec![
        Message::user("How many?"),
        Message::synthetic_user("<files>\na\n</files>"),
        Message::synthetic_user("More."),
        Message::assistant("One."),
        Message::synthetic_user("Go on."),
    ];
    let request = request(messages, Vec::new());
    let turns = turns(&request, &StepShape::of(&request));
    let asked: Vec<_> = turns.iter().filter(|(role, _)| *role == "user").collect();
    assert_eq!(asked[0].1, "<files>\na\n</files>\nMore.\nHow many?");
    assert_eq!(asked[1].1, "Go on.");
}

#[test]
fn a_failed_command_names_the_files_of_the_last_listing_before_it() {
    let failed = |id| ToolResult {
        content: ToolContent::Json(json!({"stdout": "cat: x: No such file\n", "exitCode": 1})),
        ..result(id, "")
    };
    let called = |id| Message {
        parts: vec![call(id, r#"{"command":"cat x"}"#)],
        ..Message::assistant("")
    };
    let listing = |file: &str| {
        let shown =
            format!("<files>\n(git repository, branch x)\n{file}\n</files>\n<found>\n</found>");
        Message::synthetic_user(shown)
    };
    let long = "n".repeat(2 * LISTED_CHARS_MAX);
    let messages = vec![
        Message::user("Is it?"),
        listing("a.txt (2 lines)\nb.csv (3 lines)"),
        called("1"),
        Message::tool_results(vec![failed("1")]),
        Message::user("And now?"),
        listing(&long),
        called("2"),
        Message::tool_results(vec![failed("2")]),
    ];
    let request = request(messages, vec![exec()]);
    let turns = turns(&request, &StepShape::of(&request));
    let hints: Vec<&str> = turns
        .iter()
        .filter_map(|(_, text)| text.lines().find(|line| line.starts_with("(The files")))
        .collect();
    assert_eq!(
        hints,
        [
            "(The files here: a.txt (2 lines), b.csv (3 lines))".to_owned(),
            format!("(The files here: {})", "n".repeat(LISTED_CHARS_MAX)),
        ]
    );
}

#[test]
fn a_listing_ends_where_what_was_found_begins() {
    let whole = "<files>\na </files> b\n</files>\n<found>\n</files>\n</found>\nHow many?";
    let (before, after) = listing(whole).unwrap();
    assert_eq!(before, "<files>\na </files> b\n</files>\n");
    assert_eq!([before, after].concat(), whole);
    for none in ["How many?", "Is <files>\n</files>\n a tag?", "<files>\na"] {
        assert_eq!(listing(none), None, "{none}");
    }
}

#[test]
fn without_tools_only_the_answer_is_described() {
    let request = request(vec![Message::user("Hello")], Vec::new());
    let (system, _) = system(&request.system, &[], "answer");
    assert!(!system.contains("observation"), "{system}");
    assert!(system.contains(r#"{"action":"answer""#), "{system}");
}

#[test]
fn media_are_described_where_they_are_and_those_of_results_too() {
    let image = |name: &str| Media {
        kind: MediaKind::Image,
        mime: "image/png".into(),
        name: Some(name.into()),
        source: MediaSource::Base64("QUJD".into()),
    };
    let asked = Message {
        parts: vec![
            Part::text("Compare"),
            Part::Media(image("a")),
            Part::text("with"),
            Part::Media(image("b")),
        ],
        ..Message::user("")
    };
    let mut shot = result("1", "taken");
    shot.blocks.push(image("c").into());
    let called = Message {
        parts: vec![call("1", "{}")],
        ..Message::assistant("")
    };
    let messages = vec![asked, called, Message::tool_results(vec![shot])];
    let request = request(messages, vec![exec()]);
    let shape = StepShape::of(&request);
    let turns = turns(&request, &shape);
    assert_eq!(
        [&turns[0].1, &turns[2].1],
        [
            "Compare\n[image `a` (image/png, 3 bytes) cannot be read by this model]\nwith\n\
             [image `b` (image/png, 3 bytes) cannot be read by this model]",
            "<observation>\ntaken\n</observation>\n\
             [image `c` (image/png, 3 bytes) cannot be read by this model]",
        ]
    );
}
