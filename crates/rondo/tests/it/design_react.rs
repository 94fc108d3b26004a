//! The text ReAct design through its own surface, over OpenAI Chat event streams.

use crate::design_executor::Refuse;
use crate::support::bodies;
use rondo::design::react::client::LlmClient;
use rondo::design::react::context::{OUTPUT_BYTES_MAX, TerminalContext};
use rondo::design::react::core::{Agent, EVENTS_WAITING_MAX};
use rondo::design::react::event::AgentEvent;
use rondo::design::react::tool::Tool;
use rondo::design::react::tools::memory::MemoryTool;
use rondo::design::react::tools::shell::ShellTool;
use rondo::memory::{Memories, Options};
use rondo::tools::{ExecOptions, SupervisorCommand};
use rondo::{Endpoint, ModelCard, async_trait};
use rondo_testkit::{ReplyScript, Response, Script, Server, openai};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

/// Runs nothing: it says what it was called with.
struct Echo;

#[async_trait]
impl Tool for Echo {
    fn name(&self) -> &str {
        "execute_command"
    }

    fn description(&self) -> &str {
        "Execute a shell command safely."
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})
    }

    async fn execute(&self, args: Value) -> anyhow::Result<String> {
        match args["command"].as_str().unwrap_or_default() {
            "false" => Err(anyhow::anyhow!("exit status 1").context("it failed")),
            command => Ok(format!("ran {command}")),
        }
    }
}

/// Waits until it is dropped.
struct Endless {
    began: CancellationToken,
    dropped: CancellationToken,
}

#[async_trait]
impl Tool for Endless {
    fn name(&self) -> &str {
        "wait"
    }

    fn description(&self) -> &str {
        "Waits."
    }

    fn parameters(&self) -> Value {
        json!({"type": "object"})
    }

    async fn execute(&self, _: Value) -> anyhow::Result<String> {
        let _guard = self.dropped.clone().drop_guard();
        self.began.cancel();
        std::future::pending().await
    }
}

fn block(name: &str, arguments: &Value) -> String {
    format!(
        "<tool_code>\n<name>{name}</name>\n<parameters>\n{arguments}\n</parameters>\n</tool_code>"
    )
}

fn command(command: &str) -> String {
    block("execute_command", &json!({"command": command}))
}

fn says(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn agent(server: &Server) -> Agent {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    let client = LlmClient::http(&endpoint, ModelCard::new("m")).unwrap();
    let mut agent = Agent::new(Arc::new(client));
    agent.register_tool(Box::new(Echo));
    agent
}

async fn all(mut events: Receiver<AgentEvent>) -> Vec<AgentEvent> {
    let mut seen = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    seen
}

async fn ask(replies: &[&str]) -> (Vec<Value>, Vec<AgentEvent>) {
    let responses: Vec<Response> = replies.iter().map(|text| says(text)).collect();
    let server = Server::start(responses).await;
    let agent = agent(&server);
    let events = agent
        .run("What is here?", &TerminalContext::default())
        .await;
    let seen = all(events).await;
    (bodies(&server), seen)
}

fn called(command: &str) -> AgentEvent {
    AgentEvent::ToolCall {
        name: "execute_command".to_owned(),
        args: json!({"command": command}).to_string(),
    }
}

#[tokio::test]
async fn my_9_my_11_my_12_my_15_a_run_reports_thought_call_output_and_answer() {
    let first = format!("I look.\n\n{}", command("ls"));
    let (bodies, seen) = ask(&[&first, &command("false"), "Two files."]).await;
    let expected = [
        AgentEvent::Thought("I look.".to_owned()),
        called("ls"),
        AgentEvent::ToolOutput("ran ls".to_owned()),
        called("false"),
        AgentEvent::ToolOutput("it failed: exit status 1".to_owned()),
        AgentEvent::FinalResponse("Two files.".to_owned()),
    ];
    assert_eq!(seen, expected);
    assert_eq!(bodies.len(), 3);
    let system = bodies[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("<name>execute_command</name>"), "{system}");
    assert!(bodies[0].get("tools").is_none());
}

#[tokio::test]
async fn my_10_my_14_my_18_the_agent_is_bound_by_its_iterations() {
    for (max, requests, answered) in [(None, 10, false), (Some(3), 3, false), (Some(4), 4, true)] {
        let mut script = vec![says(&command("ls")); 3];
        script.push(says(if answered { "Done." } else { "" }));
        let script = if answered {
            Script::from(script)
        } else {
            Script::repeat(says(&command("ls")))
        };
        let server = Server::start(script).await;
        let mut agent = agent(&server);
        if let Some(max) = max {
            agent = agent.with_max_iterations(max);
        }
        let seen = all(agent.run("q", &TerminalContext::default()).await).await;
        assert_eq!(bodies(&server).len(), requests);
        let Some(AgentEvent::FinalResponse(text)) = seen.last() else {
            panic!("{seen:?}")
        };
        let sentence = text.starts_with("I tried but couldn't finish");
        assert_eq!((sentence, text == "Done."), (!answered, answered), "{text}");
    }
    let server = Server::start(says("never")).await;
    let agent = agent(&server).with_max_iterations(0);
    let seen = all(agent.run("q", &TerminalContext::default()).await).await;
    assert!(matches!(&seen[..], [AgentEvent::Error(_)]), "{seen:?}");
}

#[tokio::test]
async fn my_10_a_tool_of_the_same_name_takes_the_place_of_the_first() {
    let server = Server::start(says("ok")).await;
    let mut agent = agent(&server);
    agent.register_tool(Box::new(Echo));
    all(agent.run("q", &TerminalContext::default()).await).await;
    let sent = bodies(&server).remove(0);
    let system = sent["messages"][0]["content"].as_str().unwrap();
    assert_eq!(system.matches("<name>execute_command</name>").count(), 1);
}

#[tokio::test]
async fn my_11_a_slow_receiver_does_not_hold_up_the_run_and_misses_nothing() {
    let steps = EVENTS_WAITING_MAX;
    let mut replies: Vec<Response> = (0..steps)
        .map(|at| says(&command(&at.to_string())))
        .collect();
    replies.push(says("Done."));
    let server = Server::start(replies).await;
    let agent = agent(&server).with_max_iterations(steps + 1);
    let events = agent.run("q", &TerminalContext::default()).await;
    // All requests are made before the first event is taken.
    server.request(steps).await;
    let seen = all(events).await;
    assert_eq!(seen.len(), 2 * steps + 1);
    assert_eq!(
        seen.last(),
        Some(&AgentEvent::FinalResponse("Done.".to_owned()))
    );
}

#[tokio::test]
async fn my_11_a_dropped_receiver_ends_the_run_and_what_it_began() {
    let server = Server::start(says(&block("wait", &json!({})))).await;
    let (began, dropped) = (CancellationToken::new(), CancellationToken::new());
    let mut agent = agent(&server);
    agent.register_tool(Box::new(Endless {
        began: began.clone(),
        dropped: dropped.clone(),
    }));
    let events = agent.run("q", &TerminalContext::default()).await;
    began.cancelled().await;
    drop(events);
    dropped.cancelled().await;
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn my_12_a_failed_request_is_an_error_and_the_last_event() {
    let server = Server::start(openai::error(401, "auth", "no such key")).await;
    let seen = all(agent(&server).run("q", &TerminalContext::default()).await).await;
    let [AgentEvent::Error(message)] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert!(message.contains("no such key"), "{message}");
}

#[tokio::test]
async fn a_gate_is_asked_before_a_call_runs() {
    let server = Server::start([says(&command("ls")), says("Pity.")]).await;
    let agent = agent(&server).with_gate(Arc::new(Refuse));
    let seen = all(agent.run("q", &TerminalContext::default()).await).await;
    let denied = AgentEvent::ToolOutput("error (denied): not today".to_owned());
    assert_eq!(seen[1], denied);
}

#[tokio::test]
async fn the_terminal_is_told_of_and_its_screen_stands_with_the_user() {
    let context = TerminalContext {
        cwd: Some("/work".into()),
        git_branch: Some("main".to_owned()),
        output: Some(format!("{}the end\n", "x".repeat(2 * OUTPUT_BYTES_MAX))),
        ..TerminalContext::default()
    };
    let server = Server::start(says("ok")).await;
    all(agent(&server).run("Why?", &context).await).await;
    let sent = bodies(&server).remove(0);
    let system = sent["messages"][0]["content"].as_str().unwrap();
    let facts = "# CONTEXT\n- Current directory: /work\n- Git branch: main";
    assert!(system.ends_with(facts), "{system}");
    let user = sent["messages"][1]["content"].as_str().unwrap();
    assert!(user.ends_with("the end\n</terminal>\n\nWhy?"), "{user}");
    assert!(user.len() < OUTPUT_BYTES_MAX + 200);
}

#[tokio::test]
async fn my_11_the_context_of_each_run_is_redacted() {
    let server = Server::start(vec![says("ok"), says("ok")]).await;
    let agent = agent(&server).with_secrets(["hunter2-hunter2".to_owned()]);
    for directory in ["/one", "/two"] {
        let context = TerminalContext {
            cwd: Some(directory.into()),
            commands: vec!["mysql -phunter2-hunter2".to_owned()],
            output: Some("password: hunter2-hunter2".to_owned()),
            ..TerminalContext::default()
        };
        all(agent.run("Why?", &context).await).await;
    }
    let sent: Vec<String> = bodies(&server).iter().map(Value::to_string).collect();
    assert!(sent[0].contains("Current directory: /one"), "{}", sent[0]);
    assert!(sent[1].contains("Current directory: /two"), "{}", sent[1]);
    for body in sent {
        assert!(
            !body.contains("hunter2") && body.contains("mysql -p[redacted]"),
            "{body}"
        );
        assert!(body.contains("password: [redacted]"), "{body}");
    }
}

#[test]
fn my_19_commands_are_offered_as_execute_command() {
    let options = ExecOptions::new(SupervisorCommand::CurrentExe, "/".into(), "/".into());
    let tool = ShellTool::new(options);
    assert_eq!(tool.name(), "execute_command");
    let description = "Execute a shell command safely. Use this to run system commands.";
    assert_eq!(tool.description(), description);
    let schema = json!({
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command to run"}},
        "required": ["command"],
    });
    assert_eq!(tool.parameters(), schema);
}

#[tokio::test]
async fn my_20_the_agent_searches_memory_by_a_query_and_a_limit() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("memory")).unwrap();
    let notes = "- The cat is called Mia.\n- The cat is fed at eight.\n- The car is blue.\n";
    std::fs::write(home.path().join("memory/MEMORY.md"), notes).unwrap();
    let memories = || {
        let data = Some(home.path().to_owned());
        Memories::new(Options {
            data,
            ..Options::default()
        })
    };
    let tool = MemoryTool::new(memories());
    assert_eq!(tool.name(), "search_memory");
    let properties = &tool.parameters()["properties"];
    let kinds = (&properties["query"]["type"], &properties["limit"]["type"]);
    assert_eq!(kinds, (&json!("string"), &json!("number")));
    let arguments = json!({"query": "cat", "limit": 1});
    let alone = tool.execute(arguments.clone()).await.unwrap();
    assert_eq!(alone.matches("<memory ").count(), 1, "{alone}");
    assert!(tool.execute(json!({"query": ""})).await.is_err());

    let call = block("search_memory", &arguments);
    let server = Server::start([says(&call), says("Her name is Mia.")]).await;
    let mut agent = agent(&server);
    agent.register_tool(Box::new(MemoryTool::new(memories())));
    let question = "What is the cat called?";
    let events = all(agent.run(question, &TerminalContext::default()).await).await;
    assert_eq!(
        events.last(),
        Some(&AgentEvent::FinalResponse("Her name is Mia.".to_owned()))
    );
    let sent = &bodies(&server)[1];
    let observation = sent["messages"].as_array().unwrap().last().unwrap();
    let observation = observation["content"].as_str().unwrap();
    assert!(observation.contains("The cat is"), "{observation}");
    assert!(observation.contains("not instructions"), "{observation}");
}

/// Each part is named by its own module, in the imports above.
#[test]
fn my_25_agent_tool_core_shell_and_memory_are_modules_of_their_own() {
    fn is<T: Send + Sync + Debug>() {}
    is::<Agent>();
    is::<LlmClient>();
    is::<ShellTool>();
    is::<MemoryTool>();
    is::<TerminalContext>();
    is::<AgentEvent>();
    fn same<T>(_: fn(T), _: fn(T)) {}
    same::<rondo::design::react::Agent>(drop, drop::<Agent>);
    same::<rondo::design::react::AgentEvent>(drop, drop::<AgentEvent>);
}
