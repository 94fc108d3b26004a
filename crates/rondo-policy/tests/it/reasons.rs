//! Why a call needs approval, in a form that programs can distinguish.

use crate::gate::Fixture;
use rondo_core::ports::{Gate, GateRequest, Verdict};
use rondo_policy::rules::{Decision, RuleDirs, RuleSpec};
use rondo_policy::{Confined, StandardGate};
use rondo_types::{AskReason, ToolKind, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns why a call is asked about, which the test expects it to be.
async fn reasons(
    fixture: &Fixture,
    (kind, arguments): (ToolKind, Value),
    has_outside_text: bool,
) -> Vec<AskReason> {
    let name = match kind {
        ToolKind::Execute => "exec",
        _ => "write_file",
    };
    let request = GateRequest {
        has_outside_text,
        ..GateRequest::new(
            ToolSpec {
                name: name.to_owned(),
                kind,
                ..ToolSpec::default()
            },
            arguments,
        )
    };
    let gate = StandardGate::new(fixture.options.clone());
    match gate.check(&request).await {
        Verdict::Ask { reasons, .. } => reasons,
        other => panic!("not asked about: {other:?}"),
    }
}

fn command(command: &str) -> (ToolKind, Value) {
    (ToolKind::Execute, json!({ "command": command }))
}

fn write(path: &str) -> (ToolKind, Value) {
    (ToolKind::Edit, json!({ "path": path, "content": "" }))
}

fn confined() -> Confined {
    Confined {
        may_write: true,
        reaches_hosts: false,
        is_enough: true,
        protected: &["AGENTS.md"],
        kept: Vec::new(),
        tools: Vec::new(),
    }
}

#[tokio::test]
async fn a_call_that_nothing_allows_is_asked_about_for_that_alone() {
    let fixture = Fixture::new();
    let why = reasons(&fixture, command("touch a"), false).await;
    assert_eq!(why, [AskReason::NotAllowed]);
    let why = reasons(&fixture, write("a"), false).await;
    assert_eq!(why, [AskReason::NotAllowed]);
}

#[tokio::test]
async fn a_rule_that_asks_is_the_reason_also_after_text_from_outside() {
    let mut fixture = Fixture::new();
    let working = fixture.work.path().canonicalize().unwrap();
    let dirs = RuleDirs {
        working: &working,
        home: None,
    };
    let specs = ["exec", "write_file"].map(|tool| RuleSpec {
        tool: serde_json::from_value(json!(tool)).unwrap(),
        ..RuleSpec::new(Decision::Ask)
    });
    let rules = Arc::make_mut(&mut fixture.options.rules);
    rules.add(specs.to_vec(), "policy.toml", dirs).unwrap();
    for call in [command("touch a"), write("a")] {
        let why = reasons(&fixture, call, true).await;
        assert_eq!(why, [AskReason::Rule]);
    }
}

#[tokio::test]
async fn text_from_outside_is_a_reason_and_words_in_the_call_are_none() {
    let fixture = Fixture::new();
    let words = "the conversation contains text from outside, and this may send data out or write outside the workspace";
    let says_so = || command(&format!("curl '{words}'"));
    let why = reasons(&fixture, says_so(), false).await;
    assert_eq!(why, [AskReason::NotAllowed]);
    let why = reasons(&fixture, says_so(), true).await;
    assert_eq!(why, [AskReason::OutsideText]);
    let why = reasons(&fixture, write("/a"), true).await;
    assert_eq!(why, [AskReason::OutsideText]);
}

#[tokio::test]
async fn a_command_that_asks_to_leave_the_sandbox_says_so_first() {
    let mut fixture = Fixture::new();
    let outside = || {
        let arguments = json!({ "command": "make", "outside_sandbox": true });
        (ToolKind::Execute, arguments)
    };
    let why = reasons(&fixture, outside(), false).await;
    assert_eq!(why, [AskReason::OutsideSandbox, AskReason::NotAllowed]);
    let why = reasons(&fixture, outside(), true).await;
    assert_eq!(why, [AskReason::OutsideSandbox, AskReason::OutsideText]);
    // It would run without asking in there.
    fixture.options.confined = Some(confined());
    let why = reasons(&fixture, outside(), false).await;
    assert_eq!(why, [AskReason::OutsideSandbox]);
}

#[tokio::test]
async fn a_protected_file_is_the_reason_beside_the_sandbox() {
    let mut fixture = Fixture::new();
    fixture.options.confined = Some(confined());
    let why = reasons(&fixture, write("AGENTS.md"), false).await;
    assert_eq!(why, [AskReason::ProtectedFile]);
}
