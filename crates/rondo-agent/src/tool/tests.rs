//! Tests: tools that are functions.

use super::*;
use rondo_core::ports::{Asker, OutputSink, ProgressSink};
use rondo_types::{CallId, RemainingLimits, SessionId, TurnId};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Deserialize, JsonSchema)]
struct Half {
    /// The number to halve.
    of: i64,
}

fn half() -> FnTool {
    tool("half", "Halves.", |args: Half, _cx| async move {
        if args.of % 2 == 0 {
            Ok(args.of / 2)
        } else {
            Err(format!("{} is odd", args.of))
        }
    })
}

fn call(arguments: Value) -> ToolInvocation {
    ToolInvocation {
        session: SessionId::new("s"),
        turn: TurnId::new("s-1"),
        call_id: CallId::new("c"),
        idempotency_key: "s-c".to_owned(),
        arguments,
        timeout: Some(Duration::from_secs(5)),
        cancel: CancellationToken::new(),
        output: OutputSink::discard(),
        progress: ProgressSink::discard(),
        allowance: RemainingLimits::default(),
        asker: Asker::nobody(),
    }
}

fn error_of(outcome: ToolOutcome) -> (ToolErrorCode, String) {
    match outcome {
        ToolOutcome::Error(error) => (error.code, error.message),
        ToolOutcome::Ok(output) => panic!("it succeeded with {}", output.value),
    }
}

#[test]
fn a_tool_says_of_itself_what_its_types_say_and_the_careful_rest() {
    let half = half();
    let spec = half.spec();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("half", "Halves.")
    );
    assert_eq!(
        spec.parameters,
        json!({
            "type": "object",
            "properties": {"of": {"description": "The number to halve.", "type": "integer"}},
            "required": ["of"],
        })
    );
    let said = (spec.effects, spec.concurrency, spec.recovery);
    assert_eq!(
        said,
        (
            Effects::Writes,
            Concurrency::Undeclared,
            Recovery::AtMostOnce
        )
    );
    let looks = half.read_only();
    let spec = looks.spec();
    let said = (spec.effects, spec.concurrency, spec.recovery);
    assert_eq!(
        said,
        (Effects::ReadOnly, Concurrency::Shared, Recovery::ReadOnly)
    );
}

#[tokio::test]
async fn outputs_errors_and_wrong_arguments_are_outcomes() {
    let half = half();
    assert_eq!(
        half.call(call(json!({"of": 8}))).await,
        ToolOutcome::json(json!(4))
    );
    let odd = error_of(half.call(call(json!({"of": 7}))).await);
    assert_eq!(odd, (ToolErrorCode::Failed, "7 is odd".to_owned()));
    let (code, message) = error_of(half.call(call(json!({"off": 7}))).await);
    assert_eq!(code, ToolErrorCode::InvalidArgs);
    assert!(message.contains("missing field `of`"), "{message}");
}

#[tokio::test]
async fn an_error_is_told_with_its_causes_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("failed to load")]
    struct Outer(#[source] std::num::ParseIntError);

    let tool = tool("load", "Loads.", |_: NoArgs, _cx| async move {
        "x".parse::<i64>().map_err(Outer)
    });
    let (_, message) = error_of(tool.call(call(json!({}))).await);
    assert_eq!(message, "failed to load: invalid digit found in string");
}

#[tokio::test]
async fn a_call_knows_its_ids_its_deadline_and_who_watches() {
    let shown = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&shown);
    let tool = tool("look", "Looks.", |_: NoArgs, cx: ToolContext| async move {
        cx.show("looking");
        let left = cx.deadline().map(|it| it > tokio::time::Instant::now());
        let ids = [
            cx.session().as_str(),
            cx.turn().as_str(),
            cx.call_id().as_str(),
        ]
        .join(" ");
        Ok::<_, BoxError>((ids, cx.idempotency_key().to_owned(), left))
    });
    let mut call = call(json!({}));
    call.output = OutputSink::new(move |text| kept.lock().unwrap().push_str(&text));
    let outcome = tool.call(call).await;
    assert_eq!(outcome, ToolOutcome::json(json!(["s s-1 c", "s-c", true])));
    assert_eq!(*shown.lock().unwrap(), "looking");
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_where_it_waits() {
    let waits = tool("wait", "Waits.", |_: NoArgs, _cx| async move {
        std::future::pending::<()>().await;
        Ok::<_, BoxError>(())
    });
    let call = call(json!({}));
    call.cancel.cancel();
    let (code, _) = error_of(waits.call(call).await);
    assert_eq!(code, ToolErrorCode::Cancelled);
}

#[tokio::test]
async fn a_call_that_watches_its_token_ends_by_itself() {
    let began = Arc::new(Notify::new());
    let begins = Arc::clone(&began);
    let tidy = tool("tidy", "Tidies up.", move |keep: Keep, cx: ToolContext| {
        let begins = Arc::clone(&begins);
        async move {
            let cancelled = cx.cancellation();
            begins.notify_one();
            cancelled.cancelled().await;
            tokio::task::yield_now().await;
            if keep.result {
                Ok("half of it")
            } else {
                Err("it was half done")
            }
        }
    });
    for (result, expected) in [
        (true, ToolOutcome::text("half of it")),
        (false, ended_early("it was half done")),
    ] {
        let call = call(json!({ "result": result }));
        let cancel = call.cancel.clone();
        let (outcome, ()) = tokio::join!(tidy.call(call), async {
            began.notified().await;
            cancel.cancel();
        });
        assert_eq!(outcome, expected);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Keep {
    result: bool,
}
