//! Commands whose agent was killed.

use crate::agent::{PATIENCE_MS, kill_agent_of, spec, wait_for_end, wait_until};
use crate::deaths::FIND_GUARD;
use crate::fixture::{Fixture, LONG_ENOUGH_SECONDS, failure, marker, open_gate, result, survivors};
use crate::tree::ESCAPES;
use rondo_core::ports::{InterruptedCall, Reconciled, Tool};
use rondo_exec::ExecTool;
use rondo_exec::supervisor::{CallSpec, CallStatus, CommandState, SupervisedCommand};
use rondo_types::{ToolErrorCode, ToolOutcome};
use serde_json::{Value, json};
use std::process::Command;

/// An agent that comes after one that was killed.
struct Next {
    tool: ExecTool,
    interrupted: InterruptedCall,
}

impl Next {
    async fn new(fixture: &Fixture) -> Self {
        let tool = ExecTool::exec(fixture.options.clone());
        let evidence = tool.evidence(&Value::Null).await;
        Self {
            tool,
            interrupted: InterruptedCall {
                idempotency_key: "key-1".to_owned(),
                arguments: json!({ "command": "not what runs" }),
                evidence,
            },
        }
    }

    async fn reconcile(&self) -> Reconciled {
        self.tool.reconcile(&self.interrupted).await
    }

    async fn call(&self, fixture: &Fixture) -> ToolOutcome {
        let arguments = self.interrupted.arguments.clone();
        self.tool.call(fixture.invocation(arguments)).await
    }
}

/// Starts a command that counts its runs and waits for a gate, and kills its agent.
fn cut_off(fixture: &Fixture, before: &str, after: &str) -> CallSpec {
    mkfifo(fixture);
    let command = format!("echo run >> runs; {before}; echo up > up; cat gate; {after}");
    let spec = spec(fixture, &command, PATIENCE_MS);
    kill_agent_of(&spec);
    wait_until(|| fixture.path().join("up").exists());
    spec
}

fn mkfifo(fixture: &Fixture) {
    let gate = fixture.path().join("gate");
    let made = Command::new("mkfifo").arg(gate).status().unwrap();
    assert!(made.success());
}

async fn open(fixture: &Fixture) {
    open_gate(fixture.path().join("gate")).await;
}

fn runs(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.path().join("runs")).unwrap_or_default()
}

#[tokio::test]
async fn a_command_that_still_runs_is_found_again_with_its_output() {
    let fixture = Fixture::new();
    cut_off(&fixture, "echo before", "echo after; exit 3");
    let next = Next::new(&fixture).await;
    assert_eq!(next.reconcile().await, Reconciled::Running);
    let seen = async {
        while !fixture.live().contains("before") {
            tokio::task::yield_now().await;
        }
        open(&fixture).await;
    };
    let (outcome, ()) = tokio::join!(next.call(&fixture), seen);
    let whole = "before\nopen\nafter\n";
    assert_eq!(result(outcome), json!({ "stdout": whole, "exitCode": 3 }));
    assert_eq!(fixture.live(), whole);
    assert_eq!(runs(&fixture), "run\n");
}

#[tokio::test]
async fn a_command_that_ended_meanwhile_has_the_result_that_was_kept() {
    let fixture = Fixture::new();
    let spec = cut_off(&fixture, "echo before", "seq 1000; exit 4");
    open(&fixture).await;
    let status = wait_for_end(&spec);
    assert!(status.omitted_bytes > 0);
    let reconciled = Next::new(&fixture).await.reconcile().await;
    let Reconciled::Done(outcome) = reconciled else {
        panic!("{reconciled:?}");
    };
    let told = result(outcome);
    assert_eq!(told["exitCode"], 4);
    assert_eq!(told["stdout"], status.stdout.as_str());
    assert_eq!(told["truncated"], true);
    assert_eq!(runs(&fixture), "run\n");
}

#[tokio::test]
async fn a_command_that_ends_between_the_question_and_the_call_is_not_run_again() {
    let fixture = Fixture::new();
    let spec = cut_off(&fixture, "true", "exit 5");
    let next = Next::new(&fixture).await;
    assert_eq!(next.reconcile().await, Reconciled::Running);
    open(&fixture).await;
    wait_for_end(&spec);
    assert_eq!(result(next.call(&fixture).await)["exitCode"], 5);
    assert_eq!(runs(&fixture), "run\n");
}

#[tokio::test]
async fn a_long_output_from_before_is_told_with_both_ends() {
    let fixture = Fixture::new();
    // So much that most of it was read, and cut, before the command continued: a terminal holds 12 KiB.
    cut_off(&fixture, "seq 30000", "true");
    let next = Next::new(&fixture).await;
    assert_eq!(next.reconcile().await, Reconciled::Running);
    let seen = async {
        while !fixture.live().contains("30000\n") {
            tokio::task::yield_now().await;
        }
        open(&fixture).await;
    };
    let (outcome, ()) = tokio::join!(next.call(&fixture), seen);
    assert!(outcome.is_ok());
    let live = fixture.live();
    assert!(live.starts_with("1\n2\n3\n"), "{live}");
    assert!(live.contains("bytes left out"), "{live}");
    assert!(live.ends_with("30000\nopen\n"), "{live}");
}

#[tokio::test]
async fn a_command_that_never_began_is_not_done() {
    let fixture = Fixture::new();
    let next = Next::new(&fixture).await;
    assert_eq!(next.reconcile().await, Reconciled::NotDone);
    let options = &fixture.options;
    let spec = spec(&fixture, "touch made", PATIENCE_MS);
    let variables: Vec<_> = std::env::vars_os().collect();
    let ready = SupervisedCommand::start(&options.supervisor, &variables, &spec).await;
    drop(ready.unwrap());
    assert_eq!(next.reconcile().await, Reconciled::NotDone);
    assert!(!fixture.path().join("made").exists());
}

#[tokio::test]
async fn a_command_whose_status_file_was_removed_is_in_doubt() {
    let fixture = Fixture::new();
    let mut next = Next::new(&fixture).await;
    next.interrupted.evidence = next.tool.evidence_of("key-1", &Value::Null).await;
    assert_eq!(next.reconcile().await, Reconciled::NotDone);
    // It can be made then, under the same key.
    fixture.run("echo run >> runs").await;
    assert!(matches!(next.reconcile().await, Reconciled::Done(_)));
    std::fs::remove_file(fixture.state.path().join("key-1.json")).unwrap();
    assert_eq!(next.reconcile().await, Reconciled::Unknown);
    assert_eq!(runs(&fixture), "run\n");
}

#[tokio::test]
async fn after_another_start_of_the_machine_only_a_recorded_end_counts() {
    let fixture = Fixture::new();
    let mut next = Next::new(&fixture).await;
    let evidence = next.interrupted.evidence.clone().unwrap();
    for field in ["boot", "directory"] {
        let mut other = evidence.clone();
        other[field] = json!("another");
        next.interrupted.evidence = Some(other);
        assert_eq!(next.reconcile().await, Reconciled::Unknown, "{field}");
    }
    next.interrupted.evidence = None;
    assert_eq!(next.reconcile().await, Reconciled::Unknown);
    fixture.run("true").await;
    assert!(matches!(next.reconcile().await, Reconciled::Done(_)));
}

#[tokio::test]
async fn a_command_whose_supervisor_died_too_is_in_doubt() {
    let fixture = Fixture::new();
    let mark = marker();
    let spec = cut_off(&fixture, &format!("export M={mark}"), "true");
    let next = Next::new(&fixture).await;
    let status = CallStatus::read(&spec.state_dir, &spec.key).unwrap();
    let status = status.unwrap();
    // A call that was found running, too.
    assert_eq!(next.reconcile().await, Reconciled::Running);
    let killed = Command::new("kill")
        .args(["-KILL", &status.pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    wait_until(|| !status.supervisor_is_alive());
    assert_eq!(next.reconcile().await, Reconciled::Unknown);
    let error = failure(next.call(&fixture).await);
    assert_eq!(error.code, ToolErrorCode::InDoubt);
    assert_eq!(runs(&fixture), "run\n");
}

#[tokio::test]
async fn a_call_whose_state_tells_that_it_was_begun_is_in_doubt_and_overwrites_nothing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.stdout("echo one >> made; echo one").await, "one\n");
    let path = fixture.state.path().join("key-1.json");
    let before = std::fs::read(&path).unwrap();
    let tool = rondo_exec::ExecTool::exec(fixture.options.clone());
    let again = serde_json::json!({"command": "echo two >> made"});
    let error = failure(tool.call(fixture.invocation(again)).await);
    assert_eq!(error.code, ToolErrorCode::InDoubt);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let made = std::fs::read_to_string(fixture.path().join("made")).unwrap();
    assert_eq!(made, "one\n");
    assert_eq!(fixture.stdout("echo two").await, "two\n");
}

#[tokio::test]
async fn the_time_of_a_command_counts_from_its_first_start() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("export M={mark}; echo up; sleep 1000");
    let spec = spec(&fixture, &command, LONG_ENOUGH_SECONDS * 1000);
    kill_agent_of(&spec);
    let next = Next::new(&fixture).await;
    assert_eq!(next.reconcile().await, Reconciled::Running);
    let error = failure(next.call(&fixture).await);
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(survivors(&mark), [""; 0]);
}

/// With its guard gone, only the next agent wakes the supervisor.
#[tokio::test]
async fn a_command_that_was_found_again_ends_in_time_though_its_supervisor_is_stopped() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!(
        "export M={mark}; {FIND_GUARD}; echo up; kill -KILL $guard; kill -STOP $PPID; touch up; sleep 1000"
    );
    let spec = spec(&fixture, &command, PATIENCE_MS);
    kill_agent_of(&spec);
    wait_until(|| fixture.path().join("up").exists());
    let mut next = Next::new(&fixture).await;
    next.interrupted.arguments = json!({ "command": command, "timeout": 1 });
    assert_eq!(next.reconcile().await, Reconciled::Running);
    let error = failure(next.call(&fixture).await);
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_cancel_of_a_command_that_was_found_again_ends_what_tried_to_escape() {
    for escape in ESCAPES {
        let fixture = Fixture::new();
        let mark = marker();
        let before = format!("export M={mark}; {escape}\ntrue");
        cut_off(&fixture, &before, "true");
        let next = Next::new(&fixture).await;
        assert_eq!(next.reconcile().await, Reconciled::Running);
        fixture.cancel.cancel();
        let error = failure(next.call(&fixture).await);
        assert_eq!(error.code, ToolErrorCode::Cancelled, "{escape}");
        assert_eq!(survivors(&mark), [""; 0], "{escape}");
    }
}

#[test]
fn a_command_that_nobody_finds_again_is_ended_within_its_bound() {
    for (outlive_ms, escape) in [0, 300].into_iter().cycle().zip(ESCAPES) {
        let fixture = Fixture::new();
        let mark = marker();
        let command = format!("export M={mark}; {escape}\nsleep 1000");
        let mut spec = spec(&fixture, &command, PATIENCE_MS);
        spec.outlive_ms = outlive_ms;
        kill_agent_of(&spec);
        let status = wait_for_end(&spec);
        assert!(status.cancelled, "{escape}");
        assert_eq!(survivors(&mark), [""; 0], "{escape}");
    }
}

#[test]
fn only_its_owner_can_call_a_supervisor_and_nothing_of_it_stays() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let spec = cut_off(&fixture, "true", "true");
    let sockets = || -> Vec<_> {
        let entries = std::fs::read_dir(&spec.state_dir).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|it| it == "sock"))
            .collect()
    };
    let [socket] = sockets().try_into().unwrap();
    let mode = std::fs::metadata(socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    std::fs::write(fixture.path().join("gate"), "open\n").unwrap();
    assert_eq!(wait_for_end(&spec).state, CommandState::Ended);
    wait_until(|| sockets().is_empty());
}
