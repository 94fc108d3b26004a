//! The executor of the streaming design: calls that came from elsewhere.

use crate::design_stream::{picky, registry};
use crate::support::{FnTool, echo, endless, tool};
use async_trait::async_trait;
use rondo::design::stream::{
    AccumulatedToolCall, ExecutedToolCall, FaeLlmError, ToolExecutor, ToolResult,
};
use rondo::types::ToolErrorCode;
use rondo::{Gate, GateRequest, ToolOutcome, Verdict};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

type Executed = Result<ExecutedToolCall, FaeLlmError>;

/// Calls, as they begin and end.
type Log = Arc<Mutex<Vec<String>>>;

fn call(id: &str, name: &str) -> AccumulatedToolCall {
    AccumulatedToolCall {
        call_id: id.to_owned(),
        function_name: name.to_owned(),
        arguments_json: format!("{{\"at\":\"{id}\"}}"),
    }
}

fn codes(results: &[Executed]) -> Vec<&str> {
    results
        .iter()
        .map(|result| result.as_ref().map_or_else(|error| error.code(), |_| "ok"))
        .collect()
}

/// A tool that only looks, whose calls may overlap, and that takes longer the earlier it is called.
fn logging(log: &Log) -> FnTool {
    let log = Arc::clone(log);
    let looks = FnTool::running("look", json!({"type": "object"}), move |call| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            let at = call.arguments["at"].as_str().unwrap().to_owned();
            let earlier = log.lock().unwrap().len() as u64;
            log.lock().unwrap().push(format!("{at} begins"));
            sleep(Duration::from_secs(60 - earlier)).await;
            log.lock().unwrap().push(format!("{at} ends"));
            ToolOutcome::text(at)
        })
    });
    looks.shared()
}

pub(crate) struct Refuse;

#[async_trait]
impl Gate for Refuse {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Deny {
            reason: "not today".to_owned(),
        }
    }
}

#[tokio::test]
async fn fa_20_one_call_is_looked_up_checked_timed_and_bounded() {
    let executor = ToolExecutor::new(registry([picky(), endless("dig")]), 0);
    let never = CancellationToken::new();
    let one = |name: &'static str, args: &'static str| executor.execute_tool(name, args, &never);

    let error = one("fly", "{}").await.unwrap_err();
    assert_eq!(error.code(), "tool_not_found");
    let error = one("fly", r#"{"at": 7, "#).await.unwrap_err();
    assert_eq!(error.code(), "tool_not_found");
    let error = one("look", r#"{"at": 7, "#).await.unwrap_err();
    assert_eq!(error.code(), "tool_validation_error");
    let error = one("look", "{}").await.unwrap_err();
    assert_eq!(error.code(), "tool_validation_error");
    let ended = timeout(Duration::from_secs(30), one("dig", "{}")).await;
    let error = ended.expect("it ends by itself").unwrap_err();
    assert_eq!(error.code(), "timeout_error");

    let executor = ToolExecutor::new(registry([picky()]), 30);
    let found = executor
        .execute_tool("look", r#"{"at":"here"}"#, &never)
        .await
        .unwrap();
    assert!(found.result.success);
    assert_eq!(found.arguments, json!({"at": "here"}));
    assert_eq!(found.result.content, r#"look did {"at":"here"}"#);
    let failed = executor
        .execute_tool("look", r#"{"at":"nowhere"}"#, &never)
        .await
        .unwrap();
    assert_eq!(failed.result.error, Some(ToolErrorCode::Failed));
    assert_eq!(failed.result.content, "there is no such place");
}

#[tokio::test(start_paused = true)]
async fn fa_3_fa_20_a_call_has_its_duration_and_ends_at_its_timeout_or_when_it_is_cancelled() {
    let slow = FnTool::running("look", json!({"type": "object"}), |_| {
        Box::pin(async {
            sleep(Duration::from_millis(1_500)).await;
            ToolOutcome::text("seen")
        })
    });
    let executor = ToolExecutor::new(registry([slow, endless("dig")]), 30);
    let cancel = CancellationToken::new();
    let found = executor.execute_tool("look", "{}", &cancel).await.unwrap();
    assert_eq!((found.result.success, found.duration_ms), (true, 1_500));

    let begun = Instant::now();
    let late = timeout(
        Duration::from_secs(90),
        executor.execute_tool("dig", "{}", &cancel),
    );
    let error = late.await.expect("it ends by itself").unwrap_err();
    assert_eq!(error.code(), "timeout_error");
    assert_eq!(begun.elapsed(), Duration::from_secs(30));

    let begun = Instant::now();
    let stop = async {
        sleep(Duration::from_secs(2)).await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(executor.execute_tool("dig", "{}", &cancel), stop);
    let code = match &ended {
        Ok(call) => call.result.error.map(|code| code.as_str().to_owned()),
        Err(error) => Some(error.code().to_owned()),
    };
    assert_eq!(code.as_deref(), Some("cancelled"));
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn fa_20_a_call_that_is_denied_or_comes_too_late_does_not_begin() {
    let never = CancellationToken::new();
    let begins = tool("look", json!({"type": "object"}), |_| {
        unreachable!("it may not begin")
    });
    let executor = ToolExecutor::new(registry([begins]), 30).with_gate(Arc::new(Refuse));
    let error = executor
        .execute_tool("look", "{}", &never)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "tool_execution_error");
    assert!(error.to_string().contains("not today"), "{error}");

    let fired = CancellationToken::new();
    fired.cancel();
    let error = executor
        .execute_tool("look", "{}", &fired)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "cancelled");
}

#[tokio::test]
async fn fa_21_a_batch_runs_in_order_and_begins_nothing_after_a_cancel() {
    let cancel = CancellationToken::new();
    let fires = cancel.clone();
    let stop = tool("stop", json!({"type": "object"}), move |_| {
        fires.cancel();
        ToolOutcome::text("stopping")
    });
    let log = Log::default();
    let begun = Arc::clone(&log);
    let look = tool("look", json!({"type": "object"}), move |arguments| {
        begun.lock().unwrap().push(arguments["at"].to_string());
        ToolOutcome::text("seen")
    });
    let executor = ToolExecutor::new(registry([look, stop]), 30);
    let batch = vec![call("a", "look"), call("b", "stop"), call("c", "look")];
    let results = executor.execute_tools(batch.clone(), &cancel).await;
    let first = ExecutedToolCall {
        call_id: "a".to_owned(),
        function_name: "look".to_owned(),
        arguments: json!({"at": "a"}),
        result: ToolResult {
            success: true,
            content: "seen".to_owned(),
            error: None,
        },
        duration_ms: results[0].as_ref().unwrap().duration_ms,
    };
    assert_eq!(results[0].as_ref(), Ok(&first));
    assert_eq!(results[1].as_ref().unwrap().result.content, "stopping");
    assert_eq!(codes(&results), ["ok", "ok", "cancelled"]);

    let results = executor.execute_tools(batch, &cancel).await;
    assert_eq!(codes(&results), ["cancelled"; 3]);
    assert_eq!(*log.lock().unwrap(), [r#""a""#]);
}

#[tokio::test(start_paused = true)]
async fn fa_21_calls_never_overlap_though_they_might_and_are_as_many_as_are_given() {
    let log = Log::default();
    let executor = ToolExecutor::new(registry([logging(&log)]), 100);
    let ids: Vec<String> = (0..12).map(|at| at.to_string()).collect();
    let batch = ids.iter().map(|id| call(id, "look")).collect();
    let results = executor
        .execute_tools(batch, &CancellationToken::new())
        .await;
    let found: Vec<String> = results
        .into_iter()
        .map(|result| result.unwrap().result.content)
        .collect();
    assert_eq!(found, ids);
    let one_by_one: Vec<String> = ids
        .iter()
        .flat_map(|id| [format!("{id} begins"), format!("{id} ends")])
        .collect();
    assert_eq!(*log.lock().unwrap(), one_by_one);
}

#[tokio::test]
async fn fa_21_one_call_without_a_name_and_calls_that_are_alike_leave_the_others_alone() {
    let executor = ToolExecutor::new(registry([echo("look")]), 30);
    let call = |name: &str| AccumulatedToolCall {
        call_id: "same".to_owned(),
        function_name: name.to_owned(),
        arguments_json: "{}".to_owned(),
    };
    let batch = ["look", "", "look", "look", "look", "look", "look"].map(call);
    let results = executor
        .execute_tools(batch.into(), &CancellationToken::new())
        .await;
    let expected = ["ok", "tool_not_found", "ok", "ok", "ok", "ok", "ok"];
    assert_eq!(codes(&results), expected, "{results:?}");
}
