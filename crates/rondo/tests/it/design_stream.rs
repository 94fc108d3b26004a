//! The streaming design through its own surface, over OpenAI Chat event streams.

use crate::stream::{answer, calls, look};
use crate::support::{FnTool, bodies, echo, endless, functions, tool};
use rondo::design::stream::{
    AccumulatedToolCall, AccumulatedTurn, AgentConfig, AgentLoop, AgentLoopResult,
    ExecutedToolCall, FaeLlmError, LlmEvent, StopReason, StreamAccumulator, TokenUsage,
    ToolExecutor, ToolRegistry, ToolResult, TurnResult, build_messages_from_result,
    validate_tool_args,
};
use rondo::types::{FinishReason, Role, ToolErrorCode};
use rondo::{Endpoint, HttpModel, Message, ModelCard, ToolOutcome, profiles};
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, Step, faults, openai};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn provider(server: &Server) -> Arc<HttpModel> {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    Arc::new(HttpModel::new(&endpoint, ModelCard::new("m")).unwrap())
}

pub(crate) fn registry(tools: impl IntoIterator<Item = FnTool>) -> ToolRegistry {
    tools
        .into_iter()
        .fold(ToolRegistry::new(), ToolRegistry::with)
}

fn agent(server: &Server, tools: impl IntoIterator<Item = FnTool>) -> AgentLoop {
    AgentLoop::new(AgentConfig::default(), provider(server), registry(tools))
}

async fn run(
    responses: Vec<Response>,
    tools: impl IntoIterator<Item = FnTool>,
) -> (Server, AgentLoopResult) {
    let server = Server::start(responses).await;
    let result = agent(&server, tools).run("q").await.unwrap();
    (server, result)
}

fn executed(id: &str) -> ExecutedToolCall {
    let result = ToolResult {
        success: true,
        content: format!("look did {{\"at\":\"{id}\"}}"),
        error: None,
    };
    ExecutedToolCall {
        call_id: id.to_owned(),
        function_name: "look".to_owned(),
        arguments: json!({"at": id}),
        result,
        duration_ms: 0,
    }
}

/// The calls of all turns, without the time they took.
fn all_calls(result: &AgentLoopResult) -> Vec<ExecutedToolCall> {
    let calls = result.turns.iter().flat_map(|turn| turn.tool_calls.clone());
    let timeless = |call: ExecutedToolCall| ExecutedToolCall {
        duration_ms: 0,
        ..call
    };
    calls.map(timeless).collect()
}

fn errors(result: &AgentLoopResult) -> Vec<Option<ToolErrorCode>> {
    let calls = all_calls(result).into_iter();
    calls.map(|call| call.result.error).collect()
}

fn returns<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value, "{json}");
}

#[test]
fn fa_1_the_configuration_has_the_profiles_defaults_and_a_builder() {
    let defaults = AgentConfig::new();
    let limits = profiles::builtin("stream").unwrap().limits;
    assert_eq!(defaults.max_turns, limits.max_steps);
    let calls = defaults.max_tool_calls_per_turn;
    assert_eq!(Some(calls), limits.max_tool_calls_per_step);
    let seconds = |timeout: Option<std::time::Duration>| timeout.unwrap().as_secs();
    assert_eq!(defaults.request_timeout_secs, seconds(limits.step_timeout));
    assert_eq!(defaults.tool_timeout_secs, seconds(limits.tool_timeout));
    let built = AgentConfig::new()
        .with_max_turns(1)
        .with_max_tool_calls_per_turn(2)
        .with_request_timeout_secs(3)
        .with_tool_timeout_secs(4)
        .with_system_prompt("Be brief.");
    let expected = AgentConfig {
        max_turns: 1,
        max_tool_calls_per_turn: 2,
        request_timeout_secs: 3,
        tool_timeout_secs: 4,
        system_prompt: Some("Be brief.".to_owned()),
    };
    assert_eq!(built, expected);
}

#[tokio::test]
async fn fa_2_fa_3_fa_4_a_result_has_every_turn_with_its_calls_and_the_sum_of_usage() {
    let first = ReplyScript::calls([look("c1"), look("c2")])
        .saying("Looking.")
        .usage(100, 10);
    let second = ReplyScript::text(["Fo", "und."]).usage(130, 4);
    let responses = vec![openai::streamed(&first), openai::streamed(&second)];
    let (_server, result) = run(responses, [echo("look")]).await;
    let usage = |input, output| TokenUsage {
        input,
        output,
        ..TokenUsage::default()
    };
    assert_eq!(all_calls(&result), [executed("c1"), executed("c2")]);
    let turns: Vec<_> = result
        .turns
        .iter()
        .map(|turn| (turn.text.as_str(), turn.finish_reason, turn.usage))
        .collect();
    assert_eq!(
        turns,
        [
            ("Looking.", FinishReason::ToolCalls, Some(usage(100, 10))),
            ("Found.", FinishReason::Stop, Some(usage(130, 4))),
        ]
    );
    assert_eq!(result.total_usage, usage(230, 14));
    assert_eq!(result.final_text, "Found.");
    assert_eq!(result.stop_reason, StopReason::Complete);
}

#[tokio::test]
async fn fa_5_each_of_the_five_reasons_to_stop_is_given() {
    let (_server, result) = run(vec![answer("ok")], []).await;
    assert_eq!(result.stop_reason, StopReason::Complete);

    let failed = vec![openai::error(401, "auth", "no such key")];
    let (_server, result) = run(failed, []).await;
    let StopReason::Error(message) = &result.stop_reason else {
        panic!("{:?}", result.stop_reason)
    };
    assert!(message.contains("no such key"), "{message}");

    let many = (0..11).map(|at| look(&at.to_string()));
    let (_server, result) = run(vec![calls(many)], [echo("look")]).await;
    assert_eq!(result.stop_reason, StopReason::MaxToolCalls);

    let server = Server::start(Script::repeat(calls([look("c")]))).await;
    let config = AgentConfig::new().with_max_turns(2);
    let agent = AgentLoop::new(config, provider(&server), registry([echo("look")]));
    let result = agent.run("q").await.unwrap();
    assert_eq!(result.stop_reason, StopReason::MaxTurns);
    assert_eq!((result.turns.len(), bodies(&server).len()), (2, 2));

    let server = Server::start(faults::zero_byte_stall()).await;
    let agent = AgentLoop::new(AgentConfig::new(), provider(&server), ToolRegistry::new());
    let cancel = async {
        server.request(0).await;
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("q"), cancel);
    assert_eq!(result.unwrap().stop_reason, StopReason::Cancelled);
}

#[tokio::test]
async fn fa_6_the_types_return_from_json_and_a_result_can_still_be_continued() {
    let (_server, result) = run(vec![calls([look("c")]), answer("ok")], [echo("look")]).await;
    returns(&result);
    returns(&result.turns[0]);
    returns(&result.turns[0].tool_calls[0]);
    returns(&AgentConfig::default());
    for reason in [
        StopReason::Complete,
        StopReason::MaxTurns,
        StopReason::MaxToolCalls,
        StopReason::Cancelled,
        StopReason::Error("why".to_owned()),
    ] {
        returns(&reason);
    }
    returns(&FaeLlmError::ToolNotFound("x".to_owned()));
    let json = serde_json::to_string(&result).unwrap();
    let stored: AgentLoopResult = serde_json::from_str(&json).unwrap();
    let server = Server::start(answer("again")).await;
    let next = agent(&server, [echo("look")]);
    next.run_continuation(&stored, "And?").await.unwrap();
    let messages = &bodies(&server)[0]["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 5);
    assert_eq!(messages[0], json!({"role": "user", "content": "q"}));
}

fn start(call_id: &str, function_name: &str) -> LlmEvent {
    LlmEvent::ToolCallStart {
        call_id: call_id.to_owned(),
        function_name: function_name.to_owned(),
    }
}

fn args(call_id: &str, fragment: &str) -> LlmEvent {
    LlmEvent::ToolCallArgsDelta {
        call_id: call_id.to_owned(),
        args_fragment: fragment.to_owned(),
    }
}

fn end(call_id: &str) -> LlmEvent {
    LlmEvent::ToolCallEnd {
        call_id: call_id.to_owned(),
    }
}

fn text(text: &str) -> LlmEvent {
    LlmEvent::TextDelta {
        text: text.to_owned(),
    }
}

fn thinking(text: &str) -> LlmEvent {
    LlmEvent::ThinkingDelta {
        text: text.to_owned(),
    }
}

fn ended(finish_reason: FinishReason) -> LlmEvent {
    LlmEvent::StreamEnd { finish_reason }
}

fn fold(events: Vec<LlmEvent>) -> AccumulatedTurn {
    let mut reply = StreamAccumulator::new();
    events
        .into_iter()
        .for_each(|event| reply.push(event).unwrap());
    reply.finish()
}

fn folded(
    text: &str,
    thinking: &str,
    calls: &[[&str; 3]],
    finish_reason: FinishReason,
) -> AccumulatedTurn {
    let call = |[id, name, arguments]: &[&str; 3]| AccumulatedToolCall {
        call_id: (*id).to_owned(),
        function_name: (*name).to_owned(),
        arguments_json: (*arguments).to_owned(),
    };
    AccumulatedTurn {
        text: text.to_owned(),
        thinking: thinking.to_owned(),
        tool_calls: calls.iter().map(call).collect(),
        finish_reason,
    }
}

#[test]
fn fa_7_fa_8_fa_9_fa_10_fa_11_fa_12_events_of_every_shape_are_folded_one_by_one() {
    use FinishReason::{Other, Stop, ToolCalls};
    let cases = [
        (vec![], folded("", "", &[], Other)),
        (
            vec![text("Hel"), text("lo"), ended(Stop)],
            folded("Hello", "", &[], Stop),
        ),
        (
            vec![thinking("hm"), text("42"), thinking("!"), ended(Stop)],
            folded("42", "hm!", &[], Stop),
        ),
        (
            vec![
                start("a", "look"),
                args("a", "{\"x\""),
                args("a", ":1}"),
                end("a"),
                ended(ToolCalls),
            ],
            folded("", "", &[["a", "look", "{\"x\":1}"]], ToolCalls),
        ),
        (
            vec![
                start("a", "look"),
                start("b", "smell"),
                args("b", "{\"y\":"),
                args("a", "{}"),
                args("b", "2}"),
                end("b"),
                end("a"),
                ended(ToolCalls),
            ],
            folded(
                "",
                "",
                &[["a", "look", "{}"], ["b", "smell", "{\"y\":2}"]],
                ToolCalls,
            ),
        ),
        // A call without its end is not whole, and one that never began is none.
        (
            vec![
                start("a", "look"),
                args("a", "{\"x\""),
                args("c", "{}"),
                end("c"),
            ],
            folded("", "", &[], Other),
        ),
    ];
    for (events, expected) in cases {
        assert_eq!(fold(events), expected);
    }
}

#[test]
fn fa_13_a_broken_stream_is_a_typed_error_and_keeps_what_came() {
    let mut reply = StreamAccumulator::new();
    reply.push(text("half")).unwrap();
    reply.push(start("a", "look")).unwrap();
    let broken = LlmEvent::StreamError {
        error: "reset".to_owned(),
    };
    let error = reply.push(broken).unwrap_err();
    assert_eq!(error, FaeLlmError::StreamError("reset".to_owned()));
    assert_eq!(error.code(), "stream_error");
    assert_eq!(reply.finish(), folded("half", "", &[], FinishReason::Other));
}

#[test]
fn fa_14_fa_15_fa_16_arguments_are_checked_by_the_schema_alone() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    });
    let check = |text: &str| validate_tool_args("read", text, &schema);
    assert_eq!(
        check(r#"{"path":"a","more":1}"#),
        Ok(json!({"path": "a", "more": 1}))
    );
    for (wrong, names) in [(r#"{"path":1}"#, "path"), ("{}", "path"), ("{", "read")] {
        let error = check(wrong).unwrap_err();
        assert_eq!(error.code(), "tool_validation_error");
        assert!(error.to_string().contains(names), "{error}");
    }
    assert!(validate_tool_args("any", "{}", &json!({})).is_ok());
    let error = validate_tool_args("any", "{}", &json!({"type": 7})).unwrap_err();
    assert_eq!(error.code(), "config_error");
}

pub(crate) fn picky() -> FnTool {
    let schema =
        json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]});
    tool("look", schema, |arguments| match arguments["at"].as_str() {
        Some("nowhere") => ToolOutcome::error(ToolErrorCode::Failed, "there is no such place"),
        _ => ToolOutcome::text(format!("look did {arguments}")),
    })
}

#[tokio::test]
async fn fa_1_limits_may_be_as_large_as_their_types() {
    let server = Server::start(vec![calls([look("a")]), answer("done")]).await;
    let config = AgentConfig::new()
        .with_max_turns(u32::MAX)
        .with_max_tool_calls_per_turn(u32::MAX)
        .with_request_timeout_secs(u64::MAX)
        .with_tool_timeout_secs(u64::MAX);
    let agent = AgentLoop::new(config, provider(&server), registry([echo("look")]));
    let result = agent.run("q").await.unwrap();
    assert_eq!(result.stop_reason, StopReason::Complete);
    assert_eq!(errors(&result), [None]);
}

#[tokio::test]
async fn fa_36_text_only() {
    let (server, result) = run(vec![answer("Hello!")], []).await;
    assert_eq!(result.final_text, "Hello!");
    assert_eq!(result.turns.len(), 1);
    assert_eq!(result.turns[0].text, "Hello!");
    assert_eq!(bodies(&server)[0]["stream"], true);
}

#[tokio::test]
async fn fa_22_fa_31_fa_36_one_tool() {
    use rondo::Tool as _;
    let (server, result) = run(vec![calls([look("c1")]), answer("found")], [echo("look")]).await;
    assert_eq!(all_calls(&result), [executed("c1")]);
    assert_eq!(result.final_text, "found");
    assert_eq!(
        bodies(&server)[0]["tools"],
        functions(&[echo("look").spec()])
    );
}

#[tokio::test]
async fn fa_24_fa_36_tools_over_several_turns() {
    let responses = vec![
        calls([look("c1")]),
        calls([look("c2"), look("c3")]),
        answer("done"),
    ];
    let (server, result) = run(responses, [echo("look")]).await;
    let counts: Vec<usize> = result
        .turns
        .iter()
        .map(|turn| turn.tool_calls.len())
        .collect();
    assert_eq!(counts, [1, 2, 0]);
    assert_eq!(all_calls(&result), ["c1", "c2", "c3"].map(executed));
    assert_eq!(bodies(&server).len(), 3);
}

#[tokio::test]
async fn fa_25_fa_36_max_turns() {
    for (turns, reason) in [(3, StopReason::Complete), (2, StopReason::MaxTurns)] {
        let server = Server::start([calls([look("a")]), calls([look("b")]), answer("c")]).await;
        let config = AgentConfig::new().with_max_turns(turns);
        let agent = AgentLoop::new(config, provider(&server), registry([echo("look")]));
        let result = agent.run("q").await.unwrap();
        assert_eq!(result.stop_reason, reason);
        assert_eq!(bodies(&server).len(), usize::try_from(turns).unwrap());
        assert_eq!(all_calls(&result), ["a", "b"].map(executed));
    }
    let server = Server::start(answer("never")).await;
    let config = AgentConfig::new().with_max_turns(0);
    let agent = AgentLoop::new(config, provider(&server), ToolRegistry::new());
    assert_eq!(agent.run("q").await.unwrap_err().code(), "config_error");
}

#[tokio::test]
async fn fa_26_fa_36_too_many_calls() {
    let many = |count: u32| calls((0..count).map(|at| look(&at.to_string())));
    for (count, expected) in [
        (10, vec![None; 10]),
        (11, vec![Some(ToolErrorCode::NotRun); 11]),
    ] {
        let (_server, result) = run(vec![many(count), answer("ok")], [echo("look")]).await;
        assert_eq!(errors(&result), expected);
        assert_eq!(result.stop_reason == StopReason::MaxToolCalls, count == 11);
    }
}

#[tokio::test]
async fn fa_27_fa_36_request_timeout() {
    let half = openai::frames(&ReplyScript::text(["half"])).into_iter();
    let stalled = faults::stall_after(half.take(2).collect());
    for response in [faults::zero_byte_stall(), stalled] {
        let server = Server::start(response).await;
        let agent = agent(&server, []);
        let wait = async {
            server.request(0).await;
            tokio::time::pause();
        };
        let (result, ()) = tokio::join!(agent.run("q"), wait);
        tokio::time::resume();
        let result = result.unwrap();
        let StopReason::Error(message) = &result.stop_reason else {
            panic!("{:?}", result.stop_reason)
        };
        assert!(message.starts_with("step_timeout"), "{message}");
        assert_eq!(result.turns[0].finish_reason, FinishReason::Error);
        server.disconnected(0).await;
    }
}

#[tokio::test]
async fn fa_36_tool_timeout() {
    let call = CallScript::new("c", "dig", &json!({}));
    let server = Server::start([calls([call]), answer("anyway")]).await;
    let config = AgentConfig::new().with_tool_timeout_secs(0);
    let agent = AgentLoop::new(config, provider(&server), registry([endless("dig")]));
    let result = agent.run("q").await.unwrap();
    assert_eq!(errors(&result), [Some(ToolErrorCode::Timeout)]);
    assert_eq!(result.final_text, "anyway");
}

#[tokio::test]
async fn fa_28_fa_30_fa_36_cancel_in_mid_stream() {
    let half = openai::frames(&ReplyScript::text(["so far"]));
    let gate = rondo_testkit::Gate::new();
    let response = Response::sse(half.into_iter().take(2))
        .step(Step::Gate(gate.clone()))
        .step(Step::Stall);
    let server = Server::start([response, answer("later")]).await;
    let agent = agent(&server, []);
    let cancel = async {
        gate.reached().await;
        gate.open();
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("q"), cancel);
    let result = result.unwrap();
    assert_eq!(result.stop_reason, StopReason::Cancelled);
    server.disconnected(0).await;

    // What was cancelled can be gone on with, by the same loop.
    let next = agent.run_continuation(&result, "go on").await.unwrap();
    assert_eq!(next.final_text, "later");
}

#[tokio::test]
async fn fa_28_fa_36_cancel_in_the_middle_of_a_tool() {
    let dig = CallScript::new("c2", "dig", &json!({}));
    let server = Server::start([calls([look("c1"), dig, look("c3")]), answer("resumed")]).await;
    let began = CancellationToken::new();
    let begins = began.clone();
    let dig = FnTool::running("dig", json!({"type": "object"}), move |call| {
        begins.cancel();
        Box::pin(async move {
            call.cancel.cancelled().await;
            ToolOutcome::error(ToolErrorCode::Cancelled, "ended early")
        })
    });
    let agent = agent(&server, [echo("look"), dig]);
    let cancel = async {
        began.cancelled().await;
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("q"), cancel);
    let result = result.unwrap();
    let (cancelled, not_run) = (ToolErrorCode::Cancelled, ToolErrorCode::NotRun);
    assert_eq!(errors(&result), [None, Some(cancelled), Some(not_run)]);
    assert_eq!(result.stop_reason, StopReason::Cancelled);
    agent.run_continuation(&result, "go on").await.unwrap();
    assert_eq!(bodies(&server)[1]["messages"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn fa_36_invalid_arguments() {
    let wrong = CallScript::new("c", "look", &json!({"where": 1}));
    let (_server, result) = run(vec![calls([wrong]), answer("sorry")], [picky()]).await;
    assert_eq!(errors(&result), [Some(ToolErrorCode::InvalidArgs)]);
    assert_eq!(result.final_text, "sorry");
}

#[tokio::test]
async fn fa_36_unknown_tool() {
    let call = CallScript::new("c", "fly", &json!({}));
    let (_server, result) = run(vec![calls([call]), answer("walking")], [picky()]).await;
    assert_eq!(errors(&result), [Some(ToolErrorCode::UnknownTool)]);
    assert_eq!(result.final_text, "walking");
}

#[tokio::test]
async fn fa_36_empty_response() {
    let (server, result) = run(vec![answer("")], []).await;
    assert_eq!(result.stop_reason, StopReason::Complete);
    assert_eq!(result.final_text, "");
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn fa_6_fa_36_all_types_go_to_other_threads() {
    fn is<T: Send + Sync + Debug>() {}
    fn copies<T: Send + Sync + Debug + Clone>() {}
    is::<AgentLoop>();
    is::<ToolExecutor>();
    is::<StreamAccumulator>();
    copies::<AgentConfig>();
    copies::<AgentLoopResult>();
    copies::<TurnResult>();
    copies::<ExecutedToolCall>();
    copies::<StopReason>();
    copies::<AccumulatedTurn>();
    copies::<AccumulatedToolCall>();
    copies::<LlmEvent>();
    copies::<ToolRegistry>();
    copies::<FaeLlmError>();
}

#[tokio::test]
async fn fa_32_a_run_starts_from_given_messages() {
    let server = Server::start(answer("ok")).await;
    let config = AgentConfig::new().with_system_prompt("Be brief.");
    let agent = AgentLoop::new(config, provider(&server), ToolRegistry::new());
    let messages = vec![
        Message::user("a"),
        Message::assistant("b"),
        Message::user("c"),
    ];
    agent.run_with_messages(messages.clone()).await.unwrap();
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let sent = json!([
        said("system", "Be brief."),
        said("user", "a"),
        said("assistant", "b"),
        said("user", "c"),
    ]);
    assert_eq!(bodies(&server)[0]["messages"], sent);
    for wrong in [&messages[..2], &[]] {
        let error = agent.run_with_messages(wrong.to_vec()).await.unwrap_err();
        assert_eq!(error.code(), "request_error");
    }
    assert_eq!(bodies(&server).len(), 1);
}

/// Ids of the results in a request, in order.
fn answered(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter_map(|it| it["tool_call_id"].as_str())
        .collect()
}

#[tokio::test]
async fn fa_33_fa_34_a_continuation_loses_nothing_that_was_said_or_found() {
    let reply = ReplyScript::calls([look("c1")]).thinking("First I look.");
    let responses = [
        openai::streamed(&reply),
        answer("one"),
        calls([look("c2")]),
        answer("two"),
        answer("three"),
    ];
    let server = Server::start(responses).await;
    let agent = agent(&server, [echo("look")]);
    let first = agent.run("q1").await.unwrap();
    let second = agent.run_continuation(&first, "q2").await.unwrap();
    assert_eq!(all_calls(&second), [executed("c2")]);

    let mut messages = build_messages_from_result(&second);
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    let turn = [Role::User, Role::Assistant, Role::Tool, Role::Assistant];
    assert_eq!(roles, [turn, turn].concat());
    assert!(
        build_messages_from_result(&first)
            .iter()
            .zip(&messages)
            .all(|(a, b)| a == b)
    );
    let ids: std::collections::HashSet<_> = messages
        .iter()
        .flat_map(|message| message.tool_calls().map(|call| call.id.clone()))
        .collect();
    assert_eq!(ids.len(), 2);

    messages.push(Message::user("q3"));
    agent.run_with_messages(messages).await.unwrap();
    let last = bodies(&server).pop().unwrap();
    assert_eq!(answered(&last), ["c1", "c2"]);
    let users: Vec<&Value> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["role"] == "user")
        .map(|it| &it["content"])
        .collect();
    assert_eq!(users, ["q1", "q2", "q3"]);
}
