//! The streaming engine as a library, over OpenAI Chat event streams.

use crate::support::{Bench, FnTool, Ran, bodies, chunks, echo, endless, functions, tool};
use rondo::types::{ErrorClass, FinishReason, Part, Role};
use rondo::{EventBody, Message, StopReason, Tool, ToolErrorCode, ToolOutcome, Toolbox};
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, faults, openai};
use serde_json::{Value, json};
use std::sync::Arc;

fn bench(server: &Server) -> Bench {
    Bench::chat("stream", server)
}

pub(crate) fn answer(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

pub(crate) fn calls(calls: impl IntoIterator<Item = CallScript>) -> Response {
    openai::streamed(&ReplyScript::calls(calls))
}

pub(crate) fn look(id: &str) -> CallScript {
    CallScript::new(id, "look", &json!({"at": id}))
}

async fn ask(responses: Vec<Response>, tools: Vec<FnTool>) -> (Server, Ran) {
    let server = Server::start(responses).await;
    let ran = bench(&server).tools(tools).ask("q").await;
    (server, ran)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn started(event: &EventBody) -> bool {
    matches!(event, EventBody::ToolCallStarted { .. })
}

#[tokio::test]
async fn fa_7_fa_8_fa_22_fa_23_fa_36_a_text_only_turn_is_streamed() {
    let reply = ReplyScript::text(["Hel", "lo", "!"]).usage(7, 3);
    let (server, ran) = ask(vec![openai::streamed(&reply)], vec![]).await;
    assert_eq!(ran.outcome.text, "Hello!");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.outcome.finish_reason, Some(FinishReason::Stop));
    let deltas = ran.count(|event| matches!(event, EventBody::TextDelta { .. }));
    assert_eq!((deltas, ran.shown().as_str()), (3, "Hello!"));
    let sent = json!({
        "model": "m",
        "messages": [user("q")],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(bodies(&server), [sent]);
    assert_eq!(server.request(0).await.path, "/v1/chat/completions");
}

#[tokio::test]
async fn fa_9_fa_31_fa_36_one_call_is_assembled_run_and_answered() {
    let specs = [echo("look").spec()];
    let (server, ran) = ask(
        vec![calls([look("c1")]), answer("found")],
        vec![echo("look")],
    )
    .await;
    assert_eq!(ran.outcome.text, "found");
    let called = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": r#"{"at":"c1"}"#}},
    ]});
    let result =
        json!({"role": "tool", "tool_call_id": "c1", "content": r#"look did {"at":"c1"}"#});
    let sent = |messages: Value| {
        json!({
            "model": "m",
            "messages": messages,
            "tools": functions(&specs),
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    };
    assert_eq!(
        bodies(&server),
        [
            sent(json!([user("q")])),
            sent(json!([user("q"), called, result]))
        ]
    );
}

#[tokio::test]
async fn fa_31_definitions_come_from_the_toolbox_in_its_order() {
    let tools = || {
        [
            echo("second").described("Comes first."),
            echo("first").described("Comes second."),
        ]
    };
    let (server, ran) = ask(vec![answer("ok")], tools().into()).await;
    let toolbox = Toolbox::new(tools().map(|tool| Arc::new(tool) as Arc<dyn Tool>)).unwrap();
    let sent = bodies(&server).remove(0);
    assert_eq!(sent["tools"], functions(&toolbox.specs()));
    let Some(EventBody::Init(init)) = ran.events.first() else {
        panic!("the first event is init")
    };
    assert!(
        init.tools.iter().eq(["second", "first"]),
        "{:?}",
        init.tools
    );
}

#[tokio::test]
async fn fa_10_reasoning_and_text_are_streamed_apart() {
    let reply = ReplyScript::text(["42"])
        .thinking("six times ")
        .thinking("seven");
    let (_server, ran) = ask(vec![openai::streamed(&reply)], vec![]).await;
    let thought: String = ran
        .events
        .iter()
        .filter_map(|event| match event {
            EventBody::ReasoningDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        (thought.as_str(), ran.shown().as_str()),
        ("six times seven", "42")
    );
    assert_eq!(ran.outcome.text, "42");
    let parts = &ran.outcome.transcript[1].parts;
    assert!(matches!(&parts[0], Part::Reasoning(it) if it.text == "six times seven"));
    assert!(matches!(&parts[1], Part::Text(it) if it.text == "42"));
}

#[tokio::test]
async fn fa_11_fa_12_interleaved_calls_are_kept_apart_by_their_ids() {
    let piece = |index: u32, arguments: &str| {
        let delta = json!({"index": index, "function": {"arguments": arguments}});
        (json!({"tool_calls": [delta]}), None)
    };
    let begin = |index: u32, id: &str, name: &str| {
        let delta = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        (json!({"tool_calls": [delta]}), None)
    };
    let interleaved = chunks([
        (json!({"role": "assistant", "content": "Looking."}), None),
        begin(0, "a", "look"),
        begin(1, "b", "smell"),
        piece(1, r#"{"at""#),
        piece(0, r#"{"at":"#),
        piece(1, r#":2}"#),
        piece(0, "1}"),
        (json!({}), Some("tool_calls")),
    ]);
    let tools = vec![echo("look"), echo("smell")];
    let (server, ran) = ask(vec![interleaved, answer("both")], tools).await;
    let results: Vec<String> = ran.results().into_iter().map(|it| it.1).collect();
    assert_eq!(results, [r#"look did {"at":1}"#, r#"smell did {"at":2}"#]);
    let sent = bodies(&server).remove(1);
    assert_eq!(sent["messages"][1]["content"], "Looking.");
    let ids: Vec<&Value> = (2..4)
        .map(|at| &sent["messages"][at]["tool_call_id"])
        .collect();
    assert_eq!(ids, ["a", "b"]);
}

#[tokio::test]
async fn fa_13_an_error_within_the_stream_ends_the_turn_and_keeps_the_text() {
    let error = r#"data: {"error":{"message":"the backend failed","type":"server_error"}}"#;
    let mut frames = openai::frames(&ReplyScript::text(["half ", "an answer"]));
    frames.truncate(2);
    let response = Response::sse(frames).send(format!("{error}\n\n"));
    let (server, ran) = ask(vec![response], vec![]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.error_class(), Some(ErrorClass::Server));
    assert!(ran.outcome.text.contains("half"), "{}", ran.outcome.text);
    assert_eq!(ran.outcome.transcript[1].text(), "half ");
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn fa_13_a_stream_without_any_event_is_an_error_not_an_answer() {
    let (_server, ran) = ask(vec![Response::sse([""])], vec![]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.error_class(), Some(ErrorClass::Network));
    assert!(!ran.outcome.answered);
}

#[tokio::test]
async fn fa_24_fa_36_a_turn_of_several_steps_with_tools() {
    let responses = vec![
        calls([look("c1")]),
        calls([look("c2"), look("c3")]),
        answer("done"),
    ];
    let (server, ran) = ask(responses, vec![echo("look")]).await;
    assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (3, 3));
    assert_eq!(server.connections(), 1);
    let roles: Vec<Role> = ran.outcome.transcript.iter().map(|it| it.role).collect();
    let step = [Role::Assistant, Role::Tool];
    assert_eq!(
        roles,
        [&[Role::User], &step[..], &step[..], &[Role::Assistant]].concat()
    );
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn fa_25_fa_36_a_turn_ends_at_its_limit_of_steps() {
    let server = Server::start(Script::repeat(calls([look("c")]))).await;
    let ran = bench(&server).tool(echo("look")).ask("q").await;
    assert_eq!(bodies(&server).len(), 25);
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    assert_eq!(ran.outcome.findings.len(), 25);
}

#[tokio::test]
async fn fa_26_fa_36_too_many_calls_run_none_and_just_enough_run_all() {
    let many = |count: u32| calls((0..count).map(|at| look(&format!("c{at}"))));
    let (server, ran) = ask(vec![many(11)], vec![echo("look")]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxToolCalls);
    assert_eq!(ran.codes(), [Some(ToolErrorCode::NotRun); 11]);
    assert_eq!((ran.outcome.tool_calls, bodies(&server).len()), (0, 1));

    let (_server, ran) = ask(vec![many(10), answer("ok")], vec![echo("look")]).await;
    assert_eq!(ran.codes(), [None; 10]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
}

#[tokio::test]
async fn fa_27_fa_36_a_request_that_is_never_answered_ends_at_its_timeout() {
    let server = Server::start(faults::zero_byte_stall()).await;
    let ran = bench(&server)
        .ask_beside("q", async |_| {
            server.request(0).await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert!((119_000..123_000).contains(&ran.outcome.elapsed_ms));
    server.disconnected(0).await;
}

#[tokio::test]
async fn fa_27_a_stream_that_stalls_after_its_opening_does_not_hang() {
    let mut frames = openai::frames(&ReplyScript::text(["half"]));
    frames.truncate(2);
    let server = Server::start(faults::stall_after(frames)).await;
    let ran = bench(&server)
        .ask_beside("q", async |user| {
            user.reads("half").await;
            tokio::time::pause();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert_eq!(ran.error_class(), Some(ErrorClass::IdleTimeout));
    assert!(ran.outcome.elapsed_ms < 63_000);
    assert!(ran.outcome.text.contains("half"));
    server.disconnected(0).await;
}

#[tokio::test]
async fn fa_20_fa_36_a_tool_ends_at_its_timeout_and_the_turn_goes_on() {
    let call = CallScript::new("c", "dig", &json!({}));
    let server = Server::start([calls([call]), answer("anyway")]).await;
    let ran = bench(&server)
        .tool(endless("dig"))
        .limits(|limits| limits.tool_timeout = Some(std::time::Duration::from_millis(50)))
        .ask("q")
        .await;
    assert_eq!(
        ran.results(),
        [(
            Some(ToolErrorCode::Timeout),
            "error (timeout): ended early".to_owned()
        )]
    );
    assert_eq!(ran.outcome.text, "anyway");
    assert_eq!(bodies(&server).len(), 2);
}

#[tokio::test]
async fn fa_28_fa_30_fa_36_a_cancel_in_mid_stream_ends_the_request_and_keeps_the_text() {
    let mut frames = openai::frames(&ReplyScript::text(["so far"]));
    frames.truncate(2);
    let server = Server::start(faults::stall_after(frames)).await;
    let ran = bench(&server)
        .ask_beside("q", async |user| {
            user.reads("so far").await;
            user.handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.outcome.transcript[1].text(), "so far");
    server.disconnected(0).await;
}

#[tokio::test]
async fn fa_28_fa_36_a_cancel_in_the_middle_of_a_batch_gives_every_call_a_result() {
    let batch = [
        look("c1"),
        CallScript::new("c2", "dig", &json!({})),
        look("c3"),
    ];
    let server = Server::start([calls(batch), answer("resumed")]).await;
    let tools = || [echo("look"), endless("dig")];
    let ran = bench(&server)
        .tools(tools())
        .ask_beside("q", async |user| {
            user.sees(|event| matches!(event, EventBody::ToolOutputDelta { .. }))
                .await;
            user.handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(
        ran.codes(),
        [
            None,
            Some(ToolErrorCode::Cancelled),
            Some(ToolErrorCode::NotRun)
        ]
    );
    assert_eq!(ran.outcome.findings.len(), 1);

    let next = bench(&server).tools(tools()).after(ran.outcome.transcript);
    assert_eq!(next.ask("go on").await.outcome.text, "resumed");
    assert_eq!(bodies(&server)[1]["messages"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn fa_36_arguments_that_do_not_fit_are_a_result() {
    let strict = tool(
        "look",
        json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}),
        |_| ToolOutcome::text("never"),
    );
    let wrong = CallScript::new("c1", "look", &json!({"where": 1}));
    let cut = CallScript::raw(Some("c2"), "look", r#"{"at": "ha"#);
    let (server, ran) = ask(vec![calls([wrong, cut]), answer("sorry")], vec![strict]).await;
    assert_eq!(ran.codes(), [Some(ToolErrorCode::InvalidArgs); 2]);
    assert!(ran.results()[0].1.contains("at"), "{:?}", ran.results());
    assert_eq!(ran.count(started), 0);
    assert_eq!(ran.outcome.text, "sorry");
    assert_eq!(bodies(&server).len(), 2);
}

#[tokio::test]
async fn fa_36_an_unknown_tool_is_a_result() {
    let call = CallScript::new("c", "fly", &json!({}));
    let (server, ran) = ask(vec![calls([call]), answer("walking")], vec![echo("look")]).await;
    assert_eq!(ran.codes(), [Some(ToolErrorCode::UnknownTool)]);
    assert_eq!(ran.outcome.text, "walking");
    assert_eq!(
        bodies(&server)[1]["messages"][2]["content"],
        "error (unknown_tool): there is no tool `fly`; the tools are: look"
    );
}

#[tokio::test]
async fn fa_13_fa_36_an_empty_reply_is_complete_with_empty_text() {
    let (server, ran) = ask(vec![answer("")], vec![]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(
        (ran.outcome.text.as_str(), ran.outcome.degraded),
        ("", false)
    );
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn fa_36_turns_and_all_they_are_made_of_go_to_other_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<rondo::TurnSetup>();
    is_shared::<rondo::TurnHandle>();
    is_shared::<rondo::HttpModel>();
    is_shared::<rondo::Toolbox>();
    is_shared::<rondo::Profile>();
    is_shared::<rondo::Outcome>();
    is_shared::<rondo::TurnEvent>();
    is_shared::<rondo::EventSender>();
    let server = Server::start(answer("from afar")).await;
    let bench = bench(&server);
    let turn = tokio::spawn(async move { bench.ask("q").await });
    assert_eq!(turn.await.unwrap().outcome.text, "from afar");
}

#[tokio::test]
async fn fa_29_usage_of_all_requests_adds_up() {
    let first = ReplyScript::calls([look("c")]).usage(100, 10);
    let second = ReplyScript::text(["ok"]).usage(130, 4);
    let responses = vec![openai::streamed(&first), openai::streamed(&second)];
    let (_server, ran) = ask(responses, vec![echo("look")]).await;
    assert_eq!(
        (ran.outcome.usage.input, ran.outcome.usage.output),
        (230, 14)
    );
    assert_eq!(
        ran.count(|event| matches!(event, EventBody::Usage { .. })),
        2
    );
}

#[tokio::test]
async fn calls_are_run_whatever_the_finish_reason_says() {
    for reason in ["stop", "length", "function_call", "something_new"] {
        let reply = ReplyScript::calls([look("c")]).finish(reason);
        let responses = vec![openai::streamed(&reply), answer("ok")];
        let (_server, ran) = ask(responses, vec![echo("look")]).await;
        assert_eq!(ran.outcome.tool_calls, 1, "{reason}");
        assert_eq!(ran.outcome.text, "ok", "{reason}");
    }
}

#[tokio::test]
async fn calls_that_were_cut_off_are_never_run() {
    let cut = CallScript::raw(Some("c"), "look", r#"{"at":"/tm"#);
    let reply = ReplyScript::calls([cut]).finish("length");
    let responses = vec![openai::streamed(&reply), answer("shorter")];
    let (_server, ran) = ask(responses, vec![echo("look")]).await;
    assert_eq!(ran.count(started), 0);
    assert_eq!(ran.codes(), [Some(ToolErrorCode::InvalidArgs)]);
}

#[tokio::test]
async fn a_continued_conversation_keeps_every_message() {
    let server = Server::start([calls([look("c")]), answer("one"), answer("two")]).await;
    let first = bench(&server).tool(echo("look")).ask("first").await;
    let second = bench(&server)
        .tool(echo("look"))
        .after(first.outcome.transcript);
    let second = second.ask("second").await;
    assert_eq!(second.outcome.text, "two");
    let sent = bodies(&server).remove(2);
    let said: Vec<&Value> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(
        said,
        [
            &json!("first"),
            &Value::Null,
            &json!(r#"look did {"at":"c"}"#),
            &json!("one"),
            &json!("second")
        ]
    );
}

#[tokio::test]
async fn a_history_with_a_lost_result_is_mended_before_it_is_sent() {
    let server = Server::start([calls([look("c")]), answer("one"), answer("two")]).await;
    let first = bench(&server).tool(echo("look")).ask("first").await;
    let mut torn = first.outcome.transcript;
    torn.remove(2);
    torn.push(Arc::new(Message::assistant("torn")));
    let ran = bench(&server).after(torn).ask("again").await;
    assert_eq!(ran.codes(), [Some(ToolErrorCode::InDoubt)]);
    assert_eq!(bodies(&server).len(), 3);
}
