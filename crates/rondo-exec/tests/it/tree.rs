//! Nothing survives a call, whatever it does to escape.

use crate::agent::{PATIENCE_MS, kill_agent_of, program, spec, wait_for_end};
use crate::fixture::{Fixture, LONG_ENOUGH_SECONDS, PATIENCE, failure, marker, survivors};
use rondo_exec::supervisor::{CallStatus, CommandState, SUPERVISE_ARG};
use rondo_types::ToolErrorCode;
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ways to leave something behind; each carries the marker in its environment.
pub(crate) const ESCAPES: [&str; 12] = [
    "sleep 1000 &",
    "nohup sleep 1000 > /dev/null 2>&1 &",
    "setsid sleep 1000 &",
    "setsid -f sleep 1000",
    "(setsid bash -c 'sleep 1000 & sleep 1000' &)",
    "( ( sleep 1000 & ) & )",
    "bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' &",
    "sleep 1000 > >(cat) &",
    "cat <(sleep 1000) &",
    "exec 7<> /dev/tty; setsid sleep 1000 <&7 >&7 2>&7 &",
    "nohup setsid bash -c 'nohup setsid sleep 1000 &' &",
    "coproc sleep 1000; disown -a",
];

#[tokio::test]
async fn what_a_command_leaves_behind_neither_hangs_the_call_nor_survives_it() {
    for escape in ESCAPES {
        let fixture = Fixture::new();
        let mark = marker();
        let out = fixture
            .stdout(&format!("export M={mark}; {escape}\necho done"))
            .await;
        assert!(out.contains("done"), "{escape}: {out}");
        assert_eq!(survivors(&mark), [""; 0], "{escape}");
    }
}

#[tokio::test]
async fn a_timeout_ends_what_tried_to_escape() {
    for escape in ESCAPES {
        let fixture = Fixture::new();
        let mark = marker();
        let command = format!("export M={mark}; {escape}\necho started; sleep 1000");
        let arguments = json!({ "command": command, "timeout": 0.2 });
        let error = failure(fixture.call(arguments).await);
        assert_eq!(error.code, ToolErrorCode::Timeout, "{escape}");
        assert_eq!(survivors(&mark), [""; 0], "{escape}");
    }
}

#[tokio::test]
async fn a_tree_that_ignores_every_polite_signal_is_killed() {
    let fixture = Fixture::new();
    let mark = marker();
    let command =
        format!("export M={mark}; trap '' TERM HUP INT QUIT; echo up; while :; do sleep 1; done");
    let error = failure(
        fixture
            .call(json!({ "command": command, "timeout": LONG_ENOUGH_SECONDS }))
            .await,
    );
    assert_eq!(error.details["stdout"], "up\n");
    assert_eq!(error.details["signal"], "SIGKILL");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_is_ended_by_a_cancel() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("export M={mark}; kill -STOP $PPID; touch stopped; sleep 1000");
    let call = fixture.call(json!({ "command": command }));
    let stopped = fixture.path().join("stopped");
    let cancel = async {
        while !stopped.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fixture.cancel.cancel();
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(PATIENCE, call) => outcome.unwrap(),
        () = cancel => unreachable!(),
    };
    assert_eq!(failure(outcome).code, ToolErrorCode::Cancelled);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_stopped_tree_is_ended() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("export M={mark}; sleep 1000 & kill -STOP $! $$");
    let error = failure(
        fixture
            .call(json!({ "command": command, "timeout": 0.2 }))
            .await,
    );
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_supervisor_whose_agent_is_killed_goes_on_and_records_the_end() {
    let fixture = Fixture::new();
    let mark = marker();
    let spec = spec(
        &fixture,
        &format!("export M={mark}; cat go; echo after; exit 5"),
        PATIENCE_MS,
    );
    let fifo = fixture.path().join("go");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    kill_agent_of(&spec);
    std::fs::write(&fifo, "on\n").unwrap();
    let status = wait_for_end(&spec);
    assert_eq!(status.exit_code, Some(5));
    assert_eq!(status.stdout, "on\nafter\n");
    assert!(!status.timed_out);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_supervisor_whose_agent_is_killed_never_outlives_the_calls_deadline() {
    let fixture = Fixture::new();
    let mark = marker();
    let spec = spec(
        &fixture,
        &format!("export M={mark}; echo up; setsid --wait sleep 1000; true"),
        LONG_ENOUGH_SECONDS * 1000,
    );
    kill_agent_of(&spec);
    let status = wait_for_end(&spec);
    assert!(status.timed_out);
    assert_eq!(status.stdout, "up\n");
    assert_eq!(survivors(&mark), [""; 0]);
}

/// Starts a supervisor with this input alone, and returns what it writes until it ends.
fn supervised(input: &[u8]) -> (Child, Vec<u8>) {
    let mut supervisor = Command::new(program())
        .arg(SUPERVISE_ARG)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    supervisor.stdin.take().unwrap().write_all(input).unwrap();
    let mut said = Vec::new();
    supervisor
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut said)
        .unwrap();
    (supervisor, said)
}

#[test]
fn a_supervisor_that_is_never_told_to_go_runs_nothing() {
    let fixture = Fixture::new();
    let spec = spec(&fixture, "touch made", PATIENCE_MS);
    let mut line = serde_json::to_vec(&spec).unwrap();
    line.push(b'\n');
    let (mut supervisor, said) = supervised(&line);
    // One frame, which says that it is ready.
    let length = u32::from_be_bytes(said[1..5].try_into().unwrap());
    assert_eq!((said[0], length as usize), (b'r', said.len() - 5));
    assert!(supervisor.wait().unwrap().success());
    let status = CallStatus::read(&spec.state_dir, &spec.key)
        .unwrap()
        .unwrap();
    assert_eq!(status.state, CommandState::Ready);
    assert!(!fixture.path().join("made").exists());
}

#[test]
fn a_supervisor_without_a_specification_says_why_it_ends() {
    for input in [&b""[..], b"{", b"{}\n", b"\xff\n"] {
        let (mut supervisor, said) = supervised(input);
        assert_eq!(said.first(), Some(&b'f'));
        assert_eq!(supervisor.wait().unwrap().code(), Some(1));
    }
}
