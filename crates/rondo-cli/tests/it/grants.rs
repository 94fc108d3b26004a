//! Grants for a session and permanent ones, and their effects.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::person::Person;
use crate::repl::{leave, start};
use crate::sandbox::is_enforced;
use rondo_testkit::{ReplyScript, Server};
use serde_json::json;
use std::fs;

pub(crate) const QUESTION: &str = "Run it? y/n";

/// A grant for all commands that begin so counts only in the sandbox.
fn in_sandbox() -> TestEnv {
    TestEnv::new().var("RONDO_SANDBOX", "workspace-write")
}

pub(crate) fn runs(command: &str) -> ReplyScript {
    calls("exec", &json!({ "command": command }))
}

/// Starts the prompt of the shell's design and asks for something.
pub(crate) async fn asked(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let mut person = start(env, server, &[&["--profile", "shell"], args].concat());
    person.prompt("agent").await;
    person.enter("go").await;
    person
}

/// Answers the question about a call, once both show.
pub(crate) async fn answer(person: &mut Person, about: &str, key: &str) {
    person.sees(about).await;
    person.sees_below(about, QUESTION).await;
    person.types_behind(": ").await;
    person.press(key).await;
    person.press("\r").await;
}

async fn questions_of_one_more(env: &TestEnv, args: &[&str], command: &str) -> usize {
    let server = serve(vec![runs(command), says("Over.")]).await;
    let mut person = asked(env, &server, args).await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    let questions = person.all().matches(QUESTION).count();
    leave(person).await;
    questions
}

#[tokio::test]
async fn what_is_allowed_for_a_session_is_allowed_after_a_restart_and_in_no_other_session() {
    if !is_enforced() {
        return;
    }
    let env = in_sandbox();
    let server = serve(vec![runs("touch a.txt"), says("Made.")]).await;
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "touch a.txt", "a").await;
    person.sees("Made.").await;
    person.prompt("agent").await;
    leave(person).await;

    assert_eq!(questions_of_one_more(&env, &["-c"], "touch b.txt").await, 0);
    assert!(env.project().join("b.txt").exists());
    let list = env.run(&["session", "list", "--json"]).await;
    let session = list.lines()[0]["id"].as_str().unwrap().to_owned();
    let elsewhere = ask(&env, "touch c.txt", &[]).await;
    assert_eq!(elsewhere.code, Some(44), "{elsewhere:?}");
    let server = serve(vec![runs("touch d.txt"), says("Over.")]).await;
    let url = server.url("/v1");
    let fork = [
        "fork",
        &session,
        "--at",
        "2.2",
        "--message",
        "go on",
        "--base-url",
        &url,
    ];
    let forked = env.run(&fork).await;
    assert_eq!(forked.code, Some(44), "a fork inherits nothing: {forked:?}");
}

/// Asks without a terminal, so that what needs approval ends with code 44.
async fn ask(env: &TestEnv, command: &str, args: &[&str]) -> Shown {
    let server = serve(vec![runs(command), says("Over.")]).await;
    let all = [&["--profile", "shell"], args, &["go"]].concat();
    env.ask(&server, &all).await
}

#[tokio::test]
async fn what_is_allowed_for_ever_is_shown_as_a_difference_and_written_first() {
    if !is_enforced() {
        return;
    }
    let env = in_sandbox();
    let file = env.home().join(".config/rondo/policy.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "lift = []\n").unwrap();
    let server = serve(vec![runs("touch a.txt"), says("Made.")]).await;
    let mut person = asked(&env, &server, &[]).await;
    answer(&mut person, "touch a.txt", "f").await;
    person.sees("+command = [\"touch\"]").await;
    person.sees("Write this and run it? y/n").await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "lift = []\n");
    person.press("n\r").await;
    person.sees_below("Write this", QUESTION).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "lift = []\n");
    person.types_behind("no, because…): ").await;
    person.press("f\r").await;
    person
        .types_behind("Write this and run it? y/n, then Enter (Enter alone: no): ")
        .await;
    person.press("y\r").await;
    person.sees("Made.").await;
    person.prompt("agent").await;
    leave(person).await;
    let written = "lift = []\n\n[[grant]]\ntool = \"exec\"\ncommand = [\"touch\"]\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), written);

    let other_session = ask(&env, "touch b.txt", &[]).await;
    assert_eq!(other_session.code, Some(0), "{other_session:?}");
    assert!(env.project().join("b.txt").exists());
    let outside = ask(&env, "touch ../b.txt", &[]).await;
    assert_eq!(outside.code, Some(44), "{outside:?}");
    let list = env.run(&["policy", "list"]).await;
    assert!(list.stdout.contains("allow  exec(touch *)"), "{list:?}");
    let check = env.run(&["policy", "check", "touch b.txt"]).await;
    assert!(check.stdout.contains("grant: you allowed it"), "{check:?}");
}

#[tokio::test]
async fn an_answer_from_elsewhere_can_allow_more_than_its_call() {
    if !is_enforced() {
        return;
    }
    let env = in_sandbox();
    let parked = ask(&env, "touch a.txt", &["--approval", "park"]).await;
    assert_eq!(parked.code, Some(47), "{parked:?}");
    let server = serve(vec![says("Over."), runs("touch b.txt"), says("Again.")]).await;
    let url = server.url("/v1");
    let words = ["answer", "--base-url", &url, "latest", "f"];
    let answered = env.run(&words).await;
    assert_eq!(
        answered.code,
        Some(44),
        "a change of rules is shown: {answered:?}"
    );
    let answered = env
        .run(&["answer", "--base-url", &url, "latest", "a"])
        .await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let again = env
        .ask(&server, &["--profile", "shell", "-c", "once more"])
        .await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(env.project().join("b.txt").exists());
    let replay = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replay.code, Some(0), "{replay:?}");
}

#[tokio::test]
async fn an_answer_is_void_once_the_file_that_would_run_is_another_one() {
    let env = TestEnv::new();
    let script = env.project().join("run.sh");
    fs::write(&script, "touch asked.txt").unwrap();
    let parked = ask(&env, "bash run.sh", &["--approval", "park"]).await;
    assert_eq!(parked.code, Some(47), "{parked:?}");
    fs::write(&script, "touch other.txt").unwrap();
    let server = serve(vec![says("Over.")]).await;
    let url = server.url("/v1");
    let words = ["answer", "--base-url", &url, "latest", "y"];
    let answered = env.run(&words).await;
    assert_eq!(answered.code, Some(47), "it waits again: {answered:?}");
    let made = |name: &str| env.project().join(name).exists();
    assert!(!made("asked.txt") && !made("other.txt"));
    let answered = env.run(&words).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(made("other.txt"));
}

#[tokio::test]
async fn an_imported_session_allows_nothing() {
    let env = TestEnv::new();
    let parked = ask(&env, "touch a.txt", &["--approval", "park"]).await;
    assert_eq!(parked.code, Some(47), "{parked:?}");
    let server = serve(vec![says("Over.")]).await;
    let url = server.url("/v1");
    let answered = env
        .run(&["answer", "--base-url", &url, "latest", "a"])
        .await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let file = env.project().join("s.jsonl");
    let file = file.to_str().unwrap();
    let exported = env.run(&["session", "export", "latest", "-o", file]).await;
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert!(fs::read_to_string(file).unwrap().contains("\"remember\""));
    let other = TestEnv::new();
    let imported = other.run(&["session", "import", file]).await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let id = imported
        .stdout
        .split_whitespace()
        .last()
        .unwrap()
        .to_owned();
    let again = ask(&other, "touch b.txt", &["--session", &id]).await;
    assert_eq!(again.code, Some(44), "{again:?} {imported:?}");
}
