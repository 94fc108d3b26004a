//! Tools that ignore their token: a call still ends at its limit, and a run when it is cancelled.

use crate::design_stream::registry;
use crate::support::{FnTool, echo};
use rondo::design::hub::{self, ChatHub, InboundMessage, LlmToolCall};
use rondo::design::stream::{
    AccumulatedToolCall, AgentConfig, AgentLoop, ExecutedToolCall, FaeLlmError, StopReason,
    ToolExecutor, ToolRegistry,
};
use rondo::types::ToolErrorCode;
use rondo::{Endpoint, HttpModel, ModelCard, ToolOutcome};
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use serde_json::json;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The most that a call may take beyond its limit, and a run beyond its cancel.
const LATE_MAX: Duration = Duration::from_millis(100);

/// A tool that sleeps and then succeeds, whatever its token says.
fn sleeper(milliseconds: u64) -> FnTool {
    FnTool::running("dig", json!({"type": "object"}), move |_| {
        Box::pin(async move {
            sleep(Duration::from_millis(milliseconds)).await;
            ToolOutcome::text("found late")
        })
    })
}

/// A tool that ends when its token fires, and then says this.
fn obedient(said: impl Fn() -> ToolOutcome + Send + Sync + 'static) -> FnTool {
    let said = Arc::new(said);
    FnTool::running("dig", json!({"type": "object"}), move |call| {
        let said = Arc::clone(&said);
        Box::pin(async move {
            call.cancel.cancelled().await;
            said()
        })
    })
}

/// A tool that blocks its thread until the returned end is dropped.
fn blocker() -> (FnTool, mpsc::Sender<()>) {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let tool = FnTool::running("dig", json!({"type": "object"}), move |_| {
        let blocked = Arc::clone(&blocked);
        Box::pin(async move {
            let _ = blocked.lock().unwrap().recv();
            ToolOutcome::text("found late")
        })
    });
    (tool, release)
}

fn code(ended: &Result<ExecutedToolCall, FaeLlmError>) -> &str {
    ended.as_ref().map_or_else(|error| error.code(), |_| "ok")
}

fn dig(id: &str) -> AccumulatedToolCall {
    AccumulatedToolCall {
        call_id: id.to_owned(),
        function_name: "dig".to_owned(),
        arguments_json: "{}".to_owned(),
    }
}

fn call_of_dig() -> LlmToolCall {
    LlmToolCall {
        id: "a".to_owned(),
        name: "dig".to_owned(),
        arguments: json!({}),
    }
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::new("local", "openai-chat", server.url("/v1"))
}

fn digs_and_then(text: &str, streamed: bool) -> [rondo_testkit::Response; 2] {
    let replies = [
        ReplyScript::calls([CallScript::new("a", "dig", &json!({}))]),
        ReplyScript::text([text]),
    ];
    match streamed {
        true => replies.map(|reply| openai::streamed(&reply)),
        false => replies.map(|reply| openai::whole(&reply)),
    }
}

fn hub_agent(server: &Server, tools: ToolRegistry) -> hub::AgentLoop {
    let mut endpoint = endpoint(server);
    endpoint.streaming = false;
    let model = HttpModel::new(&endpoint, ModelCard::new("m")).unwrap();
    let provider = hub::ModelProvider::new(Arc::new(model));
    hub::AgentLoop::new(Arc::new(ChatHub::new()), Arc::new(provider)).with_tools(tools)
}

#[tokio::test(start_paused = true)]
async fn fa_20_a_tool_that_ignores_its_token_is_a_timeout_error_at_its_limit() {
    for milliseconds in [1_000, 1_020, 3_000, 100_000] {
        let executor = ToolExecutor::new(registry([sleeper(milliseconds)]), 1);
        let begun = Instant::now();
        let never = CancellationToken::new();
        let ended = executor.execute_tool("dig", "{}", &never).await;
        assert_eq!(code(&ended), "timeout_error", "{ended:?}");
        assert!(begun.elapsed() >= Duration::from_secs(1));
        assert!(begun.elapsed() <= Duration::from_secs(1) + LATE_MAX);
    }
    let executor = ToolExecutor::new(registry([sleeper(999)]), 1);
    let never = CancellationToken::new();
    let ended = executor.execute_tool("dig", "{}", &never).await.unwrap();
    assert_eq!(ended.duration_ms, 999);
    assert_eq!(ended.result.content, "found late");
}

#[tokio::test(start_paused = true)]
async fn fa_20_what_a_tool_says_after_its_limit_is_a_timeout_error_whatever_it_says() {
    let failed = || ToolOutcome::error(ToolErrorCode::Failed, "interrupted");
    let ended_early = || ToolOutcome::error(ToolErrorCode::Cancelled, "ended early");
    let tools = [
        obedient(|| ToolOutcome::text("done after all")),
        obedient(failed),
        obedient(ended_early),
        obedient(|| panic!("it broke")),
    ];
    for tool in tools {
        let executor = ToolExecutor::new(registry([tool]), 1);
        let never = CancellationToken::new();
        let ended = executor.execute_tool("dig", "{}", &never).await;
        assert_eq!(code(&ended), "timeout_error", "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fa_20_fa_21_a_tool_that_ignores_its_token_ends_when_its_batch_is_cancelled() {
    let executor = ToolExecutor::new(registry([sleeper(60_000)]), 30);
    let cancel = CancellationToken::new();
    let begun = Instant::now();
    let stop = async {
        sleep(Duration::from_secs(2)).await;
        cancel.cancel();
    };
    let batch = vec![dig("a"), dig("b")];
    let (ended, ()) = tokio::join!(executor.execute_tools(batch, &cancel), stop);
    let codes: Vec<_> = ended.iter().map(code).collect();
    assert_eq!(codes, ["cancelled", "cancelled"]);
    assert!(begun.elapsed() <= Duration::from_secs(2) + LATE_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fa_20_a_tool_that_blocks_its_thread_does_not_hold_up_its_limit_or_a_cancel() {
    let (tool, release) = blocker();
    let executor = ToolExecutor::new(registry([tool]), 0);
    let never = CancellationToken::new();
    let ended = executor.execute_tool("dig", "{}", &never).await;
    assert_eq!(code(&ended), "timeout_error");
    drop(release);

    let (tool, release) = blocker();
    let executor = ToolExecutor::new(registry([tool]), 600);
    let cancel = CancellationToken::new();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(executor.execute_tool("dig", "{}", &cancel), stop);
    assert_eq!(code(&ended), "cancelled");
    drop(release);
}

/// On one thread nothing else can end the call, but its result still comes too late.
#[tokio::test]
async fn hub_12_a_tool_that_blocks_the_only_thread_past_its_limit_is_a_timeout_result() {
    let limit = Duration::from_millis(20);
    let blocks = FnTool::running("dig", json!({"type": "object"}), move |_| {
        let begun = std::time::Instant::now();
        while begun.elapsed() < limit * 2 {
            std::thread::yield_now();
        }
        Box::pin(async { ToolOutcome::text("found late") })
    });
    let server = Server::start(Vec::new()).await;
    let agent = hub_agent(&server, ToolRegistry::new().with(blocks)).with_tool_timeout(limit);
    let result = agent.execute_single_tool(&call_of_dig()).await;
    assert!(result.content.contains("did not end within 0.02 s"));
}

#[tokio::test]
async fn fa_20_fa_28_fa_30_a_run_whose_tool_ignores_its_token_ends_when_it_is_cancelled() {
    let server = Server::start(digs_and_then("later", true)).await;
    let provider = HttpModel::new(&endpoint(&server), ModelCard::new("m")).unwrap();
    let began = CancellationToken::new();
    let begins = began.clone();
    let ignoring = FnTool::running("dig", json!({"type": "object"}), move |_| {
        begins.cancel();
        Box::pin(std::future::pending())
    });
    let tools = registry([ignoring, echo("look")]);
    let agent = AgentLoop::new(AgentConfig::default(), Arc::new(provider), tools);
    let cancel = async {
        began.cancelled().await;
        agent.cancel();
        std::time::Instant::now()
    };
    let (result, cancelled_at) = tokio::join!(agent.run("q"), cancel);
    assert!(cancelled_at.elapsed() <= LATE_MAX);
    let result = result.unwrap();
    assert_eq!(result.stop_reason, StopReason::Cancelled);
    let call = &result.turns[0].tool_calls[0];
    assert_eq!(call.result.error, Some(ToolErrorCode::Cancelled));
    let next = agent.run_continuation(&result, "go on").await.unwrap();
    assert_eq!(next.final_text, "later");
}

#[tokio::test]
async fn hub_12_a_tool_that_ignores_its_token_ends_at_its_limit_and_the_chat_is_answered() {
    let server = Server::start(digs_and_then("anyway", false)).await;
    let tools = ToolRegistry::new().with(sleeper(600_000));
    let agent = hub_agent(&server, tools).with_tool_timeout(Duration::from_millis(20));
    let begun = std::time::Instant::now();
    let message = InboundMessage::new("telegram", "7", "go");
    let reply = agent.process_message(&message).await.unwrap();
    assert_eq!(reply.content, "anyway");
    // Without the bound, the call alone would take five seconds longer than its limit.
    assert!(begun.elapsed() < Duration::from_secs(4));
    let sent = server.requests()[1].json();
    let told = sent["messages"][2]["content"].to_string();
    assert!(told.contains("did not end within 0.02 s"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn hub_12_one_call_of_a_tool_that_ignores_its_token_ends_at_its_limit() {
    let server = Server::start(Vec::new()).await;
    let agent = hub_agent(&server, ToolRegistry::new().with(sleeper(31_000)));
    let begun = Instant::now();
    let result = agent.execute_single_tool(&call_of_dig()).await;
    assert!(begun.elapsed() <= Duration::from_secs(30) + LATE_MAX);
    assert!(result.content.contains("did not end within 30 s"));
}
