//! Keys that are exported at the prompt.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{Person, TAB, UP};
use crate::repl::{leave, said, start};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::Path;

const KEY: &str = "secret-of-mine-0123456789";

fn bash() -> TestEnv {
    TestEnv::new().var("SHELL", "/bin/bash")
}

/// A provider that wants a key, as those on this machine do not.
fn team(server: &Server) -> TestEnv {
    let env = bash().var("http_proxy", &server.url(""));
    env.user_config(
        "[providers.team]\ndialect = 'openai-chat'\nbase_url = 'http://team.invalid/v1'\n\
         api_key_env = 'TEAM_LLM'\n",
    );
    env
}

/// Looks for the key in all that was sent and all that was kept. What bash keeps is the user's own.
#[track_caller]
fn check(env: &TestEnv, server: &Server) {
    for request in server.requests() {
        let body = request.json().to_string();
        assert!(!body.contains(KEY), "{body}");
    }
    let mut folders = vec![env.home(), env.project()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name() != Some(".bash_history".as_ref()) {
                assert!(!holds_key(&path), "{}", path.display());
            }
        }
    }
}

fn holds_key(file: &Path) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes())
}

/// Returns the lines of the history.
fn history(env: &TestEnv) -> Vec<String> {
    let file = env.home().join(".local/state/rondo/repl-history.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let line = |entry: &str| -> serde_json::Value { serde_json::from_str(entry).unwrap() };
    let lines = text.lines().map(line);
    lines
        .map(|entry| entry["line"].as_str().unwrap().to_owned())
        .collect()
}

async fn enter_all(person: &mut Person, mode: &str, lines: &[&str]) {
    for line in lines {
        person.enter(line).await;
        person.prompt(mode).await;
    }
}

#[tokio::test]
async fn a_key_that_is_exported_is_told_to_nobody() {
    let command = "cat token";
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("Noted."),
    ])
    .await;
    let env = bash();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    let export = format!("!export DEPLOY_TOKEN={KEY}");
    let lines = [
        export.as_str(),
        "!echo \"<$DEPLOY_TOKEN>\"",
        "!! echo $DEPLOY_TOKEN > token",
        "why?",
    ];
    enter_all(&mut person, "agent", &lines[..3]).await;
    person.enter(lines[3]).await;
    person.sees("Noted.").await;
    person.prompt("agent").await;
    person.press(UP).await;
    person.press(UP).await;
    person.press(UP).await;
    person.press(UP).await;
    person
        .types_behind("› !export DEPLOY_TOKEN=[redacted]")
        .await;
    person.press(crate::person::CTRL_C).await;
    person.prompt("agent").await;
    leave(person).await;
    let told = said(&server, 0).join("");
    assert!(
        told.contains("\n$ export DEPLOY_TOKEN=[redacted]\n") && told.contains("\n<[redacted]>\n"),
        "{told}"
    );
    let result = server.requests()[1].json()["messages"].to_string();
    assert!(result.contains("[redacted]\\\\n"), "{result}");
    std::fs::remove_file(env.project().join("token")).unwrap();
    check(&env, &server);
    let expected = [
        "!export DEPLOY_TOKEN=[redacted]",
        lines[1],
        lines[2],
        lines[3],
    ];
    assert_eq!(history(&env)[..4], expected);
}

#[tokio::test]
async fn the_advice_about_a_missing_key_works_at_the_prompt() {
    let server = serve(vec![says("first"), says("second"), says("third")]).await;
    let env = team(&server);
    let mut person = Person::start(&env, &["repl", "-m", "team/test"]);
    person.prompt("agent").await;
    person.enter("one?").await;
    person.sees("set it with `export TEAM_LLM=...`").await;
    person.prompt("agent").await;
    let export = format!("export TEAM_LLM={KEY}");
    // As it is advised, by the sign for the shell, and in the shell.
    enter_all(&mut person, "agent", &[&export]).await;
    person.enter("two?").await;
    person.sees("first").await;
    person.prompt("agent").await;
    enter_all(
        &mut person,
        "agent",
        &["!!export TEAM_LLM=another-of-mine-0123456789"],
    )
    .await;
    person.enter("three?").await;
    person.sees("second").await;
    person.prompt("agent").await;
    person.press(TAB).await;
    person.prompt("shell").await;
    let in_quotes = format!("TEAM_LLM='{KEY}'; true");
    enter_all(&mut person, "shell", &[&in_quotes]).await;
    person.enter("# four?").await;
    person.sees("third").await;
    person.prompt("shell").await;
    leave(person).await;
    let sent: Vec<String> = server
        .requests()
        .iter()
        .map(|it| it.header("authorization").unwrap().to_owned())
        .collect();
    let mine = format!("Bearer {KEY}");
    let other = "Bearer another-of-mine-0123456789";
    assert_eq!(sent, [&*mine, other, &*mine]);
    check(&env, &server);
    let expected = [
        "one?",
        "export TEAM_LLM=[redacted]",
        "two?",
        "!!export TEAM_LLM=[redacted]",
        "three?",
        "TEAM_LLM=[redacted]; true",
        "# four?",
    ];
    assert_eq!(history(&env), expected);
}

#[tokio::test]
async fn a_key_that_is_no_part_of_any_line_is_told_to_nobody() {
    let server = serve(vec![says("Noted."), says("Noted again.")]).await;
    let env = bash();
    env.write(".file", KEY);
    // The last 4,096 bytes, which are what goes along, begin within the key.
    env.write("long", format!("{KEY}{}", "x".repeat(4_096 - 10)));
    let rc = env.home().join(".bashrc");
    std::fs::write(rc, "export START_TOKEN=from-the-start-file\n").unwrap();
    let mut person = start(&env, &server, &["--mode", "shell"]);
    person.prompt("shell").await;
    let lines = [
        "export DEPLOY_TOKEN=$(cat .file)",
        "cat .file; echo $START_TOKEN",
    ];
    enter_all(&mut person, "shell", &lines).await;
    person.enter("# why?").await;
    person.sees("Noted.").await;
    person.prompt("shell").await;
    let again = "export DEPLOY_TOKEN=; cat long; export DEPLOY_TOKEN=$(cat .file)";
    enter_all(&mut person, "shell", &[again]).await;
    person.enter("# again?").await;
    person.sees("Noted again.").await;
    person.prompt("shell").await;
    leave(person).await;
    for file in [".file", "long"] {
        std::fs::remove_file(env.project().join(file)).unwrap();
    }
    check(&env, &server);
    let told = said(&server, 0).join("");
    assert!(
        told.contains("\n[redacted][redacted]\n") && !told.contains("from-the-start"),
        "{told}"
    );
    let cut = said(&server, 1).pop().unwrap_or_default();
    assert!(cut.contains("\n[redacted]xxx"), "{cut}");
    assert_eq!(
        history(&env),
        [lines[0], lines[1], "# why?", again, "# again?"]
    );
}

#[tokio::test]
async fn a_key_that_is_exported_while_a_turn_runs_waits_for_the_prompt() {
    let gate = Gate::new();
    let slow = openai::streamed(&says("at last")).before(Step::Gate(gate.clone()));
    let server = Server::start(Script::from(vec![slow])).await;
    let env = bash();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("wait").await;
    server.request(0).await;
    person.press(&format!("export DEPLOY_TOKEN={KEY}\r")).await;
    gate.open();
    person.sees("at last").await;
    person.prompt("agent").await;
    enter_all(&mut person, "agent", &["!!echo ${#DEPLOY_TOKEN}"]).await;
    person.sees(&format!("\n{}\n", KEY.len())).await;
    leave(person).await;
    assert_eq!(said(&server, 0), ["wait"]);
    assert_eq!(server.requests().len(), 1);
    check(&env, &server);
}

/// A turn that was cut off stays so until it has gone on: a missing key costs it nothing.
#[tokio::test]
async fn a_turn_that_cannot_be_carried_on_without_its_key_goes_on_once_it_is_there() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&calls("exec", &json!({ "command": "touch made" }))),
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&says("It was made.")),
    ]))
    .await;
    let env = team(&server);
    let export = format!("!export TEAM_LLM={KEY}");
    let mut person = Person::start(&env, &["repl", "-m", "team/test", "--yolo"]);
    person.prompt("agent").await;
    enter_all(&mut person, "agent", &[&export]).await;
    person.enter("make it").await;
    server.request(1).await;
    kill_process(Pid::from_raw(person.process()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(person.code().await, None);
    let mut person = Person::start(&env, &["repl", "-c", "--yolo"]);
    for line in ["/resume", "and now?"] {
        person.prompt("agent").await;
        person.enter(line).await;
        person.sees_below(line, "TEAM_LLM").await;
    }
    person.prompt("agent").await;
    enter_all(&mut person, "agent", &[&export]).await;
    person.enter("/resume").await;
    person.sees("It was made.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 3);
    check(&env, &server);
}
