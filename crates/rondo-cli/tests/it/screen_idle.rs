//! A screen in which nothing happens.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_D, Person};
use crate::screen::{self, REVIEW};
use rondo_testkit::Server;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long no call may be made.
const QUIET: Duration = Duration::from_secs(3);
/// Times that this is looked at before it counts as never: threads that did something for the screen wait some seconds for
/// more to do, and then end.
const LOOKS_MAX: usize = 20;

/// Waits until no process of the screen calls the system for a while, and returns whether that comes.
async fn is_idle(person: &mut Person, trace: &Path) -> bool {
    let traced = || fs::metadata(trace).map_or(0, |it| it.len());
    for _ in 0..LOOKS_MAX {
        let before = traced();
        if person.is_silent_for(QUIET).await && traced() == before {
            return true;
        }
    }
    false
}

/// Returns whether system calls can be traced.
fn can_trace() -> bool {
    let tried = std::process::Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "true"])
        .status();
    tried.is_ok_and(|it| it.success())
}

/// Opens a screen whose system calls are traced into a file.
fn open_traced(env: &TestEnv, server: &Server, trace: &Path, session: &str) -> Person {
    let traced = "exec strace -f -qq -o \"$0\" \"$1\" -m openai/test --base-url \"$2\" $3";
    let rondo = env!("CARGO_BIN_EXE_rondo");
    let (trace, url) = (trace.display().to_string(), server.url("/v1"));
    Person::start_as(env, "bash", &["-c", traced, &trace, rondo, &url, session])
}

#[tokio::test]
async fn a_screen_whose_message_another_process_read_is_idle_again() {
    if !can_trace() {
        return;
    }
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made.txt"})),
        says("Over."),
        says("And this."),
    ])
    .await;
    let env = TestEnv::new();
    let trace = env.project().join("trace");
    let mut owner = screen::open(&env, &server, &[]).await;
    owner.press("make it\r").await;
    owner.shows("may this run?").await;
    let mut other = open_traced(&env, &server, &trace, "-c");
    // The question opens by itself at both.
    other.shows("may this run?").await;
    other.press("\x1b").await;
    other.shows_no_more("may this run?").await;
    other.press("this too\r").await;
    other.shows("⧗").await;
    owner.shows("y allow").await;
    owner.press("y").await;
    owner.shows("Over.").await;
    other.shows("Over.").await;
    assert!(is_idle(&mut other, &trace).await);
    screen::leave(owner).await;
    screen::leave(other).await;
}

/// Needs `strace`, which `cargo xtask test` installs if it can.
#[tokio::test]
async fn an_idle_screen_calls_no_system_with_the_pane_open_and_while_an_approval_waits() {
    if !can_trace() {
        return;
    }
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made.txt"})),
        says("Over."),
    ])
    .await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let trace = env.project().join("trace");
    let mut person = open_traced(&env, &server, &trace, "");
    person.shows("? help").await;
    person.press("\x1d").await;
    person.shows("Ctrl-] leaves").await;
    person.press("echo it-runs; false\r").await;
    person.shows("exit 1").await;
    assert!(is_idle(&mut person, &trace).await, "with the pane");
    person.press("\x1d").await;
    person.shows("Ctrl-] enters").await;
    person.press("make it\r").await;
    person.shows("may this run?").await;
    assert!(
        is_idle(&mut person, &trace).await,
        "while an approval waits"
    );
    // It is awake at once.
    person.press(REVIEW).await;
    person.shows("touch made.txt").await;
    assert!(
        is_idle(&mut person, &trace).await,
        "while a question is shown"
    );
    person.press("n").await;
    person.shows("Over.").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
}
