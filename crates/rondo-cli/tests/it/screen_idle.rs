//! A screen in which nothing happens.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_D, Person};
use crate::screen::REVIEW;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long nothing is to be called.
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

/// Needs `strace`, which `cargo xtask test` installs where it can.
#[tokio::test]
async fn an_idle_screen_calls_no_system_with_the_pane_open_and_while_an_approval_waits() {
    let can_trace = std::process::Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "true"])
        .status();
    if !can_trace.is_ok_and(|it| it.success()) {
        return;
    }
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made.txt"})),
        says("Over."),
    ])
    .await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let trace = env.project().join("trace");
    let url = server.url("/v1");
    let traced = "exec strace -f -qq -o \"$0\" \"$1\" -m openai/test --base-url \"$2\"";
    let rondo = env!("CARGO_BIN_EXE_rondo");
    let trace_name = trace.display().to_string();
    let args = ["-c", traced, &trace_name, rondo, &url];
    let mut person = Person::start_as(&env, "bash", &args);
    person.shows("? help").await;
    person.press("\x1d").await;
    person.shows("Ctrl-] leaves").await;
    person.press("echo it-runs; false\r").await;
    person.shows("exit 1").await;
    assert!(is_idle(&mut person, &trace).await, "with the pane");
    person.press("\x1d").await;
    person.shows("Ctrl-] enters").await;
    person.press("make it\r").await;
    person.shows("1 approval waits").await;
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
