//! Promises of the library about histories, names, budgets and calls.

use rondo::types::{LoopGuard, NanoUsd, Price, Role, ToolCall, ToolContent, ToolResult};
use rondo::{
    Agent, AnswerValue, BuildError, Endpoint, HttpModel, MemoryJournal, Message, ModelCard, NoArgs,
    Question, StopReason, Transcript, TurnError,
};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, assert_paired, openai};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn model(server: &Server, card: ModelCard) -> HttpModel {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    HttpModel::new(&endpoint, card).unwrap()
}

fn says(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn result_of(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        wire_id: call.wire_id.clone(),
        name: call.name.clone(),
        error: None,
        content: ToolContent::Text(text.to_owned()),
        blocks: Vec::new(),
        synthetic: false,
    }
}

/// Returns a history that ends with two calls, and the calls.
async fn unanswered() -> (Transcript, Vec<ToolCall>) {
    let reply = ReplyScript::calls([
        CallScript::new("c1", "look", &json!({})),
        CallScript::new("c2", "look", &json!({})),
    ]);
    let server = Server::start([openai::streamed(&reply), says("seen")]).await;
    let look = rondo::tool("look", "Looks.", |_: NoArgs, _cx| async {
        Ok::<_, String>("x")
    });
    let agent = Agent::builder(model(&server, ModelCard::new("m"))).tool(look);
    let outcome = agent.build().unwrap().run("Look twice.").await.unwrap();
    let history: Transcript = outcome.transcript.into_iter().take(2).collect();
    let calls = history[1].tool_calls().cloned().collect();
    (history, calls)
}

/// Returns the text of the tool messages in a request, by call id.
fn results_sent(body: &Value) -> Vec<(String, String)> {
    assert_paired(body);
    let messages = body["messages"].as_array().unwrap().iter();
    let of_tools = messages.filter(|it| it["role"] == "tool");
    of_tools
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap().to_owned();
            (text("tool_call_id"), text("content"))
        })
        .collect()
}

#[tokio::test]
async fn results_that_the_caller_brings_are_the_results() {
    let (history, calls) = unanswered().await;
    let server = Server::start([says("thanks")]).await;
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .build()
        .unwrap();
    let brought = Message::tool_results(vec![
        result_of(&calls[1], "second"),
        result_of(&calls[0], "first"),
    ]);
    let outcome = agent.run_with_messages(history, brought).await.unwrap();
    assert_eq!(outcome.text, "thanks");
    let sent = results_sent(&server.requests()[0].json());
    let expected = [("c1", "first"), ("c2", "second")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(sent, expected);
    let roles: Vec<_> = outcome.transcript.iter().map(|it| it.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::Tool, Role::Assistant]
    );
}

#[tokio::test]
async fn a_call_that_the_caller_leaves_out_is_filled_in_and_its_neighbour_is_not() {
    let (mut history, calls) = unanswered().await;
    history.push(Arc::new(Message::tool_results(vec![result_of(
        &calls[1], "second",
    )])));
    for (message, expected) in [
        (vec![result_of(&calls[0], "first")], ["first", "second"]),
        (vec![], ["error (in_doubt)", "second"]),
    ] {
        let server = Server::start([says("thanks")]).await;
        let agent = Agent::builder(model(&server, ModelCard::new("m")))
            .build()
            .unwrap();
        let message = Message::tool_results(message);
        agent
            .run_with_messages(history.clone(), message)
            .await
            .unwrap();
        let sent = results_sent(&server.requests()[0].json());
        let begins = |(at, start): (usize, &str)| sent[at].1.starts_with(start);
        assert!(expected.into_iter().enumerate().all(begins), "{sent:?}");
    }
}

#[tokio::test]
async fn results_that_answer_no_call_fail_the_turn_and_are_not_sent() {
    let (_, calls) = unanswered().await;
    let server = Server::start([says("never asked")]).await;
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .build()
        .unwrap();
    let message = Message::tool_results(vec![result_of(&calls[0], "first")]);
    let error = agent.run(message).await.unwrap_err();
    let class = error.model_error().unwrap();
    assert!(
        class.message.contains("does not end with their calls"),
        "{}",
        class.message
    );
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn the_results_that_a_caller_brought_are_there_when_the_session_is_opened_again() {
    let (history, calls) = unanswered().await;
    let server = Server::start([says("thanks"), says("two")]).await;
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .build()
        .unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let session = agent
        .session_named("kept")
        .with_history(history)
        .with_journal(journal.clone());
    let results = calls
        .iter()
        .map(|call| result_of(call, "brought"))
        .collect();
    session.run(Message::tool_results(results)).await.unwrap();
    let again = agent.session_named("kept").with_journal(journal.clone());
    let again = again.with_records(&journal.records());
    assert_eq!(again.transcript().await, session.transcript().await);
    again.run("And?").await.unwrap();
    let sent = results_sent(&server.requests()[1].json());
    assert!(sent.iter().all(|(_, text)| text == "brought"), "{sent:?}");
}

#[tokio::test]
async fn an_approval_names_its_session_turn_and_step() {
    let call = |id: &str| {
        let call = CallScript::new(id, "exec", &json!({"command": "true"}));
        openai::streamed(&ReplyScript::calls([call]))
    };
    let server = Server::start([call("a"), call("b"), says("no")]).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let exec = rondo::tool("exec", "Runs.", |_: NoArgs, _cx| async {
        Ok::<_, String>(())
    })
    .kind(rondo::ToolKind::Execute);
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .tool(exec)
        .approve_with(move |question: Question| {
            let subject = question.subject;
            let name = (
                subject.session.to_string(),
                subject.turn.to_string(),
                subject.step,
            );
            seen.lock().unwrap().push(name);
            async {
                AnswerValue::Deny {
                    reason: "not now".to_owned(),
                }
            }
        })
        .build()
        .unwrap();
    agent.session_named("ana").run("Go.").await.unwrap();
    let expected = [1, 2].map(|step| ("ana".to_owned(), "ana-1".to_owned(), step));
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[tokio::test]
async fn turns_of_a_session_are_numbered_from_one_without_a_gap() {
    let server = Server::start(["one", "two", "three"].map(says)).await;
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .build()
        .unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let session = agent.session_named("ana").with_journal(journal.clone());
    session.run("1").await.unwrap();
    session.run("2").await.unwrap();
    drop(session);
    let session = agent.session_named("ana").with_journal(journal.clone());
    session
        .with_records(&journal.records())
        .run("3")
        .await
        .unwrap();
    let mut turns: Vec<_> = journal
        .records()
        .iter()
        .map(|it| it.turn.to_string())
        .collect();
    turns.dedup();
    assert_eq!(turns, ["ana-1", "ana-2", "ana-3"]);
}

#[tokio::test]
async fn a_budget_in_money_needs_the_price_of_every_model() {
    let server = Server::start([says("never asked")]).await;
    let free = || model(&server, ModelCard::new("unpriced"));
    let priced = || {
        let card = ModelCard {
            price: Some(Price {
                input: 1,
                output: 1,
                ..Price::default()
            }),
            ..ModelCard::new("priced")
        };
        model(&server, card)
    };
    let bounded = |builder: rondo::AgentBuilder| {
        builder.limits(|limits| limits.max_cost = Some(NanoUsd(1_000_000_000)))
    };
    for builder in [
        Agent::builder(free()),
        Agent::builder(priced()).fallback(free()),
    ] {
        match bounded(builder).build().unwrap_err() {
            BuildError::Price { model } => assert_eq!(model, "local/unpriced"),
            other => panic!("{other}"),
        }
    }
    bounded(Agent::builder(priced()).fallback(priced()))
        .build()
        .unwrap();
    Agent::builder(free()).build().unwrap();
}

/// A search that a request would leave out in silence is refused when the agent is built.
#[tokio::test]
async fn a_web_search_that_would_be_dropped_is_refused_when_the_agent_is_built() {
    let server = Server::start([says("never asked")]).await;
    let searching = |dialect: &str| {
        let mut endpoint = Endpoint::new("local", dialect, server.url("/v1"));
        endpoint.web_search = true;
        HttpModel::new(&endpoint, ModelCard::new("m")).unwrap()
    };
    let noop = || {
        rondo::tool("noop", "Nothing.", |_: NoArgs, _cx| async {
            Ok::<_, String>(())
        })
    };
    for (dialect, alone, beside_tools) in [
        ("openai-chat", false, false),
        ("openai-responses", true, true),
        ("anthropic", true, true),
        ("gemini", true, false),
    ] {
        let plain = Agent::builder(searching(dialect)).build();
        assert_eq!(plain.is_ok(), alone, "{dialect}");
        let beside = Agent::builder(searching(dialect)).tool(noop()).build();
        assert_eq!(beside.is_ok(), beside_tools, "{dialect}");
    }
    let shared: Arc<dyn rondo::Model> = Arc::new(searching("openai-chat"));
    let fallback = Agent::builder(model(&server, ModelCard::new("m"))).fallback(shared);
    match fallback.build().unwrap_err() {
        BuildError::WebSearch { model } => assert_eq!(model, "local/m"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_resume_that_fails_leaves_the_turn_to_be_resumed() {
    let look = CallScript::new("c", "wait", &json!({}));
    let server = Server::start([openai::streamed(&ReplyScript::calls([look]))]).await;
    let journal = Arc::new(MemoryJournal::default());
    let waits = || {
        rondo::tool("wait", "Waits.", |_: NoArgs, _cx| async {
            std::future::pending::<Result<(), String>>().await
        })
    };
    let agent = Agent::builder(model(&server, ModelCard::new("m")))
        .tool(waits())
        .build()
        .unwrap();
    let session = agent.session_named("s").with_journal(journal.clone());
    let mut run = session.start("Wait.");
    while let Some(event) = run.next().await {
        if matches!(event.body, rondo::EventBody::ToolCallStarted { .. }) {
            break;
        }
    }
    drop(run);
    session.transcript().await;

    let other = Agent::builder(model(&server, ModelCard::new("other")))
        .build()
        .unwrap();
    let session = other.session_named("s").with_records(&journal.records());
    for _ in 0..2 {
        let error = session.resume().unwrap().outcome().await.unwrap_err();
        assert!(matches!(error, TurnError::Resume(_)), "{error}");
    }
}

/// An agent whose model makes the same call six times, with the same result, and then answers.
async fn repeating(
    change: impl FnOnce(rondo::FnTool) -> rondo::FnTool,
    guard: LoopGuard,
) -> StopReason {
    let call = || ReplyScript::calls([CallScript::new("c", "look", &json!({}))]);
    let mut replies: Vec<Response> = (0..6).map(|_| openai::streamed(&call())).collect();
    replies.push(says("ready"));
    let server = Server::start(replies).await;
    let look = rondo::tool(
        "look",
        "Looks whether it is ready.",
        |_: NoArgs, _cx| async { Ok::<_, String>("not yet") },
    );
    let agent = Agent::builder(model(&server, ModelCard::new("any")))
        .tool(change(look))
        .loop_guard(guard)
        .build()
        .unwrap();
    agent.run("Wait for it.").await.unwrap().stop_reason
}

#[tokio::test]
async fn repetition_ends_a_turn_unless_the_tool_polls_or_the_guard_is_off() {
    let guard = rondo::profiles::builtin("default").unwrap().loop_guard;
    let off = LoopGuard {
        nudge_after: 0,
        withhold_after: 0,
        stop_after: 0,
    };
    assert_eq!(repeating(|it| it, guard).await, StopReason::NoProgress);
    assert_eq!(
        repeating(rondo::FnTool::polls, guard).await,
        StopReason::Complete
    );
    assert_eq!(repeating(|it| it, off).await, StopReason::Complete);
}
