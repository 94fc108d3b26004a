//! Questions about commands that offer the sandbox of a folder, and the effects of the choice.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::person::Person;
use crate::repl::{leave, start};
use crate::screen::{self, REVIEW};
use rondo_testkit::{ReplyScript, Server};
use serde_json::json;
use std::fs;

const QUESTION: &str = "Run it? y/n";
const OFFER: &str = "s: run commands in this folder in the sandbox from now on";
const STATUS: &str = " · auto, in the sandbox";

fn runs(command: &str) -> ReplyScript {
    calls("exec", &json!({ "command": command }))
}

/// Only a system that enforces the whole sandbox has questions that offer it.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
fn is_enforced() -> bool {
    let is_full = rondo_runtime::confined::is_full();
    if !is_full {
        eprintln!("not run, since the sandbox is not enforced here");
    }
    is_full
}

async fn begun(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let mut person = start(env, server, &[&["--profile", "shell"], args].concat());
    person.prompt("agent").await;
    person.enter("go").await;
    person
}

async fn ask(env: &TestEnv, args: &[&str], command: &str) -> Shown {
    let server = serve(vec![runs(command), says("Over.")]).await;
    env.ask(&server, &[&["--profile", "shell"], args, &["go"]].concat())
        .await
}

async fn revoked(env: &TestEnv) -> String {
    let shown = env.run(&["policy", "sandbox", "--revoke"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    shown.stdout
}

fn has(env: &TestEnv, name: &str) -> bool {
    env.project().join(name).exists()
}

#[tokio::test]
async fn a_folder_chosen_at_the_line_prompt_runs_commands_in_the_sandbox_until_it_is_revoked() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let (first, second) = (
        "mkdir one && touch ../outside1.txt",
        "mkdir two; touch ../outside2.txt",
    );
    let server = serve(vec![runs(first), runs(second), says("Over.")]).await;
    let mut person = begun(&env, &server, &[]).await;
    person.sees(OFFER).await;
    person.sees_below(OFFER, QUESTION).await;
    person.types_behind(": ").await;
    person.press("s\r").await;
    person
        .sees("`rondo policy sandbox --revoke` undoes it")
        .await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    person.types_behind(" · auto, in the sandbox › ").await;
    assert_eq!(person.all().matches(QUESTION).count(), 1);
    leave(person).await;
    assert!(has(&env, "one") && has(&env, "two"));
    assert!(!has(&env, "../outside1.txt") && !has(&env, "../outside2.txt"));

    let later = ask(&env, &[], "mkdir three").await;
    assert_eq!(later.code, Some(0), "{later:?}");
    assert!(has(&env, "three"));
    let asks = ask(&env, &["--approval", "ask"], "mkdir four").await;
    assert_eq!(asks.code, Some(44), "the command line counts: {asks:?}");

    let list = env.run(&["policy", "sandbox", "--list"]).await;
    assert_eq!(list.stdout, "[ROOT]/project\n");
    let again = "commands in `[ROOT]/project` need approval again\n";
    assert_eq!(revoked(&env).await, again);
    let nothing = revoked(&env).await;
    assert!(nothing.starts_with("nothing to undo: "), "{nothing}");
    let asked = ask(&env, &[], "mkdir five").await;
    assert_eq!(asked.code, Some(44), "{asked:?}");
}

#[tokio::test]
async fn a_person_reads_under_a_call_what_the_sandbox_refused_wherever_they_ask() {
    if !is_enforced() {
        return;
    }
    let note = "sandbox: it ran in a sandbox (";
    let auto = ["--profile", "shell", "--approval", "auto"];
    let refused = || vec![runs("touch /usr/rondo-refused"), says("Over.")];
    let env = TestEnv::new();
    let server = serve(refused()).await;
    let url = server.url("/v1");
    let own = ["ask", "-m", "openai/test", "--base-url", &url];
    let mut person = Person::start(&env, &[&own[..], &auto, &["go"]].concat());
    person.sees(note).await;
    assert_eq!(person.code().await, Some(0));
    assert!(
        !person.all().contains("a person is asked"),
        "{}",
        person.all()
    );

    let server = serve(refused()).await;
    let mut person = begun(&env, &server, &["--approval", "auto"]).await;
    person.sees(note).await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    leave(person).await;

    let server = serve(refused()).await;
    let mut person = screen::open(&env, &server, &auto).await;
    person.press("go\r").await;
    person.shows(note).await;
    person.shows("Over.").await;
    screen::leave(person).await;
}

#[tokio::test]
async fn doctor_names_the_folder_in_which_commands_run_in_the_sandbox() {
    let env = TestEnv::new();
    let args = [
        "doctor",
        "-m",
        "openai/m",
        "--base-url",
        "http://127.0.0.1:9",
    ];
    let before = env.run(&args).await;
    assert!(!before.stdout.contains("sandboxed folder"), "{before:?}");
    let chosen = env.run(&["policy", "sandbox"]).await;
    assert_eq!(chosen.code, Some(0), "{chosen:?}");
    let after = env.run(&args).await;
    let line = match is_enforced() {
        true => {
            "ok sandboxed folder [ROOT]/project: commands in it run in the sandbox without a question; \
             `rondo policy sandbox --revoke` undoes it\n"
        }
        false => "-- sandboxed folder [ROOT]/project: no effect here",
    };
    assert!(after.stdout.contains(line), "{after:?}");
    let off = env.var("RONDO_SANDBOX", "off").run(&args).await;
    let line = "-- sandboxed folder [ROOT]/project: no effect here";
    assert!(off.stdout.contains(line), "{off:?}");
}

#[tokio::test]
async fn the_full_screen_offers_the_sandbox_and_its_status_says_that_it_was_chosen() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let server = serve(vec![
        runs("mkdir one; touch ../outside.txt"),
        runs("mkdir two"),
        says("Over."),
        runs("mkdir three"),
        says("Over again."),
    ])
    .await;
    let mut person = screen::open(&env, &server, &["--profile", "shell"]).await;
    person.shows("─ agent · ask ").await;
    person.press("go\r").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("a from now on").await;
    person.press("a").await;
    person.shows("2  run commands in ").await;
    person.shows(" in the sandbox from now on").await;
    person.shows("Esc back").await;
    person.press("2").await;
    person.shows("Over.").await;
    person.shows("--revoke` undoes it").await;
    person.shows(STATUS).await;
    assert!(has(&env, "one") && has(&env, "two") && !has(&env, "../outside.txt"));
    person.press("once more\r").await;
    person.shows("Over again.").await;
    assert!(has(&env, "three"));
    screen::leave(person).await;

    let server = serve(vec![runs("mkdir four"), says("Over.")]).await;
    let mut person = screen::open(&env, &server, &["--profile", "shell"]).await;
    person.shows(STATUS).await;
    person.press("go\r").await;
    person.shows("Over.").await;
    assert!(has(&env, "four"));
    screen::leave(person).await;
}

#[tokio::test]
async fn what_has_to_be_reviewed_or_is_decided_elsewhere_is_not_offered() {
    if !is_enforced() {
        return;
    }
    for args in [&["--approval", "ask"][..], &["--sandbox", "off"]] {
        let env = TestEnv::new();
        let server = serve(vec![runs("mkdir one"), says("Over.")]).await;
        let mut person = begun(&env, &server, args).await;
        person.sees(QUESTION).await;
        person.types_behind(": ").await;
        assert!(!person.all().contains(OFFER), "{args:?}");
        // A letter that is not offered answers nothing.
        person.press("s\r").await;
        person.sees_below("because…): s", QUESTION).await;
        person.press("n\r").await;
        person.sees("Over.").await;
        person.prompt("agent").await;
        leave(person).await;
        assert!(!has(&env, "one"));
    }
    let env = TestEnv::new();
    let config = env.home().join(".config/rondo/config.toml");
    let refused = env
        .run(&["policy", "sandbox", env.home().to_str().unwrap()])
        .await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("your home directory"),
        "{refused:?}"
    );
    assert!(!fs::read_to_string(config).is_ok_and(|it| it.contains("sandboxed")));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_cannot_be_checked_is_asked_about_once_and_refused_with_nobody_to_ask() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    env.write("other.md", "a");
    let linked = env.project().join("AGENTS.md");
    fs::hard_link(env.project().join("other.md"), linked).unwrap();
    let refused = ask(&env, &["--approval", "auto"], "mkdir one").await;
    assert_eq!(refused.code, Some(44), "{refused:?}");
    let why = "the sandbox cannot check or hide everything below the working directories";
    assert!(refused.stderr.contains(why), "{refused:?}");
    let yolo = ["--yolo", "--sandbox", "workspace-write"];
    assert_eq!(ask(&env, &yolo, "mkdir yolo").await.code, Some(0));
    let doctor = env.run(&["doctor", "-m", "openai/m"]).await;
    assert!(
        doctor
            .stdout
            .contains("AGENTS.md: it has a second hard link"),
        "{doctor:?}"
    );

    let server = serve(vec![runs("mkdir two"), runs("mkdir three"), says("Over.")]).await;
    let mut person = begun(&env, &server, &["--approval", "auto"]).await;
    person
        .sees("AGENTS.md: it has a second hard link, by which it can be changed")
        .await;
    person.types_behind(": ").await;
    person.press("y\r").await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    assert_eq!(person.all().matches(QUESTION).count(), 1);
    leave(person).await;
    assert!(has(&env, "two") && has(&env, "three") && !has(&env, "one"));
}
