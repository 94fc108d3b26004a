//! Agents: the library's front door, over real sockets.

use futures_util::StreamExt as _;
use rondo::rondo_core::ports::{CallDecision, FinishedCall, ResultDecision};
use rondo::types::{Origin, Role};
use rondo::{
    Agent, AgentBuilder, Endpoint, EventBody, HttpModel, JsonSchema, Model, ModelCard, ModelInfo,
    ModelRequest, ModelStream, NoArgs, StopReason, ToolContext, ToolErrorCode, TurnError,
    TypedError,
};
use rondo_testkit::{
    CallScript, ReplyScript, Response, Script, Server, Step, assert_paired, openai,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Notify;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn agent(server: &Server) -> AgentBuilder {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    Agent::builder(HttpModel::new(&endpoint, ModelCard::new("m")).unwrap())
}

fn says(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn calls(name: &str, arguments: &Value) -> Response {
    openai::streamed(&ReplyScript::calls([CallScript::new("c", name, arguments)]))
}

/// Returns the texts that the request with this number, from 0, held.
fn sent(server: &Server, index: usize) -> Vec<String> {
    let body = server.requests()[index].json();
    assert_paired(&body);
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(|it| it["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::test]
async fn a_typed_tool_is_described_checked_and_run() {
    let server = Server::start([
        calls("add", &json!({"a": 17, "b": "x"})),
        calls("add", &json!({"a": 17, "b": 25})),
        says("It is 42."),
    ])
    .await;
    let add = rondo::tool("add", "Adds.", |args: Add, _cx| async move {
        Ok::<_, Failure>(args.a + args.b)
    });
    let agent = agent(&server).tool(add).build().unwrap();
    let outcome = agent.run("17 + 25?").await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.tool_calls),
        ("It is 42.", 1)
    );
    let results: Vec<_> = outcome
        .transcript
        .iter()
        .flat_map(|it| it.results())
        .collect();
    assert_eq!(results[0].error, Some(ToolErrorCode::InvalidArgs));
    assert_eq!(results[1].content.to_text(), "42");
    let function = &server.requests()[0].json()["tools"][0]["function"];
    assert_eq!(
        function["parameters"],
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        })
    );
}

/// Adds one to `b` of each call, and hides the sum.
struct Odd;

#[rondo::async_trait]
impl rondo::Interceptor for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    async fn before_tool(&self, call: &rondo::GateRequest) -> CallDecision {
        let mut arguments = call.arguments.clone();
        arguments["b"] = json!(arguments["b"].as_i64().unwrap_or_default() + 1);
        CallDecision::Rewrite { arguments }
    }

    async fn after_tool(&self, call: &FinishedCall) -> ResultDecision {
        let text = format!("{} of {}", call.tool, call.arguments);
        ResultDecision::Rewrite { text }
    }
}

#[tokio::test]
async fn an_interceptor_of_the_program_changes_a_call_and_what_is_read_of_its_result() {
    let server = Server::start([calls("add", &json!({"a": 17, "b": 25})), says("Odd.")]).await;
    let add = rondo::tool("add", "Adds.", |args: Add, _cx| async move {
        assert_eq!((args.a, args.b), (17, 26));
        Ok::<_, Failure>(args.a + args.b)
    });
    let agent = agent(&server).tool(add).interceptor(Odd).build().unwrap();
    assert_eq!(agent.run("17 + 25?").await.unwrap().text, "Odd.");
    let note = r#"[odd changed the arguments to {"a":17,"b":26}]"#;
    let read = format!("{note}\nadd of {{\"a\":17,\"b\":26}}");
    assert_eq!(sent(&server, 1).last(), Some(&read));
}

#[tokio::test]
async fn errors_and_panics_of_a_tool_are_results() {
    let server = Server::start([
        calls("fail", &json!({})),
        calls("break", &json!({})),
        says("Both failed."),
    ])
    .await;
    let agent = agent(&server)
        .tool(rondo::tool("fail", "Fails.", |_: NoArgs, _cx| async {
            Err::<(), _>("out of paper")
        }))
        .tool(rondo::tool("break", "Breaks.", |_: NoArgs, _cx| async {
            let empty: Vec<u8> = Vec::new();
            Ok::<_, Failure>(empty[0])
        }))
        .build()
        .unwrap();
    let outcome = agent.run("q").await.unwrap();
    let results = outcome.transcript.iter().flat_map(|it| it.results());
    let codes: Vec<_> = results.map(|it| it.error).collect();
    assert_eq!(
        codes,
        [Some(ToolErrorCode::Failed), Some(ToolErrorCode::Internal)]
    );
    assert!(sent(&server, 1).last().unwrap().contains("out of paper"));
}

#[tokio::test]
async fn a_turn_goes_on_from_another_and_from_messages() {
    let server = Server::start([says("one"), says("two"), says("three")]).await;
    let agent = agent(&server).system("Count.").build().unwrap();
    let first = agent.run("start").await.unwrap();
    let second = agent.continue_from(&first, "next").await.unwrap();
    let third = agent
        .run_with_messages(second.transcript, "and?")
        .await
        .unwrap();
    assert_eq!(third.text, "three");
    let expected = ["Count.", "start", "one", "next", "two", "and?"];
    assert_eq!(sent(&server, 2), expected);
}

#[tokio::test]
async fn a_session_keeps_its_messages_also_those_of_a_turn_that_failed() {
    let refused = openai::error(401, "auth", "no such key");
    let server = Server::start([says("hello"), refused, says("still here")]).await;
    let session = agent(&server).build().unwrap().session();
    session.run("hi").await.unwrap();
    let error = session.run("are you there?").await.unwrap_err();
    assert!(matches!(error, TurnError::Failed { .. }), "{error}");
    assert!(error.model_error().is_some());
    // What a program's `main` prints says what failed, and not all that was said.
    let shown = format!("{error:?}");
    assert!(shown.contains("no such key"), "{shown}");
    assert!(!shown.contains("are you there?"), "{shown}");
    session.run("now?").await.unwrap();
    // Templates that want roles to alternate refuse two messages of a user in a row.
    let expected = ["hi", "hello", "are you there?\n\nnow?"];
    assert_eq!(sent(&server, 2), expected);
    assert_eq!(session.transcript().await.len(), 5);
}

#[tokio::test]
async fn turns_of_a_session_run_one_at_a_time_with_ids_of_their_own() {
    let replies = (0..2).flat_map(|_| [calls("look", &json!({})), says("seen")]);
    let server = Server::start(replies.collect::<Vec<_>>()).await;
    let look = rondo::tool("look", "Looks.", |_: NoArgs, cx: ToolContext| async move {
        Ok::<_, Failure>(cx.idempotency_key().to_owned())
    });
    let session = agent(&server).tool(look).build().unwrap().session();
    let (first, second) = (session.start("a"), session.start("b"));
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    assert_eq!(
        second.unwrap().transcript.len() + first.unwrap().transcript.len(),
        12
    );
    let transcript = session.transcript().await;
    let keys: Vec<String> = transcript
        .iter()
        .flat_map(|it| it.results())
        .map(|it| it.content.to_text())
        .collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn turns_of_a_session_run_in_the_order_they_are_started() {
    let server = Server::start(Script::repeat(says("ok"))).await;
    let session = agent(&server).build().unwrap().session();
    let runtime = Handle::current();
    // A task that comes from another thread is polled after those from this one.
    let elsewhere = std::thread::scope(|threads| {
        let start = || {
            let _entered = runtime.enter();
            session.start("first")
        };
        threads.spawn(start).join().unwrap()
    });
    let here = session.start("second");
    here.outcome().await.unwrap();
    elsewhere.outcome().await.unwrap();
    let transcript = session.transcript().await;
    let users = transcript.iter().filter(|it| it.role == Role::User);
    let heard: Vec<String> = users.map(|it| it.text()).collect();
    assert_eq!(heard, ["first", "second"]);
}

#[tokio::test]
async fn calls_after_a_shortened_history_have_ids_of_their_own() {
    let replies = (0..8).flat_map(|_| [calls("look", &json!({})), says("seen")]);
    let server = Server::start(replies.collect::<Vec<_>>()).await;
    let look = rondo::tool("look", "Looks.", |_: NoArgs, _cx| async {
        Ok::<_, Failure>("seen")
    });
    let agent = agent(&server).tool(look).build().unwrap();
    let session = agent.session();
    for _ in 0..5 {
        session.run("again").await.unwrap();
    }
    let mut kept = session.transcript().await;
    kept.drain(..16);
    let shorter = agent.session().with_history(kept.clone());
    shorter.run("here").await.unwrap();
    shorter.run("and here").await.unwrap();
    let there = agent.run_with_messages(kept, "there").await.unwrap();
    for transcript in [shorter.transcript().await, there.transcript] {
        let calls = transcript.iter().flat_map(|it| it.tool_calls());
        let ids: Vec<_> = calls.map(|it| &it.id).collect();
        let different: HashSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len(), "{ids:?}");
    }
}

/// A model of a program that does not keep to its contract.
struct Panics;

impl Model for Panics {
    fn info(&self) -> ModelInfo {
        let none = || "none".to_owned();
        let (dialect, provider, model) = (none(), none(), none());
        ModelInfo {
            origin: Origin {
                dialect,
                provider,
                model,
            },
            streaming: true,
            price: None,
            context_tokens: None,
        }
    }

    fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
        panic!("no connection was made")
    }
}

#[tokio::test]
async fn a_turn_that_breaks_off_says_by_what() {
    let agent = Agent::builder(Panics).build().unwrap();
    let error = agent.run("q").await.unwrap_err();
    assert!(
        error.to_string().contains("no connection was made"),
        "{error}"
    );
    // A session is not stuck behind it.
    let session = agent.session();
    session.run("q").await.unwrap_err();
    assert!(session.transcript().await.is_empty());
}

#[test]
fn a_runtime_without_timers_is_told_apart_from_none() {
    let agent = Agent::builder(Panics).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let error = runtime.block_on(agent.run("q")).unwrap_err();
    assert!(matches!(error, TurnError::Panicked { .. }), "{error}");
}

#[tokio::test]
async fn the_handle_is_a_stream_from_init_to_result() {
    let server = Server::start([says("hello")]).await;
    let mut turn = agent(&server).build().unwrap().start("hi");
    let bodies: Vec<EventBody> = (&mut turn).map(|event| event.body).collect().await;
    assert!(matches!(bodies.first(), Some(EventBody::Init(_))));
    assert!(matches!(bodies.last(), Some(EventBody::Result(_))));
    assert_eq!(turn.outcome().await.unwrap().text, "hello");
}

#[tokio::test]
async fn a_turn_ends_though_nobody_reads_its_events() {
    let pieces = (0..20_000).map(|_| "word ");
    let server = Server::start([openai::streamed(&ReplyScript::text(pieces))]).await;
    let turn = agent(&server).build().unwrap().start("talk");
    assert_eq!(turn.outcome().await.unwrap().text.len(), 100_000);
}

#[tokio::test]
async fn dropping_the_handle_ends_the_request() {
    let server = Server::start([Response::sse(["data: {}\n\n"]).step(Step::Stall)]).await;
    let turn = agent(&server).build().unwrap().start("hi");
    server.request(0).await;
    drop(turn);
    server.disconnected(0).await;
}

#[tokio::test]
async fn dropping_the_handle_ends_the_calls() {
    struct Ends(Arc<Notify>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let server = Server::start([calls("wait", &json!({}))]).await;
    let (began, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, ends) = (Arc::clone(&began), Arc::clone(&ended));
    let wait = rondo::tool("wait", "Waits.", move |_: NoArgs, _cx| {
        let guard = Ends(Arc::clone(&ends));
        begins.notify_one();
        async move {
            let _guard = guard;
            std::future::pending::<Result<(), Failure>>().await
        }
    });
    let turn = agent(&server).tool(wait).build().unwrap().start("q");
    began.notified().await;
    drop(turn);
    ended.notified().await;
}

#[tokio::test]
async fn a_dropped_turn_leaves_its_session_as_it_was() {
    let stalled = Response::sse(["data: {}\n\n"]).step(Step::Stall);
    let server = Server::start([stalled, says("fine")]).await;
    let session = agent(&server).build().unwrap().session();
    let turn = session.start("lost");
    server.request(0).await;
    drop(turn);
    session.run("kept").await.unwrap();
    assert_eq!(sent(&server, 1), ["kept"]);
}

#[tokio::test]
async fn cancelling_keeps_what_there_is() {
    let server = Server::start([calls("wait", &json!({}))]).await;
    let began = Arc::new(Notify::new());
    let begins = Arc::clone(&began);
    let wait = rondo::tool("wait", "Waits.", move |_: NoArgs, _cx| {
        begins.notify_one();
        std::future::pending::<Result<(), Failure>>()
    });
    let turn = agent(&server).tool(wait).build().unwrap().start("q");
    began.notified().await;
    turn.cancel();
    let outcome = turn.outcome().await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    let results = outcome.transcript.iter().flat_map(|it| it.results());
    let codes: Vec<_> = results.map(|it| it.error).collect();
    assert_eq!(codes, [Some(ToolErrorCode::Cancelled)]);
}

#[tokio::test]
async fn what_is_said_meanwhile_reaches_the_model() {
    let server = Server::start([calls("look", &json!({})), says("em português")]).await;
    let (began, said) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, is_said) = (Arc::clone(&began), Arc::clone(&said));
    let look = rondo::tool("look", "Looks.", move |_: NoArgs, _cx| {
        let (begins, is_said) = (Arc::clone(&begins), Arc::clone(&is_said));
        async move {
            begins.notify_one();
            is_said.notified().await;
            Ok::<_, Failure>("seen")
        }
    });
    let turn = agent(&server).tool(look).build().unwrap().start("q");
    began.notified().await;
    assert!(turn.steer("In Portuguese."));
    said.notify_one();
    turn.outcome().await.unwrap();
    assert_eq!(sent(&server, 1).last().unwrap(), "In Portuguese.");
}

/// A town.
#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Town {
    name: String,
    /// At the last count.
    people: Option<u32>,
}

#[tokio::test]
async fn a_typed_answer_is_asked_for_checked_and_corrected() {
    let server = Server::start([
        says("It is Lisbon."),
        says(r#"{"name": "Lisbon", "people": "many"}"#),
        says("```json\n{\"name\": \"Lisbon\", \"people\": 545796}\n```"),
    ])
    .await;
    let agent = agent(&server).build().unwrap();
    let typed = agent.run_typed::<Town>("Which town?").await.unwrap();
    let town = Town {
        name: "Lisbon".to_owned(),
        people: Some(545_796),
    };
    assert_eq!((typed.value, typed.outcome.steps), (town, 3));
    let body = server.requests()[0].json();
    let format = &body["response_format"]["json_schema"];
    assert_eq!(format["strict"], true);
    assert_eq!(format["schema"]["required"], json!(["name", "people"]));
    assert!(sent(&server, 0)[0].contains("At the last count."));
    assert!(sent(&server, 1).last().unwrap().contains("JSON"));
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error_that_has_the_outcome() {
    let server = Server::start(Script::repeat(says("Lisbon."))).await;
    let agent = agent(&server).build().unwrap();
    let error = agent.run_typed::<Town>("Which town?").await.unwrap_err();
    let TypedError::NoAnswer { outcome } = error else {
        panic!("{error}")
    };
    assert_eq!(outcome.stop_reason, StopReason::InvalidResponse);
    // The first request, two corrections, and the one in reserve if the budget has it.
    assert!((3..=4).contains(&server.requests().len()));
    assert!(outcome.transcript.len() > 1);
}

#[tokio::test]
async fn a_list_is_a_typed_answer_too_and_a_session_goes_on_after_it() {
    let server = Server::start([says(r#"{"answer": ["a", "b"]}"#), says("Yes.")]).await;
    let session = agent(&server).build().unwrap().session();
    let typed = session.run_typed::<Vec<String>>("Letters?").await.unwrap();
    assert_eq!(typed.value, ["a", "b"]);
    session.run("Sure?").await.unwrap();
    assert!(server.requests()[1].json().get("response_format").is_none());
}

#[tokio::test]
async fn a_typed_answer_that_its_type_refuses_is_sent_back_as_often_as_the_limits_say() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct At {
        #[schemars(with = "String")]
        address: std::net::Ipv4Addr,
    }
    let unreadable = || says(r#"{"address": "here"}"#);
    let right = || says(r#"{"address": "10.0.0.1"}"#);

    let server = Server::start([unreadable(), right()]).await;
    let bounded = |server: &Server, retries| {
        let agent = agent(server).limits(|limits| limits.invalid_retries = retries);
        agent.build().unwrap()
    };
    let typed = bounded(&server, 1).run_typed::<At>("Where?").await.unwrap();
    let address = [10, 0, 0, 1].into();
    assert_eq!(typed.value, At { address });
    let corrective = sent(&server, 1).pop().unwrap();
    assert!(corrective.contains("invalid IPv4 address"), "{corrective}");

    let server = Server::start([unreadable(), unreadable(), right()]).await;
    let error = bounded(&server, 1)
        .run_typed::<At>("Where?")
        .await
        .unwrap_err();
    assert!(matches!(error, TypedError::NoAnswer { .. }), "{error}");
    assert_eq!(
        error.outcome().unwrap().stop_reason,
        StopReason::InvalidResponse
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_refused_typed_answer_replays_without_its_type() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Even {
        #[serde(rename = "number", deserialize_with = "even")]
        _number: i64,
    }
    fn even<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        let number = i64::deserialize(from)?;
        let refused = serde::de::Error::custom(format!("{number} is odd"));
        (number % 2 == 0).then_some(number).ok_or(refused)
    }
    let server = Server::start([says(r#"{"number": 3}"#), says(r#"{"number": 4}"#)]).await;
    let agent = agent(&server).build().unwrap();
    let journal = Arc::new(rondo::MemoryJournal::default());
    let session = agent.session_named("s").with_journal(journal.clone());
    session.run_typed::<Even>("An even one?").await.unwrap();
    let records = journal.records();
    let id = session.id().clone();
    let mut replayer = rondo::rondo_core::replay::Replayer::new(id, Default::default());
    let replayed = replayer.turn(&records).unwrap();
    assert_eq!(replayed.differences, []);
    let again = agent.session_named("s").with_records(&records);
    assert_eq!(again.transcript().await, session.transcript().await);
}
