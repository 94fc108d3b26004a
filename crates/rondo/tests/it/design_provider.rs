//! The provider of the streaming design, of a program's own and of this crate, and results that a program builds.

use crate::design_stream::registry;
use crate::support::{FnTool, bodies, echo};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use rondo::design::stream::{
    AgentConfig, AgentLoop, AgentLoopResult, ExecutedToolCall, FaeLlmError, FinishReason, LlmEvent,
    LlmEventStream, Message, ProviderAdapter, StopReason, StreamAccumulator, TokenUsage,
    ToolDefinition, ToolExecutor, ToolResult, ToolTiming, TurnResult, build_messages_from_result,
};
use rondo::types::{Role, ToolErrorCode};
use rondo::{Endpoint, HttpModel, ModelCard, ToolOutcome};
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Input of a provider: the system prompt, the messages, and the names of the tools.
type Sent = (Option<String>, Vec<Message>, Vec<String>);

/// A provider that streams what it is given, reply by reply, and then nothing forever.
#[derive(Default)]
struct Scripted {
    replies: Mutex<Vec<Vec<LlmEvent>>>,
    sent: Mutex<Vec<Sent>>,
}

impl Scripted {
    fn new(replies: impl IntoIterator<Item = Vec<LlmEvent>>) -> Arc<Self> {
        Arc::new(Self {
            replies: Mutex::new(replies.into_iter().collect()),
            sent: Mutex::default(),
        })
    }
}

#[async_trait]
impl ProviderAdapter for Scripted {
    async fn send(
        &self,
        system_prompt: Option<&str>,
        messages: &[Message],
        tools: &[ToolDefinition],
    ) -> Result<LlmEventStream, FaeLlmError> {
        let names = tools.iter().map(|it| it.name.clone()).collect();
        let sent = (system_prompt.map(str::to_owned), messages.to_vec(), names);
        self.sent.lock().unwrap().push(sent);
        let mut replies = self.replies.lock().unwrap();
        match replies.is_empty() {
            true => Ok(Box::pin(futures_util::stream::pending())),
            false => Ok(Box::pin(futures_util::stream::iter(replies.remove(0)))),
        }
    }
}

/// Has no reply.
struct Refuses;

#[async_trait]
impl ProviderAdapter for Refuses {
    async fn send(
        &self,
        _: Option<&str>,
        _: &[Message],
        _: &[ToolDefinition],
    ) -> Result<LlmEventStream, FaeLlmError> {
        Err(FaeLlmError::RequestError("no such model".to_owned()))
    }
}

fn agent(provider: Arc<dyn ProviderAdapter>) -> AgentLoop {
    let config = AgentConfig::new().with_system_prompt("Be brief.");
    AgentLoop::new(config, provider, registry([echo("look")]))
}

fn text(text: &str) -> LlmEvent {
    LlmEvent::TextDelta {
        text: text.to_owned(),
    }
}

fn started(call_id: &str) -> LlmEvent {
    LlmEvent::ToolCallStart {
        call_id: call_id.to_owned(),
        function_name: "look".to_owned(),
    }
}

fn args(call_id: &str, args_fragment: &str) -> LlmEvent {
    LlmEvent::ToolCallArgsDelta {
        call_id: call_id.to_owned(),
        args_fragment: args_fragment.to_owned(),
    }
}

fn ended(call_id: &str) -> LlmEvent {
    LlmEvent::ToolCallEnd {
        call_id: call_id.to_owned(),
    }
}

fn stop(finish_reason: FinishReason) -> LlmEvent {
    LlmEvent::StreamEnd { finish_reason }
}

fn usage(input: u64, output: u64) -> TokenUsage {
    TokenUsage {
        input,
        output,
        ..TokenUsage::default()
    }
}

fn executed(id: &str, ok: bool) -> ExecutedToolCall {
    ExecutedToolCall {
        call_id: id.to_owned(),
        function_name: "look".to_owned(),
        arguments: json!({"at": id}),
        result: ToolResult {
            success: ok,
            content: format!("look did {{\"at\":\"{id}\"}}"),
            error: (!ok).then_some(ToolErrorCode::Failed),
        },
        duration_ms: 0,
    }
}

/// The two calls of a reply, interleaved.
fn two_calls() -> Vec<LlmEvent> {
    vec![
        LlmEvent::ThinkingDelta {
            text: "hm".to_owned(),
        },
        text("Looking."),
        started("a"),
        started("b"),
        args("b", "{\"at\":"),
        args("a", "{\"at\":\"a\"}"),
        args("b", "\"b\"}"),
        ended("b"),
        ended("a"),
        LlmEvent::Usage(usage(10, 5)),
        stop(FinishReason::ToolCalls),
    ]
}

#[tokio::test]
async fn fa_7_fa_22_fa_24_the_events_of_a_providers_stream_feed_the_loop() {
    let last = vec![
        text("Bo"),
        text("th."),
        LlmEvent::Usage(usage(20, 2)),
        stop(FinishReason::Stop),
    ];
    let provider = Scripted::new([two_calls(), last]);
    let mut result = agent(Arc::clone(&provider) as _).run("q").await.unwrap();
    for call in result.turns.iter_mut().flat_map(|it| &mut it.tool_calls) {
        call.duration_ms = 0;
    }
    let turns = [
        TurnResult {
            text: "Looking.".to_owned(),
            tool_calls: vec![executed("a", true), executed("b", true)],
            finish_reason: FinishReason::ToolCalls,
            usage: Some(usage(10, 5)),
        },
        TurnResult {
            text: "Both.".to_owned(),
            tool_calls: vec![],
            finish_reason: FinishReason::Stop,
            usage: Some(usage(20, 2)),
        },
    ];
    assert_eq!(result.turns, turns);
    assert_eq!(result.final_text, "Both.");
    assert_eq!(result.total_usage, usage(30, 7));
    assert_eq!(result.stop_reason, StopReason::Complete);

    let sent = provider.sent.lock().unwrap().clone();
    let (system, messages, tools) = &sent[1];
    assert_eq!(system.as_deref(), Some("Be brief."));
    assert_eq!(*tools, ["look"]);
    let roles: Vec<Role> = messages.iter().map(|it| it.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    let ids: Vec<_> = messages[2].results().map(|it| it.wire_id.clone()).collect();
    assert_eq!(ids, [Some("a".to_owned()), Some("b".to_owned())]);
}

#[tokio::test]
async fn fa_13_fa_22_a_stream_that_breaks_and_a_request_that_fails_are_results() {
    let broken = LlmEvent::StreamError {
        error: "line cut".to_owned(),
    };
    let provider = Scripted::new([two_calls(), vec![text("half"), broken]]);
    let result = agent(provider).run("q").await.unwrap();
    let StopReason::Error(message) = &result.stop_reason else {
        panic!("{:?}", result.stop_reason)
    };
    assert!(message.contains("line cut"), "{message}");
    assert_eq!(
        (result.turns.len(), result.turns[1].text.as_str()),
        (2, "half")
    );

    let result = agent(Arc::new(Refuses)).run("q").await.unwrap();
    let StopReason::Error(message) = &result.stop_reason else {
        panic!("{:?}", result.stop_reason)
    };
    assert!(message.contains("no such model"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn fa_22_fa_27_fa_30_a_provider_that_sends_nothing_ends_in_time_and_when_it_is_cancelled() {
    let config = AgentConfig::new().with_request_timeout_secs(7);
    let agent = AgentLoop::new(config, Scripted::new([]), registry([]));
    let begun = Instant::now();
    let result = agent.run("q").await.unwrap();
    assert!(matches!(result.stop_reason, StopReason::Error(_)));
    assert_eq!(begun.elapsed(), Duration::from_secs(7));

    let begun = Instant::now();
    let cancel = async {
        sleep(Duration::from_secs(2)).await;
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("q"), cancel);
    assert_eq!(result.unwrap().stop_reason, StopReason::Cancelled);
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn fa_4_fa_34_a_result_that_was_built_literally_continues_from_its_turns() {
    let result = AgentLoopResult {
        turns: vec![
            TurnResult {
                text: "Looking.".to_owned(),
                tool_calls: vec![executed("a", true), executed("b", false)],
                finish_reason: FinishReason::ToolCalls,
                usage: None,
            },
            TurnResult {
                text: "One of two.".to_owned(),
                tool_calls: vec![],
                finish_reason: FinishReason::Stop,
                usage: None,
            },
        ],
        final_text: "One of two.".to_owned(),
        total_usage: usage(1, 2),
        stop_reason: StopReason::Complete,
        messages: Vec::new(),
    };
    let server = Server::start(openai::streamed(&ReplyScript::text(["Again."]))).await;
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    let agent = AgentLoop::new(
        AgentConfig::new(),
        Arc::new(model),
        registry([echo("look")]),
    );
    let next = agent.run_continuation(&result, "And now?").await.unwrap();
    assert_eq!(next.final_text, "Again.");
    let called = |id: &str| {
        let arguments = json!({"at": id}).to_string();
        json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}})
    };
    let returned = |id: &str| {
        let content = format!("look did {{\"at\":\"{id}\"}}");
        json!({"role": "tool", "tool_call_id": id, "content": content})
    };
    let expected = json!([
        {"role": "assistant", "content": "Looking.", "tool_calls": [called("a"), called("b")]},
        returned("a"),
        returned("b"),
        {"role": "assistant", "content": "One of two."},
        {"role": "user", "content": "And now?"},
    ]);
    assert_eq!(bodies(&server)[0]["messages"], expected);
    assert_eq!(build_messages_from_result(&result).len(), 3);
    // The next result has the messages of both.
    assert_eq!(next.messages.len(), 5);
}

#[tokio::test]
async fn fa_22_each_model_of_this_crate_is_a_provider_whose_events_fold() {
    let call = CallScript::new("a", "look", &json!({"at": 1}));
    let reply = ReplyScript::calls([call]).saying("Looking.");
    let server = Server::start(openai::streamed(&reply)).await;
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    let provider: Arc<dyn ProviderAdapter> = Arc::new(model);
    let messages = [Message::user("q")];
    let sent = provider.send(Some("Be brief."), &messages, &[]).await;
    let mut events = sent.unwrap();
    let mut turn = StreamAccumulator::new();
    while let Some(event) = events.next().await {
        turn.push(event).unwrap();
    }
    let turn = turn.finish();
    assert_eq!(turn.text, "Looking.");
    let calls: Vec<_> = turn
        .tool_calls
        .iter()
        .map(|it| it.call_id.as_str())
        .collect();
    assert_eq!(calls, ["a"]);
    let said = &bodies(&server)[0]["messages"][0];
    assert_eq!(*said, json!({"role": "system", "content": "Be brief."}));
}

#[tokio::test(start_paused = true)]
async fn fa_21_the_time_of_each_tool_is_tracked_whether_its_calls_succeed_or_not() {
    let sleeper = |name: &str, ms: u64| {
        FnTool::running(name, json!({"type": "object"}), move |_| {
            Box::pin(async move {
                sleep(Duration::from_millis(ms)).await;
                ToolOutcome::error(ToolErrorCode::Failed, "no")
            })
        })
    };
    let executor = ToolExecutor::new(registry([sleeper("nap", 300), sleeper("sleep", 9_000)]), 1);
    let never = CancellationToken::new();
    for name in ["nap", "nap", "sleep", "fly"] {
        let _ = executor.execute_tool(name, "{}", &never).await;
    }
    let timings = executor.timings();
    let nap = ToolTiming {
        calls: 2,
        total_ms: 600,
        max_ms: 300,
    };
    assert_eq!(timings["nap"], nap);
    assert_eq!(timings["sleep"].calls, 1);
    assert!((1_000..=1_100).contains(&timings["sleep"].max_ms));
    assert_eq!(timings.len(), 2);
}
