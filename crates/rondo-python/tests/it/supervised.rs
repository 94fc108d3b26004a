//! Interpreters under a supervisor: their children, their ends, and their access.

use crate::fixture::{cell, gone, repr, run, settings};
use rondo_launch::SupervisorCommand;
use rondo_python::{Session, SessionError, Settings};
use rondo_sandbox::{Enforcement, SandboxMode, SandboxSpec, readable_roots};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::Path;
use std::sync::Arc;

/// Starts a process that leaves the group of its interpreter, and prints its id.
const DETACHES: &str = "import subprocess\nd = subprocess.Popen(['sleep', '600'], start_new_session=True)\nprint(d.pid)";
/// Prints the ids of the supervisor, of what started that, and of the parent of that.
const ANCESTORS: &str = "
def parent(pid):
    with open(f'/proc/{pid}/stat') as stat:
        return int(stat.read().rpartition(') ')[2].split()[1])
import os
first = os.getppid(); second = parent(first); print(first, second, parent(second))";

async fn numbers(session: &Session, code: &str) -> Vec<i32> {
    let told = run(session, code).await.stdout;
    let numbers = told.split_whitespace().map(|it| it.parse().unwrap());
    numbers.collect()
}

fn kill(process: i32) {
    let process = Pid::from_raw(process).unwrap();
    kill_process(process, Signal::KILL).unwrap();
}

/// Settings with a keeper that no other test has.
fn alone(folder: &Path) -> Settings {
    let mut settings = settings();
    let Some(SupervisorCommand::Path(program)) = &settings.supervisor else {
        panic!("{settings:?}");
    };
    let link = folder.join("supervisor");
    std::os::unix::fs::symlink(program, &link).unwrap();
    settings.supervisor = Some(SupervisorCommand::Path(link));
    settings
}

#[tokio::test]
async fn what_leaves_the_interpreter_ends_with_it_unless_a_person_started_it() {
    let session = Session::new(settings());
    let detached = numbers(&session, DETACHES).await;
    drop(session);
    gone(&detached[0].to_string()).await;

    let mut settings = settings();
    settings.has_terminal = true;
    let session = Session::new(settings);
    let detached = numbers(&session, DETACHES).await;
    let [supervisor, ..] = numbers(&session, ANCESTORS).await[..] else {
        panic!("there is no supervisor");
    };
    drop(session);
    gone(&supervisor.to_string()).await;
    let stays = Pid::from_raw(detached[0]).unwrap();
    test_kill_process(stays).unwrap();
    kill(detached[0]);
}

#[tokio::test]
async fn an_interpreter_does_not_miss_its_keeper_and_the_next_one_has_another() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new(alone(folder.path()));
    let [_, _, keeper] = numbers(&session, ANCESTORS).await[..] else {
        panic!("there is no keeper");
    };
    assert_ne!(keeper, std::process::id().cast_signed());
    kill(keeper);
    run(&session, "x = 5").await;
    assert_eq!(repr(&session, "x").await, "5");
    cell(&session, "import os; os._exit(0)").await.unwrap_err();
    let [_, _, next] = numbers(&session, ANCESTORS).await[..] else {
        panic!("there is no keeper");
    };
    assert_ne!(next, keeper);
}

#[tokio::test]
async fn an_interpreter_whose_supervisor_is_killed_is_lost_with_what_it_started() {
    let session = Session::new(settings());
    let detached = numbers(&session, DETACHES).await;
    let code = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)";
    let lost = cell(&session, code).await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost(_)), "{lost}");
    gone(&detached[0].to_string()).await;
    // The next use has another.
    assert_eq!(
        run(&session, "'d' in globals()")
            .await
            .value_repr
            .as_deref(),
        Some("False")
    );
}

/// Most containers do not let a process confine itself.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
fn is_enforced() -> bool {
    let support = rondo_sandbox::support();
    let is_full = support.enforcement() == Some(Enforcement::Full);
    if !is_full {
        eprintln!("not run, since the sandbox is not enforced here: {support:?}");
    }
    is_full
}

#[tokio::test]
async fn a_sandboxed_interpreter_works_in_its_directory_and_reaches_nothing_else() {
    if !is_enforced() {
        return;
    }
    // Where nothing is writable by itself: `/tmp` is the interpreter's own.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (work, keys) = (place.path().join("work"), place.path().join("keys"));
    for folder in [&work, &keys] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(keys.join("key"), "open sesame").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings();
    settings.directory.clone_from(&work);
    let (path, home) = (std::env::var_os("PATH"), std::env::home_dir());
    let mut sandbox = SandboxSpec::new(SandboxMode::WorkspaceWrite, vec![work.clone()]);
    sandbox.readable = Arc::new(readable_roots(home.as_deref(), path.as_deref()));
    sandbox.home = home;
    settings.sandbox = Some(sandbox);
    let session = Session::new(settings);
    let written = "import json; open('result', 'w').write(json.dumps([1]))";
    assert_eq!(run(&session, written).await.exception, None);
    assert_eq!(std::fs::read_to_string(work.join("result")).unwrap(), "[1]");
    let address = listener.local_addr().unwrap();
    for reaches in [
        format!("open({:?}).read()", keys.join("key")),
        format!("open({:?}, 'w')", keys.join("new")),
        format!(
            "import socket; socket.create_connection(('127.0.0.1', {}))",
            address.port()
        ),
        "import os; os.kill(os.getppid(), 9)".to_owned(),
        "import subprocess; subprocess.run(['cat', '/proc/1/environ'], check=True)".to_owned(),
    ] {
        let end = cell(&session, &reaches).await.unwrap();
        assert!(end.exception.is_some(), "{reaches}");
    }
    // It is still the same one.
    assert_eq!(repr(&session, "json.dumps([2])").await, "'[2]'");
}

#[tokio::test]
async fn a_sandbox_without_a_supervisor_is_refused() {
    let mut settings = settings();
    settings.supervisor = None;
    let directories = vec![settings.directory.clone()];
    settings.sandbox = Some(SandboxSpec::new(SandboxMode::ReadOnly, directories));
    let refused = cell(&Session::new(settings), "1").await.unwrap_err();
    assert!(matches!(refused, SessionError::Start { .. }), "{refused}");
}
