//! The functions as tools of a turn.

use crate::fixture::{run, session};
use rondo_core::ports::{Asker, OutputSink, ProgressSink, Tool, ToolInvocation};
use rondo_python::{Capability, ReadOnlyNames};
use rondo_types::{
    CallId, Concurrency, Effects, Recovery, RemainingLimits, SessionId, ToolErrorCode, ToolOutcome,
    TurnId,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

pub(crate) fn tool(tools: &[Arc<dyn Tool>], name: &str) -> Arc<dyn Tool> {
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
        progress: ProgressSink::discard(),
        allowance: RemainingLimits::default(),
        asker: Asker::nobody(),
    }
}

#[tokio::test]
async fn looking_needs_nobodys_approval_and_running_code_does() {
    let tools = rondo_python::tools(&Arc::new(session()), ReadOnlyNames::WithoutCalls);
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
    let tools = rondo_python::tools(&Arc::new(session()), ReadOnlyNames::WithoutCalls);
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
            .contains(", in <module>")
    );
    let expr = json!({"expr": "x"});
    let call = invocation(expr, OutputSink::discard(), CancellationToken::new());
    let kept = tool(&tools, "get_repr").call(call).await;
    let expected = json!({"repr": "5", "truncated": false, "original_len": 1});
    assert_eq!(kept, ToolOutcome::json(expected));
}

pub(crate) async fn looked(tools: &[Arc<dyn Tool>], name: &str, expr: &str) -> ToolOutcome {
    let arguments = json!({ "expr": expr });
    let call = invocation(arguments, OutputSink::discard(), CancellationToken::new());
    tool(tools, name).call(call).await
}

#[tokio::test]
async fn looks_without_calls_follow_names_attributes_and_items_only() {
    let session = Arc::new(session());
    run(&session, "import os\nx = {'a': [1, 2]}\ndef f(): return 5").await;
    let tools = rondo_python::tools(&session, ReadOnlyNames::WithoutCalls);
    for (expr, repr) in [
        ("x['a'][-1]", "2"),
        ("x['a'][:1]", "[1]"),
        ("os.path.sep", "'/'"),
    ] {
        let ToolOutcome::Ok(found) = looked(&tools, "get_repr", expr).await else {
            panic!("{expr}")
        };
        assert_eq!(found.value["repr"], repr);
    }
    let computing = [
        "f()",
        "x['a'][0] + 1",
        "[y for y in x]",
        "[g() for g in [f]]",
        "[0 for x['a'] in [f]]",
        "(y := 5)",
        "await f",
        "lambda: f()",
        "f'{f()}'",
    ];
    for expr in computing {
        for capability in Capability::ALL.into_iter().filter(|it| !it.runs_code()) {
            if capability.spec().parameters["required"] == json!(["expr"]) {
                let outcome = looked(&tools, capability.name(), expr).await;
                assert_eq!(outcome.code(), Some(ToolErrorCode::InvalidArgs), "{expr}");
            }
        }
    }
    let value = looked(&tools, "eval_expr", "f()").await;
    assert!(value.is_ok(), "{value:?}");
    let tools = rondo_python::tools(&session, ReadOnlyNames::Anything);
    assert!(looked(&tools, "get_type", "f()").await.is_ok());
}
