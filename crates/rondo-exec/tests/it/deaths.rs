//! Supervisors that are killed, stopped and starved, and calls that leave no trace.

use crate::agent::{PATIENCE_MS, kill_agent_of, program, spec, wait_for_end, wait_until};
use crate::fixture::{Fixture, LONG_ENOUGH_SECONDS, failure, marker, result, survivors};
use crate::tree::ESCAPES;
use rondo_core::ports::{Reconciled, Tool};
use rondo_exec::supervisor::{CallStatus, CommandState};
use rondo_exec::{ExecTool, SupervisorCommand};
use rondo_types::ToolErrorCode;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Sets `$guard` to the parent of the supervisor.
pub(crate) const FIND_GUARD: &str = "read -r _ _ _ guard _ < /proc/$PPID/stat";

fn entries(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture.state.path()).unwrap().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn runs(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.path().join("runs")).unwrap_or_default()
}

#[tokio::test]
async fn a_command_whose_supervisor_is_killed_is_in_doubt_and_nothing_of_it_stays() {
    for (kill, escape) in [
        "kill -KILL $PPID",
        "kill -TERM $PPID",
        "kill -KILL $guard $PPID",
        "kill -STOP $guard; kill -KILL $PPID",
    ]
    .into_iter()
    .cycle()
    .zip(ESCAPES)
    {
        let fixture = Fixture::new();
        let mark = marker();
        let command = format!(
            "export M={mark}; {FIND_GUARD}; echo run >> runs\n{escape}\n{kill}; sleep 1000"
        );
        let error = failure(fixture.call(json!({ "command": command })).await);
        assert_eq!(error.code, ToolErrorCode::InDoubt, "{kill}; {escape}");
        assert_eq!(survivors(&mark), [""; 0], "{kill}; {escape}");
        assert_eq!(runs(&fixture), "run\n");
    }
}

#[tokio::test]
async fn a_guard_that_is_killed_is_not_missed() {
    let fixture = Fixture::new();
    let command = format!("{FIND_GUARD}; kill -KILL $guard; echo on; exit 3");
    let told = fixture.run(&command).await;
    assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 3 }));
}

#[test]
fn what_a_killed_supervisor_leaves_is_ended_though_its_agent_is_gone() {
    for escape in ESCAPES {
        let fixture = Fixture::new();
        let mark = marker();
        let command = format!("export M={mark}; {escape}\ntouch up; sleep 1000");
        let spec = spec(&fixture, &command, PATIENCE_MS);
        kill_agent_of(&spec);
        wait_until(|| fixture.path().join("up").exists());
        let status = CallStatus::read(&spec.state_dir, &spec.key).unwrap();
        let supervisor = status.unwrap().pid.to_string();
        let killed = std::process::Command::new("kill")
            .args(["-KILL", &supervisor])
            .status();
        assert!(killed.unwrap().success());
        wait_until(|| survivors(&mark).is_empty());
        let is_door = |path: &PathBuf| path.extension().is_some_and(|it| it == "sock");
        wait_until(|| !entries(&fixture).iter().any(is_door));
    }
}

/// As when the machine's memory is short and the kernel picks both.
#[tokio::test]
async fn what_a_killed_supervisor_and_guard_leave_is_ended_by_the_next_agent() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!(
        "export M={mark}; {FIND_GUARD}; setsid -f sleep 1000; touch up; \
         kill -KILL $guard $PPID; sleep 1000"
    );
    let spec = spec(&fixture, &command, PATIENCE_MS);
    kill_agent_of(&spec);
    let status = CallStatus::read(&spec.state_dir, &spec.key).unwrap();
    wait_until(|| !status.as_ref().is_some_and(CallStatus::supervisor_is_alive));
    wait_until(|| survivors(&mark).len() == 1);
    let tool = ExecTool::exec(fixture.options.clone());
    let interrupted = rondo_core::ports::InterruptedCall {
        idempotency_key: spec.key.clone(),
        arguments: json!({}),
        evidence: tool.evidence(&Value::Null).await,
    };
    assert_eq!(tool.reconcile(&interrupted).await, Reconciled::Unknown);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_ends_in_time() {
    for stop in [
        "kill -STOP $PPID; sleep 1000",
        "kill -STOP $guard $PPID; sleep 1000",
        "(while :; do kill -STOP $PPID; sleep 0.01; done) & sleep 1000",
    ] {
        let fixture = Fixture::new();
        let mark = marker();
        let command = format!("export M={mark}; {FIND_GUARD}; {stop}");
        let arguments = json!({ "command": command, "timeout": 1 });
        let error = failure(fixture.call(arguments).await);
        assert_eq!(error.code, ToolErrorCode::Timeout, "{stop}");
        assert_eq!(survivors(&mark), [""; 0], "{stop}");
    }
}

/// In time, that is: long before the call's own.
#[tokio::test]
async fn a_command_that_stops_its_supervisor_has_its_result() {
    for stop in ["kill -STOP $PPID", "kill -STOP $guard"] {
        let fixture = Fixture::new();
        let told = fixture
            .run(&format!("{FIND_GUARD}; {stop}; echo on; exit 3"))
            .await;
        assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 3 }), "{stop}");
    }
}

/// It has none of the marks that processes are known by, and is adopted all the same.
#[tokio::test]
async fn what_has_another_environment_is_ended_too() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!(
        "setsid -f env -i bash -c 'exec -a {mark} sleep 1000'; kill -KILL $PPID; sleep 1000"
    );
    let error = failure(fixture.call(json!({ "command": command })).await);
    assert_eq!(error.code, ToolErrorCode::InDoubt);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_stopped_supervisor_ends_its_command_in_time_though_its_agent_is_gone() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("export M={mark}; echo up; kill -STOP $PPID; sleep 1000");
    let spec = spec(&fixture, &command, LONG_ENOUGH_SECONDS * 1000);
    kill_agent_of(&spec);
    let status = wait_for_end(&spec);
    assert!(status.timed_out);
    assert_eq!(status.stdout, "up\n");
    assert_eq!(survivors(&mark), [""; 0]);
}

/// Makes keepers refuse, so that each call has a supervisor that was started for it.
pub(crate) fn without_keeper(fixture: &mut Fixture) {
    after(fixture, "if [ \"$2\" = keeper ]; then exit 1; fi");
}

/// Runs a shell before supervisors.
pub(crate) fn after(fixture: &mut Fixture, first: &str) {
    let script = fixture.path().join("first");
    let text = format!(
        "#!/bin/bash\n{first}\nexec '{}' \"$@\"\n",
        program().display()
    );
    std::fs::write(&script, text).unwrap();
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&script, mode).unwrap();
    fixture.options.supervisor = SupervisorCommand::Path(script);
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_before_it_is_ready_is_woken() {
    let mut fixture = Fixture::new();
    after(&mut fixture, "kill -STOP $$");
    let long = "# ".repeat(45_000);
    for command in ["echo on", &format!("echo on {long}")] {
        assert_eq!(fixture.stdout(command).await, "on\n");
    }
}

/// Time stands still but for what is waited for.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_never_is_ready_is_given_up() {
    let mut fixture = Fixture::new();
    let mark = marker();
    after(&mut fixture, &format!("export M={mark}; exec sleep 1000"));
    let error = failure(fixture.call(json!({ "command": "echo on" })).await);
    assert_eq!(error.code, ToolErrorCode::Internal);
    assert!(error.message.contains("did not answer"), "{error:?}");
    // It was killed; the kernel takes a moment.
    wait_until(|| survivors(&mark).is_empty());
}

/// Limits the files that supervisors write to so many blocks of 1,024 bytes.
fn limited(fixture: &mut Fixture, blocks: u32) {
    after(fixture, &format!("ulimit -f {blocks}"));
}

#[tokio::test]
async fn a_command_whose_files_have_a_bound_has_its_result() {
    let mut fixture = Fixture::new();
    limited(&mut fixture, 4);
    fixture.options.output_bytes_max = 20_000;
    let told = fixture.run("seq 100000; exit 3").await;
    assert_eq!(told["exitCode"], 3);
    assert_eq!(told["truncated"], true);
    assert_eq!(told.get("full_output"), None);
    let stdout = told["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("\n100000\n"));
}

#[tokio::test]
async fn a_command_ends_by_the_bound_on_its_files_as_it_does_elsewhere() {
    let mut fixture = Fixture::new();
    limited(&mut fixture, 4);
    let told = fixture.run("exec head -c 100000 /dev/zero > big").await;
    assert_eq!(
        (&told["signal"], &told["exitCode"]),
        (&json!("SIGXFSZ"), &json!(153))
    );
}

#[tokio::test]
async fn a_call_whose_state_cannot_be_written_is_not_run() {
    let mut fixture = Fixture::new();
    limited(&mut fixture, 0);
    let error = failure(fixture.call(json!({ "command": "touch made" })).await);
    assert_eq!(error.code, ToolErrorCode::Failed);
    assert!(
        error.message.contains("failed to write the state"),
        "{error:?}"
    );
    assert!(error.message.contains("File too large"), "{error:?}");
    assert!(!fixture.path().join("made").exists());
}

#[tokio::test]
async fn a_call_that_is_not_kept_leaves_nothing_behind() {
    let mut fixture = Fixture::new();
    fixture.options.is_kept = false;
    fixture.options.outlive = std::time::Duration::from_hours(1);
    fixture.options.output_bytes_max = 1000;
    let state = fixture.state.path().display();
    let told = fixture
        .run(&format!("ls -A {state}; seq 100000; exit 3"))
        .await;
    assert_eq!(told["exitCode"], 3);
    assert_eq!(told["truncated"], true);
    assert_eq!(told.get("full_output"), None);
    let stdout = told["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("\n100000\n"));
    assert_eq!(entries(&fixture), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_call_that_is_not_kept_and_loses_its_supervisor_is_in_doubt() {
    let mut fixture = Fixture::new();
    fixture.options.is_kept = false;
    let mark = marker();
    let command = format!("export M={mark}; setsid -f sleep 1000; kill -KILL $PPID; sleep 1000");
    let error = failure(fixture.call(json!({ "command": command })).await);
    assert_eq!(error.code, ToolErrorCode::InDoubt);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_state_directory_that_was_removed_is_made_again() {
    let fixture = Fixture::new();
    std::fs::remove_dir_all(fixture.state.path()).unwrap();
    assert_eq!(fixture.stdout("echo on").await, "on\n");
    let status = CallStatus::read(fixture.state.path(), "key-1").unwrap();
    assert_eq!(status.unwrap().state, CommandState::Ended);
    let mode = std::fs::metadata(fixture.state.path()).unwrap();
    assert_eq!(mode.permissions().mode() & 0o077, 0);
}

#[tokio::test]
async fn a_command_that_leaves_something_running_is_told_so() {
    let fixture = Fixture::new();
    let told = fixture.run("sleep 1000 & echo started").await;
    let note = "the command left a process running, which was ended with it: nothing keeps running in the \
                background after a call";
    assert_eq!(
        told,
        json!({ "stdout": "started\n", "exitCode": 0, "note": note })
    );
    let told = fixture
        .run("trap '' HUP TERM; setsid -f sleep 1000; sleep 1001 & true")
        .await;
    let note = note.replace(
        "a process running, which was",
        "2 processes running, which were",
    );
    assert_eq!(told, json!({ "stdout": "", "exitCode": 0, "note": note }));
    let told = result(
        fixture
            .call(json!({ "command": "sleep 0.01 & wait; echo on" }))
            .await,
    );
    assert_eq!(told, json!({ "stdout": "on\n", "exitCode": 0 }));
}
