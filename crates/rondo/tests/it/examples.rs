//! Every example, run against a scripted server.

use rondo::{Endpoint, HttpModel, ModelCard};
use rondo_testkit::{
    CallScript, Gate, ReplyScript, Response, Script, Server, Step, gemini, openai, refused_url,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Includes examples as modules: their `main` is not called here.
macro_rules! examples {
    ($($name:ident: $path:literal,)*) => {$(
        #[path = $path]
        #[expect(dead_code, reason = "its arguments come from the test")]
        mod $name;
    )*};
}

examples! {
    approvals: "../../examples/approvals.rs",
    cancel_and_steer: "../../examples/cancel_and_steer.rs",
    conversation: "../../examples/conversation.rs",
    custom_tool: "../../examples/custom_tool.rs",
    durable: "../../examples/durable.rs",
    fallbacks: "../../examples/fallbacks.rs",
    files_and_commands: "../../examples/files_and_commands.rs",
    many_conversations: "../../examples/many_conversations.rs",
    quickstart: "../../examples/quickstart.rs",
    stream_events: "../../examples/stream_events.rs",
    structured_output: "../../examples/structured_output.rs",
    two_dialects: "../../examples/two_dialects.rs",
}

#[path = "../../examples/common/mod.rs"]
mod common;

fn model(server: &Server) -> HttpModel {
    at("openai-chat", server.url("/v1"))
}

fn at(dialect: &str, base_url: String) -> HttpModel {
    let endpoint = Endpoint::new("local", dialect, base_url);
    HttpModel::new(&endpoint, ModelCard::new("m")).unwrap()
}

fn says(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]).usage(10, 5))
}

fn calls(name: &str, arguments: &Value) -> Response {
    let reply = ReplyScript::calls([CallScript::new("c", name, arguments)]);
    openai::streamed(&reply.usage(10, 5))
}

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn every_example_is_run_here() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let this = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // A measuring program, which has a server of its own.
        let is_bench = name == "conversations.rs";
        assert!(
            is_bench || this.contains(&format!("examples/{name}")),
            "{name}"
        );
    }
}

#[test]
fn without_a_model_an_example_says_what_to_give() {
    let mut args = ["openai-chat".to_owned()].into_iter();
    let error = common::model_from_env(&mut args).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("openai-chat http://127.0.0.1:8080/v1 any")
    );
}

#[tokio::test]
async fn quickstart_prints_the_answer() {
    let server = Server::start([says("Light scatters.")]).await;
    let mut out = Vec::new();
    quickstart::run(model(&server), &mut out).await.unwrap();
    assert_eq!(text(out), "Light scatters.\n");
}

#[tokio::test]
async fn custom_tool_answers_from_the_programs_state() {
    let server = Server::start([
        calls("stock", &json!({"article": "lamps"})),
        calls("stock", &json!({"article": "lamp"})),
        says("Row 7, three left."),
    ])
    .await;
    let mut out = Vec::new();
    custom_tool::run(model(&server), &mut out).await.unwrap();
    assert_eq!(text(out), "Row 7, three left. (2 calls)\n");
    let messages = server.requests()[2].json()["messages"].to_string();
    assert!(
        messages.contains("there is no article `lamps`"),
        "{messages}"
    );
    assert!(messages.contains(r#"{\"row\":7,\"left\":3}"#), "{messages}");
}

#[tokio::test]
async fn stream_events_shows_a_turn_as_it_goes() {
    let server = Server::start([calls("temperature", &json!({})), says("21.5 °C.")]).await;
    let mut out = Vec::new();
    stream_events::run(model(&server), &mut out).await.unwrap();
    assert_eq!(
        text(out),
        "> temperature {}\n| warming up\n| measuring\n< 21.5 (ok: true)\n21.5 °C.\n\
         [complete, 2 steps, 30 tokens]\n"
    );
}

#[tokio::test]
async fn structured_output_prints_the_value_or_that_there_is_none() {
    let answer = json!({
        "title": "Lunch", "date": "2027-05-03", "place": null, "attendees": ["Ana", "Rui"],
    });
    let server = Server::start([says(&answer.to_string())]).await;
    let mut out = Vec::new();
    structured_output::run(model(&server), &mut out)
        .await
        .unwrap();
    assert_eq!(text(out), "2027-05-03: Lunch at somewhere, with Ana, Rui\n");

    let server = Server::start(Script::repeat(says("There is none."))).await;
    let mut out = Vec::new();
    structured_output::run(model(&server), &mut out)
        .await
        .unwrap();
    assert!(text(out).starts_with("no appointment after "));
}

#[tokio::test]
async fn approvals_ask_before_the_tool_runs() {
    let mail = json!({"to": "ana@example.org", "text": "One o'clock."});
    for (said, read) in [
        ("y\n", "sent 12 bytes to ana@example.org"),
        ("n\n", "the user said no"),
    ] {
        let server = Server::start([calls("send_mail", &mail), says("Done.")]).await;
        let mut out = Vec::new();
        approvals::run(model(&server), &mut said.as_bytes(), &mut out)
            .await
            .unwrap();
        let out = text(out);
        assert_eq!(
            out,
            "`send_mail` wants to run with\n  to: ana@example.org\n  text: One o'clock.\nRun it? y/n: \
             Done.\n"
        );
        let messages = server.requests()[1].json()["messages"].to_string();
        assert!(messages.contains(read), "{messages}");
    }
}

#[tokio::test]
async fn cancel_and_steer_changes_the_turn_and_keeps_it() {
    let gate = Gate::new();
    let server = Server::start([
        calls("read_page", &json!({"number": 1})),
        says("Página um.").before(Step::Gate(gate.clone())),
    ])
    .await;
    let mut out = Vec::new();
    let stop = async { gate.reached().await };
    cancel_and_steer::run(model(&server), stop, &mut out)
        .await
        .unwrap();
    assert_eq!(
        text(out),
        "you: In Portuguese, please.\n[cancelled, 4 messages kept]\n"
    );

    let server = Server::start([
        calls("read_page", &json!({"number": 1})),
        says("Página um."),
    ])
    .await;
    let mut out = Vec::new();
    cancel_and_steer::run(model(&server), std::future::pending(), &mut out)
        .await
        .unwrap();
    assert_eq!(
        text(out),
        "you: In Portuguese, please.\nPágina um.\n[complete, 5 messages kept]\n"
    );
}

#[tokio::test]
async fn conversation_goes_on_after_a_failure() {
    let refused = openai::error(400, "invalid_request_error", "too warm");
    let server = Server::start([says("Hello."), refused, says("Bye.")]).await;
    let mut out = Vec::new();
    conversation::run(model(&server), &b"hi\nwhat?\nbye\n"[..], &mut out)
        .await
        .unwrap();
    let out = text(out);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        (lines[0], lines[2], lines[3]),
        ("Hello.", "Bye.", "[5 messages]")
    );
    assert!(lines[1].contains("too warm"), "{out}");
}

#[tokio::test]
async fn durable_goes_on_when_it_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start([says("Hello, Ana."), says("Ana.")]).await;
    let mut out = Vec::new();
    for message in ["My name is Ana.", "What is my name?"] {
        durable::run(model(&server), dir.path(), ("diary", message), &mut out)
            .await
            .unwrap();
    }
    assert_eq!(text(out), "Hello, Ana.\nAna.\n");
    let messages = server.requests()[1].json()["messages"].to_string();
    assert!(messages.contains("My name is Ana."), "{messages}");
}

#[tokio::test]
async fn two_dialects_share_a_conversation() {
    let call = CallScript::without_id("roll", &json!({"sides": 6})).signed("c2ln");
    let first = Server::start([
        gemini::streamed(&ReplyScript::calls([call])),
        gemini::streamed(&ReplyScript::text(["A four."])),
    ])
    .await;
    let second = Server::start([says("Eight.")]).await;
    let mut out = Vec::new();
    let models = (at("gemini", first.url("")), model(&second));
    two_dialects::run(models.0, models.1, &mut out)
        .await
        .unwrap();
    assert_eq!(text(out), "A four.\nEight.\n");
    let body = second.requests()[0].json();
    rondo_testkit::assert_paired(&body);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "Twice that?");
    assert!(!body.to_string().contains("c2ln"));
}

#[tokio::test]
async fn many_conversations_share_an_agent() {
    let server = Server::start(Script::repeat(says("Because."))).await;
    let mut out = Vec::new();
    many_conversations::run(model(&server), &mut out)
        .await
        .unwrap();
    assert_eq!(text(out), "20 conversations, 600 tokens\n");
    assert_eq!(server.requests().len(), 40);
}

#[tokio::test]
async fn files_and_commands_write_what_the_rule_allows() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    let server = Server::start([
        calls("list_files", &json!({})),
        calls("write_file", &json!({"path": "other.md", "content": "x"})),
        calls("exec", &json!({"command": "rm -rf ."})),
        calls(
            "write_file",
            &json!({"path": "notes.md", "content": "a.txt\n"}),
        ),
        says("They are in notes.md."),
    ])
    .await;
    let mut out = Vec::new();
    let state = scratch.path().join("state");
    files_and_commands::run(model(&server), &folder, &state, &mut out)
        .await
        .unwrap();
    assert_eq!(text(out), "They are in notes.md.\n");
    let notes = std::fs::read_to_string(folder.join("notes.md")).unwrap();
    assert_eq!(notes, "a.txt\n");
    assert!(folder.join("a.txt").exists() && !folder.join("other.md").exists());
    let body = server.requests()[4].json().to_string();
    assert_eq!(body.matches("only notes.md may be written").count(), 2);
}

#[tokio::test]
async fn fallbacks_answer_where_the_first_model_is_gone() {
    let server = Server::start([says("Yes.")]).await;
    let mut out = Vec::new();
    let gone = at("openai-chat", refused_url().await);
    fallbacks::run(gone, model(&server), &mut out)
        .await
        .unwrap();
    assert_eq!(text(out), "m: Yes.\n");
}
