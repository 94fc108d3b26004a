//! Deadlines, and interpreters that end.

use crate::fixture::{
    call, cell, cell_cancelled, cell_within, failed, gone, repr, run, session, settings, supervisor,
};
use rondo_python::{
    Capability, CellLimits, LiveOutput, Loss, Session, SessionError, Settings, Stop,
};
use rondo_types::ToolErrorCode;
use serde_json::json;
use std::time::Duration;

#[track_caller]
fn lost<T: std::fmt::Debug>(result: Result<T, SessionError>) -> Loss {
    match result {
        Err(SessionError::Lost(loss)) => *loss,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endless_loop_is_interrupted_and_the_variables_stay() {
    let session = session();
    let code = "x = 5\nprint('begun')\nwhile True: pass";
    let end = cell_cancelled(&session, code).await.unwrap();
    assert_eq!(end.stopped, Some(Stop::Cancelled));
    assert_eq!(end.stdout, "begun\n");
    let raised = end.exception.unwrap();
    assert_eq!(raised.exc_type, "KeyboardInterrupt");
    let traceback = raised.traceback;
    assert!(traceback.contains(", in <module>") && !traceback.contains("<rondo>"));
    assert_eq!(repr(&session, "x").await, "5");
}

#[tokio::test]
async fn loops_sleeps_and_waits_end_at_their_deadline() {
    let session = session();
    run(&session, "import asyncio, os, subprocess, time\nx = 5").await;
    for code in [
        "while True: pass",
        "time.sleep(600)",
        "subprocess.run(['sleep', '600'])",
        "await asyncio.sleep(600)",
        "os.system('sleep 600')\nwhile True: pass",
    ] {
        let end = cell_within(&session, code, 50).await.unwrap();
        assert_eq!(end.stopped, Some(Stop::Deadline), "{code}");
        assert_eq!(repr(&session, "x").await, "5");
    }
    let until = CellLimits {
        deadline: Some(tokio::time::Instant::now()),
        ..CellLimits::default()
    };
    let late = session.run_cell("x = 6\nwhile True: pass", LiveOutput::discard(), until);
    match late.await {
        Ok(end) => assert_eq!(end.stopped, Some(Stop::Deadline)),
        Err(error) => assert!(matches!(error, SessionError::NotRun(Stop::Deadline))),
    }
}

#[tokio::test]
async fn code_that_takes_no_notice_loses_its_interpreter_which_is_told() {
    let mut settings = settings();
    settings.interrupt_grace = Duration::from_millis(250);
    let session = Session::new(settings);
    // Loops within the interpreter's own C code look at no signal, and neither does this write.
    let native = "import itertools, os\nall(itertools.chain(map(os.write, [1], [b'begun\\n']), itertools.repeat(1)))";
    let masked = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nprint('begun')\nwhile True: pass";
    let own = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\nwhile True: pass";
    for code in [native, masked, own] {
        run(&session, "x = 5").await;
        let loss = lost(cell_cancelled(&session, code).await);
        let expected = (Some(Stop::Cancelled), "begun\n");
        assert_eq!((loss.stopped, loss.stdout.as_str()), expected, "{code}");
        let told = loss.to_string();
        assert!(
            told.contains("did not react") && told.contains("variables are lost"),
            "{told}"
        );
        let end = run(&session, "'x' in globals()").await;
        assert_eq!(
            (end.value_repr.as_deref(), end.is_restarted),
            (Some("False"), true)
        );
        assert!(!run(&session, "1").await.is_restarted);
    }
}

#[tokio::test]
async fn an_interpreter_that_ends_itself_is_a_result_and_the_next_use_starts_anew() {
    let session = session();
    for (code, how) in [
        (
            "import os\nprint('last words', flush=True)\nos._exit(3)",
            "ended with exit code 3",
        ),
        (
            "import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)",
            "was ended by signal 11",
        ),
    ] {
        let error = failed(call(&session, Capability::RunCode, json!({ "code": code })).await);
        assert_eq!(error.code, ToolErrorCode::Failed);
        assert!(error.message.contains(how), "{}", error.message);
        assert_eq!(error.details["stdout"], "last words\n");
        let next = call(&session, Capability::RunCode, json!({"code": "1"})).await;
        let next = crate::fixture::found(next);
        assert_eq!(next["value_repr"], "1");
        assert!(
            next["note"].as_str().unwrap().contains("new interpreter"),
            "{next}"
        );
    }
}

#[tokio::test]
async fn an_interpreter_that_ends_between_two_calls_is_told_once() {
    let session = session();
    let end = run(&session, "import os\nx = 5\nos.getpid()").await;
    let pid = end.value_repr.unwrap();
    let kill = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status();
    assert!(kill.unwrap().success());
    gone(&pid).await;
    let error = failed(call(&session, Capability::GetRepr, json!({"expr": "x"})).await);
    assert_eq!(error.code, ToolErrorCode::Failed);
    assert!(error.message.contains("signal 9"), "{}", error.message);
    let error = failed(call(&session, Capability::GetRepr, json!({"expr": "x"})).await);
    assert_eq!(error.message, "NameError: name 'x' is not defined");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_interrupted() {
    let session = session();
    run(&session, "x = 5").await;
    let code = "print('begun')\nwhile True: pass";
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let live = LiveOutput::new(move |_, _| _ = begun.try_send(()));
    tokio::select! {
        end = session.run_cell(code, live, CellLimits::default()) => panic!("{end:?}"),
        _ = begins.recv() => {}
    }
    assert_eq!(repr(&session, "x").await, "5");
}

#[tokio::test]
async fn an_interrupt_ends_what_runs_and_nothing_that_comes_later() {
    let session = session();
    run(&session, "x = 5").await;
    session.interrupt();
    assert_eq!(
        run(&session, "x + 1").await.value_repr.as_deref(),
        Some("6")
    );
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let live = LiveOutput::new(move |_, _| _ = begun.try_send(()));
    let code = "print('begun', flush=True)\nwhile True: pass";
    let running = session.run_cell(code, live, CellLimits::default());
    let interrupting = async {
        begins.recv().await;
        session.interrupt();
    };
    let (end, ()) = tokio::join!(running, interrupting);
    let end = end.unwrap();
    assert_eq!(end.exception.unwrap().exc_type, "KeyboardInterrupt");
    assert_eq!(end.stopped, None);
    assert_eq!(repr(&session, "x").await, "5");
}

#[tokio::test]
async fn nothing_is_left_behind_when_a_session_ends() {
    let code = "import os, subprocess\nchild = subprocess.Popen(['sleep', '600'])\nforked = os.fork()\nif forked == 0:\n    import time\n    time.sleep(600)\nprint(os.getpid(), child.pid, forked, flush=True)";
    // While it is idle, and while it is busy.
    for busy in ["", "while True: pass"] {
        let session = session();
        let (said, mut says) = tokio::sync::mpsc::channel(1);
        let live = LiveOutput::new(move |_, text| drop(said.try_send(text)));
        let code = format!("{code}\n{busy}");
        let running = session.run_cell(&code, live, CellLimits::default());
        let pids = match busy {
            "" => running.await.unwrap().stdout,
            _ => tokio::select! {
                end = running => panic!("{end:?}"),
                pids = says.recv() => pids.unwrap(),
            },
        };
        drop(session);
        assert_eq!(pids.split_whitespace().count(), 3, "{pids}");
        for pid in pids.split_whitespace() {
            gone(pid).await;
        }
    }
}

#[tokio::test]
async fn what_the_interpreter_started_goes_with_it_when_it_is_lost() {
    let session = session();
    let code = "import os, subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint(child.pid, flush=True)\nos._exit(0)";
    let loss = lost(cell(&session, code).await);
    gone(&loss.stdout).await;
}

#[test]
fn the_end_of_a_runtime_ends_its_interpreter() {
    let session = session();
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let first = runtime();
    let pid = first.block_on(async {
        run(&session, "import os\nx = 5\nos.getpid()")
            .await
            .value_repr
            .unwrap()
    });
    drop(first);
    // The same session serves another runtime, with another interpreter.
    runtime().block_on(async {
        gone(&pid).await;
        let end = run(&session, "'x' in globals()").await;
        assert_eq!(end.value_repr.as_deref(), Some("False"));
    });
}

#[tokio::test]
async fn a_program_that_is_no_interpreter_is_told() {
    let broken = |program: &str| {
        let mut settings = Settings::new(program.into(), "/".into());
        settings.supervisor = supervisor();
        Session::new(settings)
    };
    let error = cell(&broken("/nowhere/python3"), "1").await.unwrap_err();
    assert!(matches!(error, SessionError::Start { .. }), "{error}");
    let error = failed(
        call(
            &broken("/nowhere/python3"),
            Capability::EvalExpr,
            json!({"expr": "1"}),
        )
        .await,
    );
    assert!(
        error.message.contains("/nowhere/python3") && error.message.contains("No such file"),
        "{}",
        error.message
    );
    let error = cell(&broken("/bin/false"), "1").await.unwrap_err();
    let SessionError::NotReady { said, .. } = error else {
        panic!("{error}")
    };
    assert!(said.contains("exit code 1"), "{said}");
}

#[tokio::test]
async fn an_interpreter_that_does_not_start_in_time_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("python3");
    std::fs::write(&program, "#!/bin/sh\necho waiting >&2\nexec sleep 600\n").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = Settings::new(program, "/".into());
    settings.supervisor = supervisor();
    settings.start_timeout = Duration::from_millis(200);
    let error = cell(&Session::new(settings), "1").await.unwrap_err();
    assert!(matches!(error, SessionError::NotReady { .. }), "{error}");
}
