//! Parts that a program may bring to the gateway's design, and defaults without them: contexts, deliveries, the
//! blacklist and calls at the same time.

use crate::support::FnTool;
use async_trait::async_trait;
use rondo::design::hub::{
    AgentError, AgentLoop, ChatHub, Context, ContextBuilder, InboundMessage, LlmMessage,
    LlmProvider, LlmResponse, LlmRole, LlmToolCall, ProviderError, Session, SevenLayers,
    ToolDefinition, ToolRegistry,
};
use rondo::{Gate, GateRequest, ToolOutcome, Verdict};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Model that records its requests, and answers each time with the next reply of its script.
#[derive(Default)]
struct Scripted {
    script: Mutex<Vec<LlmResponse>>,
    asked: Mutex<Vec<Vec<LlmMessage>>>,
}

#[async_trait]
impl LlmProvider for Scripted {
    async fn chat(
        &self,
        messages: &[LlmMessage],
        _tools: &[ToolDefinition],
        _model: &str,
    ) -> Result<LlmResponse, ProviderError> {
        self.asked.lock().unwrap().push(messages.to_vec());
        let mut script = self.script.lock().unwrap();
        match script.is_empty() {
            true => Ok(LlmResponse::text("done")),
            false => Ok(script.remove(0)),
        }
    }

    fn default_model(&self) -> &str {
        "scripted"
    }
}

fn message(chat: &str, content: &str) -> InboundMessage {
    InboundMessage::new("telegram", chat, content)
}

fn call(id: &str, name: &str, arguments: Value) -> LlmToolCall {
    LlmToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

fn agent(provider: &Arc<Scripted>, tools: ToolRegistry) -> AgentLoop {
    let provider = Arc::clone(provider) as Arc<dyn LlmProvider>;
    AgentLoop::new(Arc::new(ChatHub::new()), provider).with_tools(tools)
}

/// A context of a program's own.
struct Terse;

#[async_trait]
impl ContextBuilder for Terse {
    async fn build(
        &self,
        session: &Session,
        message: &InboundMessage,
    ) -> Result<Context, AgentError> {
        if message.content == "stop" {
            return Err(AgentError::EmptyMessage);
        }
        let said = session.messages();
        let first = said.get(..1).unwrap_or_default();
        let context = Context::new(session, message).with_history(first);
        let layer = format!("There were {} messages.", said.len());
        Ok(context
            .with_layer(layer)
            .with_message(message.content.to_uppercase()))
    }
}

#[tokio::test]
async fn hub_2_a_program_can_build_the_context_of_each_message() {
    let provider = Arc::new(Scripted::default());
    let agent = agent(&provider, ToolRegistry::new()).with_context_builder(Terse);
    for text in ["first", "second"] {
        agent.process_message(&message("7", text)).await.unwrap();
    }
    let stopped = agent.process_message(&message("7", "stop")).await;
    assert!(matches!(stopped, Err(AgentError::EmptyMessage)));
    let asked = provider.asked.lock().unwrap().clone();
    let system = |text: &str| LlmMessage::new(LlmRole::System, text);
    let user = |text: &str| LlmMessage::new(LlmRole::User, text);
    let expected = [
        vec![system("There were 0 messages."), user("FIRST")],
        vec![
            system("There were 2 messages."),
            user("FIRST"),
            user("SECOND"),
        ],
    ];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn hub_35_callbacks_get_each_message_that_could_not_be_delivered_and_why() {
    let hub = ChatHub::new();
    let failed = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let failed = Arc::clone(&failed);
        hub.on_delivery_failure(move |message, reason| {
            let told = format!(
                "{name}: {} to {}: {reason}",
                message.content, message.chat_id
            );
            failed.lock().unwrap().push(told);
        });
    }
    for (chat, text) in [("1", "lost"), ("2", "sent"), ("3", "lost too")] {
        hub.send(message(chat, "").reply(text)).await;
    }
    let sent = Mutex::new(Vec::new());
    let delivered = hub.deliver(|message| {
        sent.lock().unwrap().push(message.content.clone());
        async move {
            match message.content.starts_with("lost") {
                true => Err("the chat is gone"),
                false => Ok(()),
            }
        }
    });
    // The queue is empty once it waits.
    tokio::select! {
        biased;
        () = delivered => unreachable!("it waits for more"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(*sent.lock().unwrap(), ["lost", "sent", "lost too"]);
    let expected = [
        "first: lost to 1: the chat is gone",
        "second: lost to 1: the chat is gone",
        "first: lost too to 3: the chat is gone",
        "second: lost too to 3: the chat is gone",
    ];
    assert_eq!(*failed.lock().unwrap(), expected);

    hub.delivery_failed(&message("4", "").reply("own"), "no route");
    assert_eq!(failed.lock().unwrap()[4], "first: own to 4: no route");
}

/// A tool of a program that runs commands, and notes those that it ran.
fn runner(name: &str, (property, kind): (&str, &str), ran: &Arc<Mutex<Vec<String>>>) -> FnTool {
    let ran = Arc::clone(ran);
    let parameters = json!({"type": "object", "properties": {(property): {"type": kind}}});
    FnTool::running(name, parameters, move |call| {
        ran.lock().unwrap().push(call.arguments.to_string());
        Box::pin(async { ToolOutcome::text("ran") })
    })
}

/// Refuses one command, and allows the rest.
struct RefusesWhoami;

#[async_trait]
impl Gate for RefusesWhoami {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match request.arguments["command"] == "whoami" {
            true => Verdict::Deny {
                reason: "not here".to_owned(),
            },
            false => Verdict::Allow,
        }
    }
}

#[tokio::test]
async fn hub_33_the_blacklist_holds_by_default_for_every_tool_that_runs_commands() {
    let provider = Arc::new(Scripted::default());
    let ran = Arc::new(Mutex::new(Vec::new()));
    let tools = || {
        ToolRegistry::new()
            .with(runner("shell", ("command", "string"), &ran))
            .with(runner("program", ("argv", "array"), &ran))
            .with(runner("note", ("text", "string"), &ran))
    };
    let refused = [
        call("a", "shell", json!({"command": "rm -rf build"})),
        call("b", "shell", json!({"command": "cd x && sudo ls"})),
        call("c", "shell", json!({"command": "echo $(/bin/rm x)"})),
        call("d", "program", json!({"argv": ["dd", "if=/dev/zero"]})),
        call("e", "shell", json!({"command": "bash -c \"$X\""})),
    ];
    let plain = [
        call("f", "shell", json!({"command": "ls -l"})),
        call("g", "program", json!({"argv": ["ls"]})),
        call("h", "note", json!({"text": "rm is a program"})),
    ];
    let agent = agent(&provider, tools());
    for result in agent.execute_tools(&refused).await {
        assert!(result.content.starts_with("error (denied)"), "{result:?}");
    }
    assert_eq!(*ran.lock().unwrap(), [""; 0]);
    for result in agent.execute_tools(&plain).await {
        assert_eq!(result.content, "ran");
    }

    // A turn has it, too, and a gate comes beside it.
    let whoami = call("w", "shell", json!({"command": "whoami"}));
    let asks = LlmResponse {
        tool_calls: vec![refused[0].clone(), whoami, plain[0].clone()],
        ..LlmResponse::default()
    };
    provider.script.lock().unwrap().push(asks);
    let gated = agent.clone().with_gate(Arc::new(RefusesWhoami));
    ran.lock().unwrap().clear();
    gated.process_message(&message("7", "go")).await.unwrap();
    assert_eq!(*ran.lock().unwrap(), [r#"{"command":"ls -l"}"#]);

    let lifted = agent.without_blacklist();
    assert_eq!(lifted.execute_single_tool(&refused[0]).await.content, "ran");
}

/// A tool that takes a second, and notes when its calls begin and end.
fn second(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> FnTool {
    let log = Arc::clone(log);
    FnTool::running(name, json!({"type": "object"}), move |_| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            log.lock().unwrap().push(format!("{name} begins"));
            sleep(Duration::from_secs(1)).await;
            log.lock().unwrap().push(format!("{name} ends"));
            ToolOutcome::text(name)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn hub_5_hub_14_a_batch_runs_in_parallel_unless_a_tool_declares_itself_exclusive() {
    let provider = Arc::new(Scripted::default());
    let log = Arc::default();
    let tools = ToolRegistry::new()
        .with(second("plain", &log).undeclared())
        .with(second("shared", &log).shared())
        .with(second("alone", &log));
    let agent = agent(&provider, tools);
    let batch = |names: &[&str]| -> Vec<LlmToolCall> {
        let calls = names.iter().enumerate();
        calls
            .map(|(at, name)| call(&at.to_string(), name, json!({})))
            .collect()
    };
    let many: Vec<&str> = ["plain", "shared"].into_iter().cycle().take(40).collect();
    for (names, seconds) in [
        (&many[..], 1),
        (&["plain", "alone", "plain"], 3),
        (&["alone", "alone"], 2),
    ] {
        let begun = Instant::now();
        let results = agent.execute_tools(&batch(names)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(seconds), "{names:?}");
        let ids: Vec<String> = results
            .iter()
            .filter_map(|it| it.tool_call_id.clone())
            .collect();
        let expected: Vec<String> = (0..names.len()).map(|at| at.to_string()).collect();
        assert_eq!(ids, expected);
        let told: Vec<&str> = results.iter().map(|it| it.content.as_str()).collect();
        assert_eq!(told, names);
    }
    let barrier =
        ["plain", "alone", "plain"].map(|it| [format!("{it} begins"), format!("{it} ends")]);
    assert_eq!(log.lock().unwrap()[80..86], barrier.concat());
}

#[tokio::test]
async fn hub_25_memory_is_a_layer_of_every_session_unless_the_owners_are_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("MEMORY.md"), "- The user likes tea.\n").unwrap();
    std::fs::write(dir.path().join("USER.md"), "Ada.\n").unwrap();
    let layers = SevenLayers::in_workspace(dir.path());
    let owned = layers.clone().with_owner_session("telegram_7");
    for (layers, chat, has_memory, has_user) in [
        (&layers, "7", true, false),
        (&layers, "8", true, false),
        (&owned, "7", true, true),
        (&owned, "8", false, false),
    ] {
        let provider = Arc::new(Scripted::default());
        let agent = agent(&provider, ToolRegistry::new()).with_context_builder(layers.clone());
        agent.process_message(&message(chat, "hi")).await.unwrap();
        let asked = provider.asked.lock().unwrap().clone();
        let system = &asked[0][0].content;
        assert_eq!(system.contains("likes tea"), has_memory, "{chat}: {system}");
        assert_eq!(system.contains("Ada."), has_user, "{chat}: {system}");
    }
}
