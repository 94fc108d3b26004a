//! Folders that a person must review, since a sandboxed command left changes in protected files.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The bound on everything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until another process has done something.
async fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it did not happen");
        tokio::task::yield_now().await;
    }
}

/// Returns the latest state of each command.
fn states(env: &TestEnv) -> Vec<Value> {
    let sessions = std::fs::read_dir(env.calls(""))
        .into_iter()
        .flatten()
        .flatten();
    let files =
        sessions.flat_map(|it| std::fs::read_dir(it.path()).into_iter().flatten().flatten());
    let files: Vec<PathBuf> = files.map(|it| it.path()).collect();
    let texts = files
        .iter()
        .filter_map(|it| std::fs::read_to_string(it).ok());
    let lines = texts.filter_map(|it| it.lines().last().map(str::to_owned));
    lines
        .filter_map(|it| serde_json::from_str(&it).ok())
        .collect()
}

#[tokio::test]
async fn what_was_set_aside_of_a_command_that_was_ended_is_said_to_the_person() {
    if !rondo_runtime::confined::is_full() {
        return;
    }
    let plants = "mkdir n; cd n; git init -q; git config core.fsmonitor x; touch up; sleep 1000; echo $DATABASE_URL";
    for (timeout, flags) in [(1, &[][..]), (600, &["--deadline", "3s"])] {
        let env = TestEnv::new();
        let call = json!({ "command": plants, "timeout": timeout });
        let server = serve(vec![calls("exec", &call), says("Done.")]).await;
        let args = [&["--approval", "auto"], flags, &["do it"]].concat();
        let shown = env.ask(&server, &args).await;
        let said = shown.stderr.contains("config.refused");
        assert!(said, "{timeout}: {}", shown.stderr);
    }
}

/// Sends a signal to the guard of the command that runs, and to its supervisor.
fn signal_watchers(env: &TestEnv, signal: &str) {
    let running = states(env).into_iter().find(|it| it["state"] == "running");
    let supervisor = running.unwrap()["pid"].to_string();
    let stat = std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
    let guard = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    let sent = std::process::Command::new("kill")
        .args([signal, guard, &supervisor])
        .status();
    assert!(sent.unwrap().success());
}

/// Plays a command that plants a file and whose watchers are killed; nothing if commands cannot be confined here. Another
/// command of the same turn does not run.
async fn planted() -> Option<TestEnv> {
    if !rondo_runtime::confined::is_full() {
        return None;
    }
    let env = TestEnv::new();
    env.write("AGENTS.md", "the instructions of the project");
    let plants = "touch begun; until test -e go; do sleep 0.01; done; echo planted > .envrc; touch up; sleep 1000";
    let plants = json!({ "command": plants });
    let server = serve(vec![
        calls("exec", &plants),
        calls("exec", &json!({ "command": "touch same-turn" })),
        says("Done."),
    ])
    .await;
    let url = server.url("/v1");
    let model = ["ask", "-m", "openai/test", "--base-url", &url];
    let args = [&model[..], &["--approval", "auto", "do it"]].concat();
    let running = env.command(&args).spawn().unwrap();
    let (begun, up) = (env.project().join("begun"), env.project().join("up"));
    wait_until(|| begun.exists()).await;
    // A watcher that runs gives the file another name at once.
    signal_watchers(&env, "-STOP");
    env.write("go", "");
    wait_until(|| up.exists()).await;
    signal_watchers(&env, "-KILL");
    let shown = env.wait(running).await;
    assert!(is_said(&shown), "{}", shown.stderr);
    let made = env.project().join("same-turn");
    assert!(!made.exists(), "{}", shown.stderr);
    assert!(env.project().join(".envrc").exists());
    Some(env)
}

fn is_said(shown: &Shown) -> bool {
    shown.stderr.contains("must be reviewed") && shown.stderr.contains("`.envrc: added`")
}

#[tokio::test]
async fn what_a_command_plants_whose_watchers_are_killed_is_said_by_the_next_turn_which_runs_nothing()
 {
    let Some(env) = planted().await else {
        return;
    };
    let run = json!({ "command": "touch ran" });
    for (flags, tool, arguments) in [
        (&["--yolo"][..], "exec", run.clone()),
        (&["--approval", "auto"], "exec", run.clone()),
        (&["--quiet", "--yolo"], "exec", run.clone()),
        (&["--allowed-tools", "exec"], "exec", run),
        (&["--yolo"], "exec", json!({ "command": "git status" })),
        (&["--yolo"], "read_file", json!({ "path": "AGENTS.md" })),
    ] {
        let server = serve(vec![calls(tool, &arguments), says("Done.")]).await;
        let shown = env.ask(&server, &[flags, &["again"]].concat()).await;
        assert!(is_said(&shown), "{flags:?}: {}", shown.stderr);
        let denied = shown.stderr.contains("this folder must be reviewed first");
        assert!(denied, "{flags:?}: {}", shown.stderr);
        assert!(!env.project().join("ran").exists(), "{flags:?}");
        let asked = server.requests()[0].json().to_string();
        assert!(
            !asked.contains("the instructions of the project"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn doctor_shows_what_was_left_and_everything_is_as_before_once_it_is_accepted() {
    let Some(env) = planted().await else {
        return;
    };
    let shown = env.run(&["doctor", "--review"]).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    let is_shown = shown.stdout.contains(".envrc: added") && shown.stdout.contains("+planted");
    assert!(is_shown, "{}", shown.stdout);
    let shown = env.run(&["doctor", "--review", "--json"]).await;
    let listed: Value = serde_json::from_str(&shown.stdout).unwrap();
    let kind_and_now = (&listed[0]["kind"], &listed[0]["now"]);
    assert_eq!(kind_and_now, (&json!("added"), &json!("planted\n")));
    let shown = env.run(&["doctor", "--review", "--accept"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = env.run(&["doctor", "--review"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let is_clear = shown.stdout.contains("nothing to review");
    assert!(is_clear, "{}", shown.stdout);
    let run = json!({ "command": "touch ran" });
    let server = serve(vec![calls("exec", &run), says("Done.")]).await;
    let shown = env.ask(&server, &["--yolo", "again"]).await;
    assert!(env.project().join("ran").exists(), "{}", shown.stderr);
    assert!(!is_said(&shown), "{}", shown.stderr);
    let asked = server.requests()[0].json().to_string();
    assert!(asked.contains("the instructions of the project"), "{asked}");
}

#[tokio::test]
async fn what_the_sandbox_set_aside_is_said_to_the_person_too() {
    if !rondo_runtime::confined::is_full() {
        return;
    }
    let env = TestEnv::new();
    let server = serve(vec![
        calls("exec", &json!({ "command": "echo planted > .envrc" })),
        says("Done."),
    ])
    .await;
    let shown = env.ask(&server, &["--approval", "auto", "do it"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains(".envrc.refused"), "{}", shown.stderr);
    assert!(
        !shown.stderr.contains("must be reviewed"),
        "{}",
        shown.stderr
    );
}
