use crate::agent::wait_until;
use crate::deaths::without_keeper;
use crate::fixture::{
    Fixture, LONG_ENOUGH_SECONDS, PATIENCE, failure, marker, open_gate, result, survivors,
};
use crate::sandbox::{is_enforced, spec};
use rondo_core::ports::Tool;
use rondo_exec::supervisor::{CallStatus, CommandState};
use rondo_exec::{ExecTool, SupervisorCommand};
use rondo_sandbox::SandboxMode;
use rondo_types::{Concurrency, Effects, Recovery, ToolErrorCode, ToolOutcome};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

#[tokio::test]
async fn gs_10_commands_run_in_bash_on_a_terminal_of_their_own() {
    let fixture = Fixture::new();
    let command = "[[ -t 1 && -t 2 && ! -t 0 ]] && echo tty; (: < /dev/tty) && echo controlling; \
                   echo $BASH_VERSION | cut -c1; stty size < /dev/tty";
    let out = fixture.stdout(command).await;
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[..2], ["tty", "controlling"]);
    assert!(lines[2].parse::<u32>().is_ok());
    assert_eq!(lines[3], "24 120");
}

#[tokio::test]
async fn gs_11_output_is_live_and_captured() {
    let fixture = Fixture::new();
    let fifo = fixture.path().join("gate");
    let gate = fifo.display().to_string();
    let command = format!("mkfifo {gate}; printf '\\e[31mred\\e[0m\\n'; cat {gate}; echo late");
    let seen = async {
        while !fixture.live().contains("red") {
            tokio::task::yield_now().await;
        }
        open_gate(fifo).await;
    };
    let (out, ()) = tokio::join!(fixture.stdout(&command), seen);
    assert_eq!(out, "red\nopen\nlate\n");
    assert_eq!(fixture.live(), "\u{1b}[31mred\u{1b}[0m\nopen\nlate\n");
}

#[tokio::test]
async fn gs_12_gs_13_a_failed_command_is_a_result_with_both_streams_in_one() {
    let fixture = Fixture::new();
    let result = fixture.run("echo out; echo err >&2; exit 3").await;
    assert_eq!(
        serde_json::to_string(&result).unwrap(),
        r#"{"stdout":"out\nerr\n","exitCode":3}"#
    );
}

#[tokio::test]
async fn gs_13_a_command_that_cannot_start_says_that_the_pty_failed() {
    let mut fixture = Fixture::new();
    let variables = Arc::make_mut(&mut fixture.options.environment);
    let long = "x".repeat(200_000);
    variables.set.insert("LONG".to_owned(), long);
    let error = failure(fixture.call(json!({ "command": "true" })).await);
    assert_eq!(error.code, ToolErrorCode::Failed);
    assert!(
        error
            .message
            .starts_with("Error executing command: failed to start pty: "),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_command_longer_than_the_kernels_bound_on_an_argument_runs() {
    let fixture = Fixture::new();
    let mut confined = Fixture::new();
    if is_enforced() {
        confined.options.sandbox = Some(spec(&confined, SandboxMode::WorkspaceWrite));
    }
    for fixture in [&fixture, &confined] {
        for length in [131_071 - 38, 131_071 - 37, 400_000] {
            let text = "a 'line'\n".repeat(length / 9) + &"x".repeat(length % 9);
            let command = format!("cat > made <<'EOF'\n{text}\nEOF\necho $0 $#; exit 3");
            let result = fixture.run(&command).await;
            assert_eq!(result["exitCode"], 3, "{result}");
            let stdout = result["stdout"].as_str().unwrap();
            assert!(stdout.ends_with("bash 0\n"), "{stdout}");
            let made = std::fs::read_to_string(fixture.path().join("made")).unwrap();
            assert!(made == format!("{text}\n"), "{length}");
        }
        let open = format!("# {}\nls /proc/self/fd | wc -l", "x".repeat(200_000));
        let usual = fixture.stdout("true; ls /proc/self/fd | wc -l").await;
        assert_eq!(fixture.stdout(&open).await, usual);
    }
}

#[test]
fn gs_14_my_19_the_tools_are_offered_as_designed() {
    let fixture = Fixture::new();
    let spec = ExecTool::exec(fixture.options.clone()).spec();
    assert_eq!(spec.name, "exec");
    assert_eq!(
        spec.description,
        "Execute a shell command and return the output. Use this to run commands, scripts, or interact with the system."
    );
    assert_eq!(
        spec.parameters,
        json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The shell command to execute" },
                // Fields that ours has beside the design's, all of them optional.
                "working_directory": {
                    "type": "string",
                    "description": "Default: the current directory"
                },
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": 86_400,
                    "description": "In seconds"
                }
            },
            "required": ["command"]
        })
    );
    assert_eq!(
        (spec.effects, spec.concurrency, spec.recovery),
        (Effects::Writes, Concurrency::Exclusive, Recovery::Checkable)
    );
    let react = ExecTool::execute_command(fixture.options.clone()).spec();
    assert_eq!(react.name, "execute_command");
    assert_eq!(
        react.description,
        "Execute a shell command safely. Use this to run system commands."
    );
    assert_eq!(
        react.parameters,
        json!({
            "type": "object",
            "properties": { "command": { "type": "string", "description": "The command to run" } },
            "required": ["command"]
        })
    );
}

#[tokio::test]
async fn gs_15_a_missing_command_is_refused() {
    let fixture = Fixture::new();
    for arguments in [
        json!({}),
        json!({ "command": 1 }),
        json!({ "command": null }),
    ] {
        let error = failure(fixture.call(arguments).await);
        assert_eq!(error.code, ToolErrorCode::InvalidArgs);
        assert_eq!(
            error.message,
            "exec tool requires 'command' argument as string"
        );
    }
}

#[tokio::test]
async fn gs_15_a_result_is_json_whatever_the_bytes() {
    let fixture = Fixture::new();
    let out = fixture
        .stdout(r"printf '\x00\x01\xff\xfe\x1b[1m\xe2\x82'; printf '\xac\n'")
        .await;
    assert_eq!(out, "\0\u{1}\u{fffd}\u{fffd}\u{20ac}\n");
}

#[tokio::test]
async fn a_signal_is_named() {
    let fixture = Fixture::new();
    let result = fixture.run("kill -KILL $$").await;
    assert_eq!(
        result,
        json!({ "stdout": "", "exitCode": 137, "signal": "SIGKILL" })
    );
}

#[tokio::test]
async fn pagers_are_off_and_stdin_is_empty() {
    let fixture = Fixture::new();
    let out = fixture
        .stdout("echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT; cat; read x || echo none")
        .await;
    assert_eq!(out, "cat cat 0\nnone\n");
}

#[tokio::test]
async fn a_working_directory_is_relative_to_ours_and_must_exist() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("sub")).unwrap();
    std::fs::write(fixture.path().join("file"), "").unwrap();
    let arguments = json!({ "command": "basename $PWD", "working_directory": "sub" });
    assert_eq!(result(fixture.call(arguments).await)["stdout"], "sub\n");
    for (directory, message) in [
        ("nowhere", "`working_directory` `nowhere` does not exist"),
        ("file", "`working_directory` `file` is not a directory"),
    ] {
        let arguments = json!({ "command": "true", "working_directory": directory });
        let error = failure(fixture.call(arguments).await);
        assert_eq!(error.code, ToolErrorCode::InvalidArgs);
        assert_eq!(error.message, message);
    }
}

#[tokio::test]
async fn a_timeout_out_of_bounds_is_refused() {
    let fixture = Fixture::new();
    for (timeout, fits) in [
        (json!(0), true),
        (json!(-1), false),
        (json!("5"), false),
        (json!(86_399), true),
        (json!(86_400), true),
        (json!(86_401), false),
        (json!(1e300), false),
    ] {
        let outcome = fixture
            .call(json!({ "command": "true", "timeout": timeout }))
            .await;
        assert_eq!(outcome.is_ok(), fits, "{timeout}");
    }
}

#[tokio::test]
async fn a_timeout_keeps_the_output_and_ends_the_command() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("echo before; exec -a {mark} sleep 1000");
    let error = failure(
        fixture
            .call(json!({ "command": command, "timeout": LONG_ENOUGH_SECONDS }))
            .await,
    );
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(error.details["stdout"], "before\n");
    assert_eq!(error.details["timed_out"], true);
    assert_eq!(error.details["signal"], "SIGTERM");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_cancel_keeps_the_output_and_ends_the_command() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("echo before; exec -a {mark} sleep 1000");
    let cancel = async {
        while !fixture.live().contains("before") {
            tokio::task::yield_now().await;
        }
        fixture.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(fixture.call(json!({ "command": command })), cancel);
    let error = failure(outcome);
    assert_eq!(error.code, ToolErrorCode::Cancelled);
    assert_eq!(error.details["stdout"], "before\n");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_runs_nothing() {
    let fixture = Fixture::new();
    fixture.cancel.cancel();
    let error = failure(fixture.call(json!({ "command": "touch made" })).await);
    assert_eq!(error.code, ToolErrorCode::Cancelled);
    assert!(!fixture.path().join("made").exists());
}

#[tokio::test]
async fn the_status_file_tells_the_end_to_its_owner_only() {
    let fixture = Fixture::new();
    fixture.run("echo kept; exit 7").await;
    let status = CallStatus::read(fixture.state.path(), "key-1")
        .unwrap()
        .unwrap();
    assert_eq!(status.state, CommandState::Ended);
    assert_eq!(status.exit_code, Some(7));
    assert_eq!(status.stdout, "kept\n");
    wait_until(|| !status.supervisor_is_alive());
    let file = fixture.state.path().join("key-1.json");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        CallStatus::read(fixture.state.path(), "other")
            .unwrap()
            .is_none()
    );
    assert!(CallStatus::read(fixture.state.path(), "../x").is_err());
}

#[tokio::test]
async fn a_call_with_an_unusable_key_is_not_run() {
    let fixture = Fixture::new();
    let mut invocation = fixture.invocation(json!({ "command": "touch made" }));
    invocation.idempotency_key = "../key".to_owned();
    let error = failure(
        ExecTool::exec(fixture.options.clone())
            .call(invocation)
            .await,
    );
    assert_eq!(error.code, ToolErrorCode::Internal);
    assert!(!fixture.path().join("made").exists());
}

#[tokio::test]
async fn without_a_supervisor_nothing_wrong_is_started() {
    let mut fixture = Fixture::new();
    for (supervisor, message) in [
        (
            SupervisorCommand::CurrentExe,
            "this program has no supervisor",
        ),
        (
            SupervisorCommand::Path("supervisor".into()),
            "is not an absolute path",
        ),
        (
            SupervisorCommand::Path("/nonexistent/x".into()),
            "failed to start the supervisor",
        ),
        (
            SupervisorCommand::Path("/bin/true".into()),
            "the supervisor did not answer",
        ),
    ] {
        fixture.options.supervisor = supervisor;
        let error = failure(fixture.call(json!({ "command": "true" })).await);
        assert_eq!(error.code, ToolErrorCode::Internal);
        assert!(error.message.contains(message), "{}", error.message);
    }
}

#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let fixture = Fixture::new();
    let mark = marker();
    let command = format!("trap 'exit 0' TERM; echo {mark}; mkfifo f; cat f");
    let seen = async {
        while !fixture.live().contains(&mark) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = fixture.call(json!({ "command": command })) => panic!("it never ends by itself"),
        () = seen => {}
    }
    let ended = async {
        loop {
            let status = CallStatus::read(fixture.state.path(), "key-1")
                .unwrap()
                .unwrap();
            if status.state == CommandState::Ended {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    let status = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert!(status.cancelled);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[tokio::test]
async fn withheld_variables_do_not_reach_a_command() {
    let mut fixture = Fixture::new();
    let show = "echo ${CARGO_PKG_NAME:-none}";
    assert_eq!(fixture.stdout(show).await, "rondo-exec\n");
    Arc::make_mut(&mut fixture.options.environment)
        .withheld
        .push("CARGO_PKG_NAME".into());
    assert_eq!(fixture.stdout(show).await, "none\n");
    Arc::make_mut(&mut fixture.options.environment)
        .passed
        .push("CARGO_PKG_NAME".to_owned());
    assert_eq!(fixture.stdout(show).await, "rondo-exec\n");
}

#[tokio::test]
async fn git_does_not_wait_in_an_editor() {
    let fixture = Fixture::new();
    let setup = "git init -q . && git config user.name A && git config user.email a@b && git config core.editor 'sleep 60 #' \
                 && git commit -q --allow-empty -m one && git commit -q --allow-empty -m two";
    fixture.run(setup).await;
    let rebased = fixture
        .run("git rebase -q -i HEAD~1 && git commit -q --amend --allow-empty")
        .await;
    assert_eq!(rebased["exitCode"], 0, "{rebased}");
    let empty = fixture.run("git commit --allow-empty").await;
    assert!(
        empty["stdout"]
            .as_str()
            .unwrap()
            .contains("empty commit message"),
        "{empty}"
    );
    let subjects = fixture.run("git log --format=%s").await;
    assert_eq!(subjects["stdout"], "two\none\n", "{subjects}");
}

/// The variable is one that the command itself finds.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn neither_the_supervisor_nor_its_guard_shows_the_values_of_its_environment() {
    let mut fixture = Fixture::new();
    // A keeper has none to show.
    without_keeper(&mut fixture);
    let command = "guard=$(sed -n 's/^PPid:.//p' /proc/$PPID/status); echo $CARGO_PKG_NAME; \
                   for pid in $PPID $guard; do \
                   tr '\\0' '\\n' < /proc/$pid/environ | grep ^CARGO_PKG_NAME; done";
    let expected = "rondo-exec\nCARGO_PKG_NAME=\nCARGO_PKG_NAME=\n";
    assert_eq!(fixture.stdout(command).await, expected);
}

/// Programs close their output before they end; a terminal taken away at that instant ends them
/// by SIGHUP instead of their own exit code.
#[tokio::test]
async fn gs_12_a_command_that_closes_its_output_keeps_its_own_exit_code() {
    let fixture = Fixture::new();
    let command = "echo before; exec >&- 2>&-; sleep 0.1; exit 7";
    let result = fixture.run(command).await;
    assert_eq!(result, json!({ "stdout": "before\n", "exitCode": 7 }));
}

#[tokio::test]
async fn output_that_other_machines_may_have_written_is_marked() {
    let fixture = Fixture::new();
    for (command, is_marked) in [
        ("echo x", false),
        ("false && curl http://127.0.0.1:9; echo x", true),
    ] {
        let outcome = fixture.call(json!({ "command": command })).await;
        let ToolOutcome::Ok(output) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(output.from_outside, is_marked, "{command}");
    }
    let hangs = json!({"command": "false && curl x; sleep 30", "timeout": 0.1});
    let failed = failure(fixture.call(hangs).await);
    assert_eq!(failed.details["from_outside"], json!(true), "{failed:?}");
}
