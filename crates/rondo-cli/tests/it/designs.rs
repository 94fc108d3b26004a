//! Commands of the designs for real, with this program as their supervisor.

use rondo::design::react::tools::shell::ShellTool;
use rondo::design::react::{self, AgentEvent, LlmClient, TerminalContext, Tool as _};
use rondo::design::shell::{
    Agent, ExecResult, ShellError, State, StreamEventType, execute_command,
};
use rondo::tools::{ExecOptions, SupervisorCommand};
use rondo::{CancellationToken, Endpoint, HttpModel, ModelCard, OutputSink};
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

fn options(directory: &TempDir) -> ExecOptions {
    let program = SupervisorCommand::Path(env!("CARGO_BIN_EXE_rondo").into());
    let path = directory.path().canonicalize().unwrap();
    ExecOptions::new(program, path.clone(), path)
}

#[tokio::test]
async fn my_19_an_agent_runs_commands_through_execute_command() {
    let call = "<tool_code>\n<name>execute_command</name>\n<parameters>\n\
                {\"command\": \"echo here; exit 3\"}\n</parameters>\n</tool_code>";
    let replies = [call, "It failed."].map(|text| openai::streamed(&ReplyScript::text([text])));
    let server = Server::start(replies).await;
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    let client = LlmClient::http(&endpoint, ModelCard::new("m")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut agent = react::Agent::new(Arc::new(client));
    agent.register_tool(Box::new(ShellTool::new(options(&directory))));

    let mut events = agent.run("Try it.", &TerminalContext::default()).await;
    let mut seen = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    let [
        AgentEvent::ToolCall { name, .. },
        AgentEvent::ToolOutput(output),
        last,
    ] = &seen[..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!(name, "execute_command");
    assert_eq!(output.replace('\r', ""), "here\nexit code: 3");
    let sent = server.requests()[1].json();
    let observed = sent["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let observed = observed.as_str().unwrap().replace('\r', "");
    let inner = "\n<observation>\nhere\nexit code: 3\n</observation>\n";
    assert!(observed.contains(inner), "{observed}");
    assert_eq!(*last, AgentEvent::FinalResponse("It failed.".to_owned()));
}

#[tokio::test]
async fn my_19_the_tool_runs_a_command_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let tool = ShellTool::new(options(&directory));
    let output = tool.execute(json!({"command": "echo here"})).await.unwrap();
    assert_eq!(output.trim_end(), "here");
    // A shell says it so of a command that a signal ended.
    let output = tool.execute(json!({"command": "kill -9 $$"})).await;
    assert!(output.unwrap().ends_with("\nexit code: 137"));
    let error = tool.execute(json!({})).await.unwrap_err();
    assert!(error.to_string().contains("'command'"), "{error}");
}

#[tokio::test]
async fn gs_10_gs_11_gs_12_gs_13_a_command_is_shown_live_captured_and_ends_with_a_code() {
    let directory = tempfile::tempdir().unwrap();
    let live = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&live);
    let sink = OutputSink::new(move |text| shown.lock().unwrap().push_str(&text));
    let never = CancellationToken::new();
    let command = "test -t 1 && echo on a terminal; exit 3";
    let result = execute_command(&never, command, options(&directory), sink).await;
    let result = result.unwrap();
    assert!(live.lock().unwrap().contains(result.stdout.trim_end()));
    let expected = ExecResult {
        stdout: "on a terminal".to_owned(),
        stderr: String::new(),
        exit_code: 3,
    };
    let stdout = result.stdout.trim_end().to_owned();
    assert_eq!(ExecResult { stdout, ..result }, expected);

    let mut broken = options(&directory);
    broken.supervisor = SupervisorCommand::Path("/nowhere/rondo".into());
    let result = execute_command(&never, "true", broken, OutputSink::discard()).await;
    let Err(ShellError::Exec(message)) = result else {
        panic!("{result:?}")
    };
    assert!(
        message.starts_with("Error executing command: "),
        "{message}"
    );
}

#[tokio::test]
async fn gs_11_the_librarys_agent_shows_output_live_and_gives_it_to_the_model() {
    let call = json!({"command": "test -t 1 && printf 'first\\n' && printf second"});
    let replies = [
        ReplyScript::calls([CallScript::new("a", "exec", &call)]),
        ReplyScript::text(["Both."]),
    ];
    let server = Server::start(replies.map(|it| openai::streamed(&it))).await;
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let live = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&live);
    let agent = Agent::gsh(Arc::new(model), options(&directory))
        .unwrap()
        .with_output(OutputSink::new(move |text| {
            shown.lock().unwrap().push_str(&text);
        }));
    let (mut state, never) = (State::new(agent), CancellationToken::new());
    let (mut before_end, seen) = (None, Arc::clone(&live));
    let answer = state.send_message(&never, "go", |event| {
        if event.kind == StreamEventType::ToolEnd {
            before_end = Some(seen.lock().unwrap().clone());
        }
    });
    assert_eq!(answer.await.unwrap(), "Both.");
    let before_end = before_end.unwrap().replace('\r', "");
    assert_eq!(before_end, "first\nsecond");
    let told: Value = serde_json::from_str(&state.messages()[2].content).unwrap();
    assert_eq!(told, json!({"stdout": "first\nsecond", "exitCode": 0}));
}

#[tokio::test]
async fn gs_11_a_cancelled_command_ends() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    // The command says that it runs before it is cancelled.
    let sink = OutputSink::new(move |_| stop.cancel());
    let run = execute_command(
        &cancel,
        "echo on; exec sleep 600",
        options(&directory),
        sink,
    );
    assert!(matches!(run.await, Err(ShellError::Exec(_))));
}
