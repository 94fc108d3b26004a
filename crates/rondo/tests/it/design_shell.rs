//! The shell's design through its own surface, over OpenAI Chat event streams.

use crate::support::{FnTool, bodies, endless, functions, tool};
use rondo::design::shell::{
    Agent, ChatMessage, ChatRole, ExecResult, FunctionCall, MessageError, ShellError, State,
    StreamEvent, StreamEventType, ToolCall, exec_tool_definition,
};
use rondo::tools::{ExecOptions, SupervisorCommand};
use rondo::{Endpoint, HttpModel, ModelCard, ToolOutcome};
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, openai};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn exec() -> FnTool {
    let definition = exec_tool_definition();
    tool("exec", definition["parameters"].clone(), |arguments| {
        let command = arguments["command"].as_str().unwrap_or_default();
        ToolOutcome::json(json!({"stdout": format!("ran {command}\n"), "exitCode": 0}))
    })
}

fn model(server: &Server) -> Arc<HttpModel> {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    Arc::new(HttpModel::new(&endpoint, ModelCard::new("m")).unwrap())
}

fn agent(server: &Server) -> Agent {
    Agent::new("default", model(server))
        .with_system_prompt("Be a shell.")
        .with_tool(exec())
}

fn answer(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn run(id: &str, command: &str) -> CallScript {
    CallScript::new(id, "exec", &json!({"command": command}))
}

fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    openai::streamed(&ReplyScript::calls(calls))
}

async fn send(state: &mut State, text: &str) -> (Result<String, ShellError>, Vec<StreamEvent>) {
    let mut events = Vec::new();
    let never = CancellationToken::new();
    let sent = state.send_message(&never, text, |event| events.push(event));
    let ended = sent.await;
    (ended, events)
}

fn call(id: &str, command: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        kind: "function".to_owned(),
        function: FunctionCall {
            name: "exec".to_owned(),
            arguments: json!({"command": command}).to_string(),
        },
    }
}

fn asks(calls: &[ToolCall]) -> ChatMessage {
    ChatMessage {
        tool_calls: calls.to_vec(),
        ..ChatMessage::assistant("")
    }
}

fn result(id: &str, command: &str) -> ChatMessage {
    let content = json!({"stdout": format!("ran {command}\n"), "exitCode": 0});
    ChatMessage {
        role: ChatRole::Tool,
        name: Some("exec".to_owned()),
        tool_call_id: Some(id.to_owned()),
        ..ChatMessage::user(content.to_string())
    }
}

#[test]
fn gs_1_gs_2_messages_have_openais_shape_both_ways() {
    let cases = [
        (
            json!({"role": "user", "content": "hi"}),
            ChatMessage::user("hi"),
        ),
        (
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_abc123", "type": "function", "function": {
                    "name": "exec",
                    "arguments": json!({"command": "ls -la"}).to_string(),
                }},
            ]}),
            asks(&[call("call_abc123", "ls -la")]),
        ),
        (
            json!({
                "role": "tool",
                "content": json!({"stdout": "ran ls\n", "exitCode": 0}).to_string(),
                "name": "exec",
                "tool_call_id": "call_abc123",
            }),
            result("call_abc123", "ls"),
        ),
        (
            json!({"role": "assistant", "content": ""}),
            ChatMessage::assistant(""),
        ),
    ];
    for (json, message) in cases {
        assert_eq!(serde_json::to_value(&message).unwrap(), json);
        assert_eq!(
            serde_json::from_value::<ChatMessage>(json).unwrap(),
            message
        );
    }
    let bare: ChatMessage = serde_json::from_str(r#"{"role":"system"}"#).unwrap();
    assert_eq!((bare.role, bare.content.as_str()), (ChatRole::System, ""));
}

#[tokio::test]
async fn gs_5_gs_7_gs_8_the_conversation_keeps_calls_and_one_message_a_result() {
    let server = Server::start([
        calls([run("a", "ls"), run("b", "pwd")]),
        answer("done"),
        answer("again"),
    ])
    .await;
    let mut state = State::new(agent(&server));
    assert_eq!(send(&mut state, "go").await.0.unwrap(), "done");
    let expected = [
        ChatMessage::user("go"),
        asks(&[call("a", "ls"), call("b", "pwd")]),
        result("a", "ls"),
        result("b", "pwd"),
        ChatMessage::assistant("done"),
    ];
    assert_eq!(state.messages(), expected);
    send(&mut state, "more").await.0.unwrap();

    // What was kept as messages continues as if it had never been away.
    let kept = serde_json::to_string(&state.messages()).unwrap();
    let server_of_kept = Server::start([calls([run("c", "id")]), answer("kept")]).await;
    let messages: Vec<ChatMessage> = serde_json::from_str(&kept).unwrap();
    let mut restored = State::from_messages(agent(&server_of_kept), messages.clone()).unwrap();
    assert_eq!(restored.messages(), messages);
    send(&mut restored, "on").await.0.unwrap();
    let sent = bodies(&server_of_kept);
    let said = sent[0]["messages"].as_array().unwrap();
    assert_eq!(
        said[..6],
        bodies(&server)[2]["messages"].as_array().unwrap()[..6]
    );
    assert_eq!(sent[1]["messages"].as_array().unwrap().len(), 11);
    assert_eq!(restored.messages().len(), 11);
}

#[tokio::test]
async fn gs_1_a_result_must_answer_a_call_and_a_call_without_one_gets_one() {
    let server = Server::start(answer("ok")).await;
    let stray = vec![ChatMessage::user("go"), result("x", "ls")];
    let error = State::from_messages(agent(&server), stray).unwrap_err();
    let id = "x".to_owned();
    assert_eq!(error, MessageError::Unasked { index: 1, id });
    // Nor may anything be between a call and its result: it would be lost.
    let late = vec![
        asks(&[call("a", "ls")]),
        ChatMessage::user("go"),
        result("a", "ls"),
    ];
    let error = State::from_messages(agent(&server), late).unwrap_err();
    let id = "a".to_owned();
    assert_eq!(error, MessageError::Unasked { index: 2, id });

    let cut = vec![
        ChatMessage::user("go"),
        asks(&[call("a", "ls"), call("b", "pwd")]),
        result("b", "pwd"),
    ];
    let mut state = State::from_messages(agent(&server), cut).unwrap();
    send(&mut state, "on").await.0.unwrap();
    let results: Vec<_> = state.messages()[2..4]
        .iter()
        .map(|message| message.tool_call_id.clone().unwrap())
        .collect();
    assert_eq!(results, ["a", "b"]);
    assert!(state.messages()[2].content.contains("in_doubt"));
}

#[tokio::test]
async fn gs_6_gs_18_text_and_calls_are_shown_as_they_come() {
    let first = ReplyScript::calls([run("a", "ls")]).saying("Looking.");
    let unknown = CallScript::new("b", "fly", &json!({}));
    let server = Server::start([
        openai::streamed(&first),
        calls([unknown]),
        openai::streamed(&ReplyScript::text(["Do", "ne."])),
    ])
    .await;
    let mut state = State::new(agent(&server));
    let (ended, events) = send(&mut state, "go").await;
    assert_eq!(ended.unwrap(), "Done.");
    let shown: Vec<Value> = events
        .iter()
        .map(|it| serde_json::to_value(it).unwrap())
        .collect();
    let content = |text: &str| json!({"Type": "content", "Content": text});
    let ls = json!({"Name": "exec", "Arguments": {"command": "ls"}});
    let mut ls_ended = ls.clone();
    ls_ended["Result"] = json!(json!({"stdout": "ran ls\n", "exitCode": 0}).to_string());
    let flown = json!({
        "Name": "fly",
        "Arguments": {},
        "Result": "error (unknown_tool): there is no tool `fly`; the tools are: exec",
    });
    let expected = [
        content("Looking."),
        json!({"Type": "tool_start", "Tool": ls}),
        json!({"Type": "tool_end", "Tool": ls_ended}),
        json!({"Type": "tool_end", "Tool": flown}),
        content("Do"),
        content("ne."),
    ];
    assert_eq!(shown, expected);
    for (json, event) in shown.into_iter().zip(events) {
        assert_eq!(serde_json::from_value::<StreamEvent>(json).unwrap(), event);
    }
}

#[tokio::test]
async fn gs_4_the_limit_is_an_error_and_the_conversation_keeps_everything() {
    let server = Server::start(Script::repeat(calls([run("c", "ls")]))).await;
    let mut state = State::new(agent(&server));
    let (ended, events) = send(&mut state, "go").await;
    let Err(ShellError::MaxIterations { max: 10, text }) = ended else {
        panic!("{ended:?}")
    };
    assert!(text.contains("ran ls"), "{text}");
    assert_eq!(bodies(&server).len(), 10);
    assert_eq!(state.messages().len(), 21);
    let ends = events
        .iter()
        .filter(|it| it.kind == StreamEventType::ToolEnd);
    assert_eq!(ends.count(), 10);

    for (max, iterations) in [(1, 1), (3, 3), (11, 11)] {
        let server = Server::start(Script::repeat(calls([run("c", "ls")]))).await;
        let mut state = State::new(agent(&server).with_max_iterations(max));
        let (ended, _) = send(&mut state, "go").await;
        let Err(ShellError::MaxIterations { max: told, .. }) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!((told, bodies(&server).len()), (max, iterations));
    }
    let server = Server::start([calls([run("c", "ls")]), answer("ok")]).await;
    let mut state = State::new(agent(&server).with_max_iterations(2));
    assert_eq!(send(&mut state, "go").await.0.unwrap(), "ok");

    let server = Server::start(answer("never")).await;
    let mut state = State::new(agent(&server).with_max_iterations(0));
    let Err(ShellError::Config(message)) = send(&mut state, "go").await.0 else {
        panic!("there is no loop without a request")
    };
    assert!(message.contains("`max_iterations`"), "{message}");
    assert!(bodies(&server).is_empty());
}

#[tokio::test]
async fn gs_6_a_cancelled_or_failed_message_keeps_what_was_done() {
    let dig = CallScript::new("b", "dig", &json!({}));
    let server = Server::start([calls([run("a", "ls"), dig]), answer("on")]).await;
    let mut state = State::new(agent(&server).with_tool(endless("dig")));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let sent = state.send_message(&cancel, "go", move |event| {
        let tool = event.tool.map(|tool| tool.name);
        if event.kind == StreamEventType::ToolStart && tool.as_deref() == Some("dig") {
            stop.cancel();
        }
    });
    assert_eq!(sent.await, Err(ShellError::Cancelled));
    assert_eq!(state.messages()[2], result("a", "ls"));
    assert_eq!(state.messages()[3].tool_call_id.as_deref(), Some("b"));
    assert_eq!(send(&mut state, "again").await.0.unwrap(), "on");

    let failed = openai::error(401, "auth", "no such key");
    let server = Server::start([calls([run("a", "ls")]), failed]).await;
    let mut state = State::new(agent(&server));
    let Err(ShellError::Provider(message)) = send(&mut state, "go").await.0 else {
        panic!("it failed")
    };
    assert!(message.contains("no such key"), "{message}");
    assert_eq!(state.messages()[2], result("a", "ls"));
}

fn gsh(server: &Server) -> Agent {
    let supervisor = SupervisorCommand::CurrentExe;
    let options = ExecOptions::new(supervisor, "/".into(), "/".into());
    Agent::gsh(model(server), options).unwrap()
}

#[tokio::test]
async fn gs_14_gs_16_gs_17_the_default_agent_has_its_prompt_and_exec() {
    let server = Server::start(answer("ok")).await;
    let agent = gsh(&server);
    assert_eq!(agent.name(), "default");
    let prompt = "You are gsh, an AI-powered shell. You can execute commands using the exec tool.";
    assert_eq!(agent.system_prompt(), Some(prompt));
    let mut state = State::new(agent);
    let definition = exec_tool_definition();
    let tools = state.tools();
    assert_eq!(tools.len(), 1);
    assert_eq!(definition["name"], tools[0].name);
    assert_eq!(definition["description"], tools[0].description);
    assert_eq!(definition["parameters"], tools[0].parameters);
    send(&mut state, "hi").await.0.unwrap();
    let sent = bodies(&server).remove(0);
    let offered = json!([{"type": "function", "function": definition}]);
    assert_eq!(sent["tools"], offered);
    assert_eq!(
        sent["messages"][0],
        json!({"role": "system", "content": prompt})
    );
    assert_eq!(sent["tools"], functions(&tools));
}

#[test]
fn gs_14_the_definition_is_the_designs_word_for_word() {
    let design = json!({
        "name": "exec",
        "description": "Execute a shell command and return the output. Use this to run commands, scripts, or interact with the system.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The shell command to execute" }
            },
            "required": ["command"]
        }
    });
    assert_eq!(exec_tool_definition(), design);
}

#[tokio::test]
async fn gs_15_a_missing_command_and_a_failed_start_are_told_to_the_model() {
    let missing = CallScript::new("a", "exec", &json!({}));
    let server = Server::start([calls([missing, run("b", "ls")]), answer("ok")]).await;
    // This program is not a supervisor, so nothing can be started.
    let mut state = State::new(gsh(&server));
    send(&mut state, "go").await.0.unwrap();
    let told: Vec<String> = state.messages()[2..4]
        .iter()
        .map(|it| it.content.clone())
        .collect();
    assert!(told[0].contains("command"), "{told:?}");
    assert!(told[1].contains("Error executing command: "), "{told:?}");
}

#[test]
fn gs_12_a_result_has_output_empty_errors_and_the_exit_code() {
    let result = ExecResult {
        stdout: "a\n".to_owned(),
        stderr: String::new(),
        exit_code: 3,
    };
    let json = json!({"Stdout": "a\n", "Stderr": "", "ExitCode": 3});
    assert_eq!(serde_json::to_value(&result).unwrap(), json);
    assert_eq!(serde_json::from_value::<ExecResult>(json).unwrap(), result);
}

#[test]
fn the_types_go_to_other_threads() {
    fn copies<T: Send + Sync + Debug + Clone>() {}
    copies::<Agent>();
    copies::<State>();
    copies::<ChatMessage>();
    copies::<StreamEvent>();
    copies::<ExecResult>();
    copies::<ShellError>();
}
