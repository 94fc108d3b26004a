//! The gateway's design through its own surface: queues in, OpenAI Chat over a real socket, queues out.

use crate::hub::{answer, call, calls};
use crate::support::{FnTool, bodies, echo};
use async_trait::async_trait;
use rondo::design::hub::{
    AgentError, AgentLoop, CHAT_MESSAGES_MAX, ChatHub, ContextBuilder, InboundMessage, LlmMessage,
    LlmProvider, LlmResponse, LlmRole, LlmToolCall, MAX_ITERATIONS, ModelProvider, OutboundMessage,
    ProviderError, SessionManager, SevenLayers, ToolDefinition, ToolRegistry,
};
use rondo::types::ErrorClass;
use rondo::{CancellationToken, Endpoint, HttpModel, ModelCard, Tool, ToolErrorCode, ToolOutcome};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn provider(server: &Server) -> Arc<ModelProvider> {
    let mut endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    endpoint.streaming = false;
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    Arc::new(ModelProvider::new(Arc::new(model)))
}

fn agent(server: &Server) -> AgentLoop {
    let tools = ToolRegistry::new().with(echo("look"));
    AgentLoop::new(Arc::new(ChatHub::new()), provider(server)).with_tools(tools)
}

fn message(content: &str) -> InboundMessage {
    InboundMessage::new("telegram", "7", content)
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn called(ids: &[&str]) -> Value {
    let calls = ids.iter().map(
        |id| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}),
    );
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "look did {}"})
}

/// A provider of the design that is not a model of ours: it repeats what it is told.
struct Scripted(Arc<tokio::sync::Mutex<Vec<LlmResponse>>>);

#[async_trait]
impl LlmProvider for Scripted {
    async fn chat(
        &self,
        messages: &[LlmMessage],
        tools: &[ToolDefinition],
        model: &str,
    ) -> Result<LlmResponse, ProviderError> {
        let mut script = self.0.lock().await;
        if !script.is_empty() {
            return Ok(script.remove(0));
        }
        let last = messages.last().unwrap();
        let text = format!(
            "{model} with {} tools read {:?}: {}",
            tools.len(),
            last.role,
            last.content
        );
        Ok(LlmResponse::text(text))
    }

    fn default_model(&self) -> &str {
        "own"
    }
}

#[tokio::test]
async fn hub_20_hub_23_the_loop_takes_queues_a_provider_and_the_model_that_is_asked() {
    let look = LlmToolCall {
        id: "a".to_owned(),
        name: "look".to_owned(),
        arguments: json!({"at": 1}),
    };
    let asks = LlmResponse {
        tool_calls: vec![look],
        ..LlmResponse::text("Looking.")
    };
    let script = Arc::new(tokio::sync::Mutex::new(vec![asks]));
    let hub = Arc::new(ChatHub::new());
    let tools = Arc::new(ToolRegistry::new().with(echo("look")));
    let own = AgentLoop::new(Arc::clone(&hub), Arc::new(Scripted(script))).with_tools(tools);
    let reply = own.process_message(&message("hi")).await.unwrap();
    assert_eq!(
        reply.content,
        "own with 1 tools read Tool: look did {\"at\":1}"
    );
    let server = Server::start([answer("hello"), answer("hello")]).await;
    assert_eq!(provider(&server).default_model(), "m");
    for (agent, model) in [
        (AgentLoop::new(Arc::clone(&hub), provider(&server)), "m"),
        (AgentLoop::with_model(hub, provider(&server), "big"), "big"),
    ] {
        agent.process_message(&message("hi")).await.unwrap();
        assert_eq!(bodies(&server).pop().unwrap()["model"], model);
    }
    let replies = provider(&server).chat(&[], &[], "m").await;
    assert!(replies.is_err_and(|error| !error.message.is_empty()));
}

#[test]
fn hub_21_hub_22_messages_serialise_and_answers_reply() {
    let json = json!({"channel": "telegram", "chat_id": "7", "content": "hi", "metadata": {"message_id": "42"}});
    let inbound: InboundMessage = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&inbound).unwrap(), json);
    let outbound = inbound.reply("hello");
    let expected = OutboundMessage {
        channel: "telegram".to_owned(),
        chat_id: "7".to_owned(),
        content: "hello".to_owned(),
        reply_to: Some("42".to_owned()),
    };
    assert_eq!(outbound, expected);
    assert_eq!(message("hi").reply("x").reply_to, None);
}

#[test]
fn long_answers_go_out_in_pieces_cut_at_lines() {
    let of = |text: &str, max| {
        let mut inbound = message("hi");
        inbound
            .metadata
            .insert("message_id".to_owned(), json!("42"));
        let pieces = inbound.reply(text).split(max);
        let pieces = pieces
            .into_iter()
            .map(|it| (it.content, it.reply_to.is_some()));
        pieces.collect::<Vec<_>>()
    };
    let piece = |text: &str, replies| (text.to_owned(), replies);
    assert_eq!(of("äbc", 3), [piece("äbc", true)]);
    assert_eq!(of("äbcd", 3), [piece("äbc", true), piece("d", false)]);
    assert_eq!(of("a\nbcd", 4), [piece("a", true), piece("bcd", false)]);
    assert_eq!(of(" \n", 4), []);
}

#[tokio::test]
async fn hub_24_each_named_function_works_by_itself() {
    let server = Server::start([
        openai::error(503, "server_error", "busy"),
        calls([call("a", "look")]),
        answer("done"),
    ])
    .await;
    let agent = agent(&server);
    let sessions = agent.session_manager();
    assert_eq!(sessions.get("telegram_7").unwrap(), None);
    let inbound = message("hi");

    agent.process_message(&message(" ")).await.unwrap_err();
    let context = async || {
        let session = sessions.get("telegram_7").unwrap();
        let builder = SevenLayers::new();
        match session {
            Some(session) => builder.build(&session, &inbound).await.unwrap(),
            None => panic!("there is no session"),
        }
    };
    let empty = json!({
        "session_id": "telegram_7", "channel": "telegram", "chat_id": "7",
        "created_at_ms": 1, "last_accessed_ms": 1, "messages": [],
    });
    agent
        .save_session(serde_json::from_value(empty).unwrap())
        .await
        .unwrap();
    tokio::time::pause();
    let response = agent.call_llm_with_retry(context().await).await.unwrap();
    tokio::time::resume();
    assert_eq!(response.content, "");
    let look = LlmToolCall {
        id: "a".to_owned(),
        name: "look".to_owned(),
        arguments: json!({}),
    };
    assert_eq!(response.tool_calls, std::slice::from_ref(&look));
    assert_eq!(server.requests().len(), 2);

    let unknown = LlmToolCall {
        name: "fly".to_owned(),
        ..look.clone()
    };
    let results = agent.execute_tools(&[look.clone(), unknown]).await;
    let read: Vec<_> = results
        .iter()
        .map(|it| (it.role, it.tool_call_id.as_deref()))
        .collect();
    assert_eq!(read, [(LlmRole::Tool, Some("a")); 2]);
    assert_eq!(results[0].content, "look did {}");
    assert!(results[1].content.contains("fly"), "{results:?}");
    assert_eq!(agent.execute_single_tool(&look).await, results[0]);
    assert_eq!(agent.execute_tools(&[]).await, []);

    let end = agent
        .run_agent_loop(&inbound, context().await)
        .await
        .unwrap();
    assert_eq!((end.text.as_str(), end.iterations), ("done", 1));
    assert!(end.error.is_none());
    assert_eq!(end.messages().len(), 2);
}

fn workspace() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("SOUL.md", "1 soul");
    put("AGENTS.md", "1 agents");
    put("BOOTSTRAP.md", "2 bootstrap");
    put("USER.md", "2 user");
    put("MEMORY.md", "- 3 memory");
    put(
        "skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: 4 skill\n---\n",
    );
    put(
        "skills/.off/SKILL.md",
        "---\nname: off\ndescription: switched off\n---\n",
    );
    put("TOOLS.md", "5 tools");
    dir
}

#[tokio::test]
async fn hub_2_hub_25_the_model_reads_seven_layers_in_order_and_the_message_once() {
    let dir = workspace();
    let server = Server::start([answer("6 answer"), answer("again")]).await;
    let builder = SevenLayers::in_workspace(dir.path()).with_owner_session("telegram_7");
    let agent = agent(&server).with_context_builder(builder);
    agent.process_message(&message("6 question")).await.unwrap();
    agent.process_message(&message("7 current")).await.unwrap();
    let sent = bodies(&server).remove(1)["messages"].clone();
    let all = sent.as_array().unwrap();
    let text: String = all
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    let layers = [
        "1 soul",
        "1 agents",
        "2 bootstrap",
        "2 user",
        "3 memory",
        "4 skill",
        "5 tools",
        "6 question",
        "6 answer",
        "7 current",
    ];
    let places = layers.map(|layer| {
        text.find(layer)
            .unwrap_or_else(|| panic!("{layer} in {text}"))
    });
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.matches("7 current").count(), 1);
    assert!(!text.contains("switched off"));
    assert_eq!(sent[0]["role"], "system");
    assert_eq!(
        all[1..],
        [
            said("user", "6 question"),
            said("assistant", "6 answer"),
            said("user", "7 current")
        ]
    );
}

#[tokio::test]
async fn memory_and_user_files_are_shown_in_the_owners_chat_alone() {
    let dir = workspace();
    let server = Server::start(Script::repeat(answer("hello"))).await;
    let builder = SevenLayers::in_workspace(dir.path()).with_owner_session("telegram_7");
    let agent = agent(&server).with_context_builder(builder);
    for chat in ["7", "-100"] {
        let inbound = InboundMessage::new("telegram", chat, "hi");
        agent.process_message(&inbound).await.unwrap();
    }
    let systems = bodies(&server)
        .into_iter()
        .map(|it| it["messages"][0]["content"].to_string());
    let shown: Vec<bool> = systems
        .map(|it| it.contains("3 memory") && it.contains("2 user"))
        .collect();
    assert_eq!(shown, [true, false]);
    assert!(!bodies(&server)[1].to_string().contains("memory"));
}

#[tokio::test]
async fn hub_26_near_the_limit_the_oldest_history_goes_and_the_message_stays() {
    let dir = workspace();
    let server = Server::start(Script::repeat(answer("short"))).await;
    let builder = SevenLayers::in_workspace(dir.path()).with_token_limit(1_000);
    let agent = agent(&server).with_context_builder(builder);
    let long = |name: &str| format!("{name} {}", "x".repeat(1_600));
    for name in ["one", "two", "three"] {
        agent.process_message(&message(&long(name))).await.unwrap();
    }
    let sent = bodies(&server).remove(2)["messages"].to_string();
    assert!(!sent.contains("one x"), "the oldest is left out");
    assert!(sent.contains("two x") && sent.contains("three x"));
    assert!(sent.contains("1 soul") && sent.contains("2 bootstrap") && sent.contains("5 tools"));
    let kept = agent.session_manager().get("telegram_7").unwrap().unwrap();
    assert_eq!(kept.messages().last().unwrap().content, "short");
}

#[test]
fn hub_27_a_session_is_named_by_channel_and_chat_and_no_two_are_alike() {
    let id = |channel: &str, chat: &str| InboundMessage::new(channel, chat, "").session_id();
    assert_eq!(id("telegram", "7"), "telegram_7");
    let pairs = [
        ("gw_a", "b"),
        ("gw", "a_b"),
        ("gw_a.b", "c"),
        ("gw_a", "b.c"),
        ("gw_a_b", "c"),
        ("a", "%5F"),
        ("a", "_"),
        ("a%5F", ""),
        ("a_", ""),
        ("ä", "/"),
        ("", "../x"),
        ("a", "B"),
        ("a", "b"),
    ];
    let ids: std::collections::BTreeSet<String> = pairs.iter().map(|(a, b)| id(a, b)).collect();
    assert_eq!(ids.len(), pairs.len(), "{ids:?}");
    assert!(ids.iter().all(|it| !it.contains('/')));
}

#[tokio::test]
async fn hub_28_hub_29_hub_t_a_session_keeps_fifty_messages_in_whole_groups_across_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("sessions");
    let mut script = Vec::new();
    for _ in 0..20 {
        script.extend([calls([call("a", "look")]), answer("done")]);
    }
    let server = Server::start(script).await;
    // Each loop stands for a process that ends after one message.
    for turn in 0..20 {
        let sessions = SessionManager::in_directory(&files);
        let agent = agent(&server).with_session_manager(sessions);
        agent
            .process_message(&message(&format!("{turn}")))
            .await
            .unwrap();
        let kept = SessionManager::in_directory(&files).get("telegram_7");
        let kept = kept.unwrap().unwrap().messages();
        let expected = 4 * (turn + 1).min(12);
        assert_eq!(kept.len(), expected);
        assert_eq!(kept[0].role, LlmRole::User);
        assert_eq!(
            (kept[1].tool_calls.len(), kept[2].tool_call_id.as_deref()),
            (1, Some("a"))
        );
    }
    let sent = bodies(&server).pop().unwrap()["messages"].clone();
    let all = sent.as_array().unwrap();
    // What was kept, the message, its call and the result.
    assert_eq!(all.len(), 48 + 3);
    assert_eq!(all[..3], [said("user", "7"), called(&["a"]), result("a")]);
    let names: Vec<_> = std::fs::read_dir(&files)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(names, ["telegram_7.json"]);
}

#[tokio::test]
async fn a_damaged_session_is_set_aside_and_the_chat_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("telegram_7.json");
    std::fs::write(&file, "{\"session_id\": ").unwrap();
    let server = Server::start([answer("hello")]).await;
    let agent = agent(&server).with_session_manager(SessionManager::in_directory(dir.path()));
    assert_eq!(
        agent.process_message(&message("hi")).await.unwrap().content,
        "hello"
    );
    let aside = dir.path().join("telegram_7.json.corrupted");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{\"session_id\": ");
    assert!(file.exists());
}

#[tokio::test]
async fn hub_17_hub_30_hub_31_chats_are_answered_side_by_side_and_a_shutdown_is_heard() {
    let gate = Gate::new();
    let slow = answer("slow").before(Step::Gate(gate.clone()));
    let server = Server::start([slow, answer("quick"), answer("after")]).await;
    let agent = agent(&server);
    let hub = Arc::clone(agent.chat_hub());
    let shutdown = CancellationToken::new();
    let user = async {
        hub.receive(InboundMessage::new("telegram", "slow", "hi"))
            .await;
        server.request(0).await;
        // A second message of the chat waits for the first; another chat does not.
        hub.receive(InboundMessage::new("telegram", "slow", "more"))
            .await;
        hub.receive(InboundMessage::new("telegram", "quick", "hi"))
            .await;
        let first = hub.next_outbound().await.unwrap();
        assert_eq!(
            (first.chat_id.as_str(), first.content.as_str()),
            ("quick", "quick")
        );
        // The sessions can be looked at while the model works.
        assert_eq!(agent.session_manager().get("telegram_slow").unwrap(), None);
        gate.open();
        for text in ["slow", "after"] {
            assert_eq!(hub.next_outbound().await.unwrap().content, text);
        }
        shutdown.cancel();
    };
    tokio::join!(agent.run(&shutdown), user);
    let sent = bodies(&server)[2]["messages"].clone();
    assert_eq!(
        sent,
        json!([
            said("user", "hi"),
            said("assistant", "slow"),
            said("user", "more")
        ])
    );
}

#[tokio::test]
async fn a_shutdown_stops_what_takes_too_long_and_every_message_gets_an_answer() {
    let server = Server::start(rondo_testkit::faults::zero_byte_stall()).await;
    let agent = agent(&server);
    let hub = Arc::clone(agent.chat_hub());
    let shutdown = CancellationToken::new();
    let user = async {
        hub.receive(message("hi")).await;
        server.request(0).await;
        for _ in 0..=CHAT_MESSAGES_MAX {
            hub.receive(message("more")).await;
        }
        let refused = hub.next_outbound().await.unwrap().content;
        assert!(refused.contains("too many"), "{refused}");
        tokio::time::pause();
        shutdown.cancel();
        let mut told = Vec::new();
        for _ in 0..=CHAT_MESSAGES_MAX {
            told.push(hub.next_outbound().await.unwrap().content);
        }
        assert!(
            told[..CHAT_MESSAGES_MAX]
                .iter()
                .all(|it| it.contains("shutting down")),
            "{told:?}"
        );
        assert!(told[CHAT_MESSAGES_MAX].contains("stopped"), "{told:?}");
    };
    tokio::join!(agent.run(&shutdown), user);
    let kept = agent.session_manager().get("telegram_7").unwrap().unwrap();
    assert_eq!(kept.messages()[0].content, "hi");
}

#[tokio::test]
async fn hub_7_hub_t_at_the_limit_the_chat_gets_the_notice_and_the_session_is_kept() {
    assert_eq!(MAX_ITERATIONS, 200);
    for (max, is_met) in [(1, true), (2, true), (3, false)] {
        let look = || calls([call("a", "look")]);
        let server = Server::start([look(), look(), answer("done")]).await;
        let agent = agent(&server).with_max_iterations(max);
        let reply = agent.process_message(&message("go")).await.unwrap().content;
        let kept = agent.session_manager().get("telegram_7").unwrap().unwrap();
        if is_met {
            assert!(
                reply.starts_with("Max iterations reached\n\nPartial results:\n"),
                "{reply}"
            );
            assert!(reply.contains("look did {}"));
            assert_eq!(kept.messages().len(), 1 + 2 * usize::try_from(max).unwrap());
        } else {
            assert_eq!(reply, "done");
        }
    }
    let server = Server::start([answer("x")]).await;
    let error = agent(&server)
        .with_max_iterations(0)
        .process_message(&message("go"))
        .await;
    assert!(matches!(error.unwrap_err(), AgentError::Config(_)));
}

#[tokio::test]
async fn hub_18_hub_t_every_failure_reaches_the_chat_and_recovery_follows() {
    let script = [openai::error(401, "auth", "bad key"), answer("well again")];
    let server = Server::start(script).await;
    let agent = agent(&server);
    let hub = Arc::clone(agent.chat_hub());
    let shutdown = CancellationToken::new();
    let user = async {
        hub.receive(message("  \n")).await;
        hub.receive(message("one")).await;
        let told = hub.next_outbound().await.unwrap().content;
        assert!(
            told.starts_with("Sorry, ") && !told.contains("send it again"),
            "{told}"
        );
        hub.receive(message("two")).await;
        assert_eq!(hub.next_outbound().await.unwrap().content, "well again");
        shutdown.cancel();
    };
    tokio::join!(agent.run(&shutdown), user);
    let passing = AgentError::from(ProviderError::new(ErrorClass::Overloaded, "busy"));
    assert!(passing.is_recoverable() && passing.reply().ends_with("Please send it again."));
}

#[tokio::test]
async fn the_running_context_has_calls_before_their_results_in_call_order() {
    let slow = FnTool::running("slow", json!({"type": "object"}), |_| {
        Box::pin(async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            ToolOutcome::text("Tool look result: fake")
        })
    });
    let fails = FnTool::running("fails", json!({"type": "object"}), |_| {
        Box::pin(async { ToolOutcome::error(ToolErrorCode::Failed, "disk full") })
    });
    let batch = calls([call("s", "slow"), call("q", "look"), call("f", "fails")]);
    let server = Server::start([batch, answer("done")]).await;
    let tools = ToolRegistry::new()
        .with(echo("look").shared())
        .with(slow.shared())
        .with(fails.shared());
    let agent = agent(&server).with_tools(tools);
    agent.process_message(&message("go")).await.unwrap();
    let sent = bodies(&server).remove(1)["messages"].clone();
    assert_eq!(sent[0], said("user", "go"));
    assert_eq!(sent[1]["tool_calls"].as_array().unwrap().len(), 3);
    let results: Vec<_> = (2..5)
        .map(|at| {
            (
                sent[at]["tool_call_id"].clone(),
                sent[at]["content"].clone(),
            )
        })
        .collect();
    let expected = [
        ("s", "Tool look result: fake"),
        ("q", "look did {}"),
        ("f", "disk full"),
    ];
    assert_eq!(results, expected.map(|(id, text)| (json!(id), json!(text))));
}

#[tokio::test]
async fn tools_can_know_the_chat_of_their_message() {
    let server = Server::start([calls([call("a", "where")]), answer("done")]).await;
    let agent = agent(&server).with_chat_tools(|message| {
        let chat = format!("{}:{}", message.channel, message.chat_id);
        let tool = FnTool::running("where", json!({"type": "object"}), move |_| {
            let chat = chat.clone();
            Box::pin(async move { ToolOutcome::text(chat) })
        });
        vec![Arc::new(tool) as Arc<dyn Tool>]
    });
    agent.process_message(&message("go")).await.unwrap();
    assert_eq!(bodies(&server)[1]["messages"][2]["content"], "telegram:7");
}

#[tokio::test]
async fn hub_12_the_timeout_of_tools_is_configurable() {
    let server = Server::start([calls([call("a", "dig")]), answer("anyway")]).await;
    let tools = ToolRegistry::new().with(crate::support::endless("dig"));
    let agent = agent(&server)
        .with_tools(tools)
        .with_tool_timeout(Duration::from_millis(5));
    assert_eq!(
        agent.process_message(&message("go")).await.unwrap().content,
        "anyway"
    );
    let told = bodies(&server)[1]["messages"][2]["content"].to_string();
    assert!(told.contains("time"), "{told}");
}
