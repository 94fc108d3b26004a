//! The functions as tools of a turn.

use crate::fixture::session;
use rondo_core::ports::{OutputSink, Tool, ToolInvocation};
use rondo_types::{
    CallId, Concurrency, Effects, Recovery, SessionId, ToolErrorCode, ToolOutcome, TurnId,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

fn tool(tools: &[Arc<dyn Tool>], name: &str) -> Arc<dyn Tool> {
    let found = tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap())
}

fn invocation(arguments: Value, output: OutputSink, cancel: CancellationToken) -> ToolInvocation {
    ToolInvocation {
        session: SessionId::new("s"),
        turn: TurnId::new("t"),
        call_id: CallId::new("c"),
        idempotency_key: "s-c".to_owned(),
        arguments,
        timeout: None,
        cancel,
        output,
    }
}

#[tokio::test]
async fn looking_needs_nobodys_approval_and_running_code_does() {
    let tools = rondo_python::tools(&Arc::new(session()));
    for tool in &tools {
        let spec = tool.spec();
        let effects = (spec.effects, spec.concurrency, spec.recovery);
        let looks = (Effects::ReadOnly, Concurrency::Shared, Recovery::ReadOnly);
        let writes = (
            Effects::Writes,
            Concurrency::Exclusive,
            Recovery::AtMostOnce,
        );
        let runs_code = ["eval_expr", "run_code"].contains(&spec.name.as_str());
        assert_eq!(
            effects,
            if runs_code { writes } else { looks },
            "{}",
            spec.name
        );
    }
}

#[tokio::test]
async fn a_call_shows_its_output_and_ends_when_it_is_cancelled() {
    let tools = rondo_python::tools(&Arc::new(session()));
    let cancel = CancellationToken::new();
    let (stop, seen) = (cancel.clone(), Arc::new(Mutex::new(String::new())));
    let shown = Arc::clone(&seen);
    let output = OutputSink::new(move |text| {
        shown.lock().unwrap().push_str(&text);
        stop.cancel();
    });
    let code = json!({"code": "x = 5\nprint('begun', flush=True)\nwhile True: pass"});
    let outcome = tool(&tools, "run_code")
        .call(invocation(code, output, cancel))
        .await;
    assert_eq!(*seen.lock().unwrap(), "begun\n");
    let ToolOutcome::Error(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.code, ToolErrorCode::Cancelled);
    assert_eq!(error.details["stdout"], "begun\n");
    assert!(
        error.details["traceback"]
            .as_str()
            .unwrap()
            .contains("line 3")
    );
    let expr = json!({"expr": "x"});
    let call = invocation(expr, OutputSink::discard(), CancellationToken::new());
    let kept = tool(&tools, "get_repr").call(call).await;
    let expected = json!({"repr": "5", "truncated": false, "original_len": 1});
    assert_eq!(kept, ToolOutcome::json(expected));
}
