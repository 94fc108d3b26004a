//! `rondo repl` as a person at a terminal meets it.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, CTRL_D, ENTER, ESC, F2, Person, SHIFT_TAB, TAB, UP};
use rondo_testkit::{Gate, ReplyScript, Script, Server, Step, assert_paired, openai};
use serde_json::{Value, json};

/// Starts a prompt that asks a server of the test's own.
pub(crate) fn start(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let url = server.url("/v1");
    let own = ["repl", "-m", "openai/test", "--base-url", &url];
    Person::start(env, &[&own[..], args].concat())
}

/// Returns the speaker and text of each message in a request.
pub(crate) fn messages(server: &Server, request: usize) -> Vec<(String, Value)> {
    let body = server.requests()[request].json();
    assert_paired(&body);
    let messages = body["messages"].as_array().unwrap();
    let message = |it: &Value| {
        (
            it["role"].as_str().unwrap().to_owned(),
            it["content"].clone(),
        )
    };
    messages.iter().map(message).collect()
}

pub(crate) fn said(server: &Server, request: usize) -> Vec<String> {
    let users = messages(server, request).into_iter();
    let users = users.filter(|(role, _)| role == "user");
    users
        .map(|(_, content)| content.as_str().unwrap().to_owned())
        .collect()
}

/// Starts a server whose second reply never comes, for a turn that is killed there and carried on.
pub(crate) async fn never_done(first: &ReplyScript) -> Server {
    Server::start(Script::from(vec![
        openai::streamed(first),
        openai::streamed(&says("late")).before(Step::Stall),
        openai::streamed(&says("It was made.")),
        openai::streamed(&says("Nothing else.")),
    ]))
    .await
}

pub(crate) async fn leave(mut person: Person) {
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
}

#[tokio::test]
async fn a_question_is_answered_and_the_next_one_knows_it() {
    let server = serve(vec![says("It is **four**."), says("It was four.")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("2+2?").await;
    person.sees("It is four.").await;
    person.prompt("agent").await;
    person.enter("what was it?").await;
    person.sees("It was four.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["2+2?", "what was it?"]);
}

#[tokio::test]
async fn the_wheel_of_modes_turns_and_keeps_the_line() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    for mode in ["shell", "python", "agent"] {
        person.press(TAB).await;
        person.prompt(mode).await;
    }
    person.press("half a line").await;
    person.types_behind("› half a line").await;
    person.press(F2).await;
    person.types_behind("$ half a line").await;
    person.press(F2).await;
    person.types_behind(">>> half a line").await;
    person.press(CTRL_C).await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn shift_tab_changes_what_runs_unasked_and_keeps_the_line() {
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made.txt"})),
        says("Only a plan."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.press("make it").await;
    person.types_behind("› make it").await;
    person.press(SHIFT_TAB).await;
    person.sees("calls that stay within the sandbox run").await;
    person
        .types_behind(" · auto, in the sandbox › make it")
        .await;
    person.press(SHIFT_TAB).await;
    person
        .sees("nothing is changed, the answer is a plan")
        .await;
    person.types_behind(" · plan › make it").await;
    person.press(ENTER).await;
    person.sees("Only a plan.").await;
    person.prompt("agent").await;
    assert!(!env.project().join("made.txt").exists());
    person.press(SHIFT_TAB).await;
    person
        .sees("calls that change something need approval")
        .await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_line_that_is_dropped_is_one_step_up() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.press("a long thought").await;
    person.types_behind("a long thought").await;
    person.press(CTRL_C).await;
    person.prompt("agent").await;
    person.press(UP).await;
    person.types_behind("› a long thought").await;
    person.press(CTRL_C).await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_command_of_the_agent_is_ended_with_its_turn() {
    let command = "echo $$ > id; echo begun; exec sleep 1000";
    let server = serve(vec![
        calls("exec", &json!({"command": command})),
        says("It was stopped."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter("wait").await;
    person.sees("\nbegun").await;
    person.press(CTRL_C).await;
    person.sees("the turn was stopped").await;
    person.prompt("agent").await;
    let id = std::fs::read_to_string(env.project().join("id")).unwrap();
    let running = format!("/proc/{}", id.trim());
    assert!(!std::path::Path::new(&running).exists());
    person.enter("and?").await;
    person.sees("It was stopped.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["wait", "and?"]);
}

#[tokio::test]
async fn the_keys_of_vi_are_there_for_whoever_wants_them() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new().var("RONDO_EDIT_KEYS", "vi");
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.press("one two").await;
    person.types_behind("› one two").await;
    person.press(ESC).await;
    person.sees(":› one two").await;
    person.press("dd").await;
    person.types_behind(":› ").await;
    person.press("i").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn without_a_terminal_there_is_no_prompt() {
    let shown = TestEnv::new().run(&["repl"]).await;
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(shown.stderr.contains("rondo ask"), "{shown:?}");
}

#[tokio::test]
async fn a_turn_is_stopped_and_what_it_found_stays() {
    for key in [ESC, CTRL_C] {
        let gate = Gate::new();
        let write = calls("write_file", &json!({"path": "made.txt", "content": "x"}));
        let server = Server::start(Script::from(vec![
            openai::streamed(&write),
            openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
            openai::streamed(&says("It was made.")),
        ]))
        .await;
        let env = TestEnv::new();
        let mut person = start(&env, &server, &["--yolo"]);
        person.prompt("agent").await;
        person.enter("make it").await;
        person.sees("• write_file made.txt").await;
        server.request(1).await;
        person.press(key).await;
        person.sees("the turn was stopped").await;
        person.prompt("agent").await;
        person.enter("did you?").await;
        person.sees("It was made.").await;
        person.prompt("agent").await;
        leave(person).await;
        let roles: Vec<String> = messages(&server, 2).into_iter().map(|it| it.0).collect();
        assert!(roles.contains(&"tool".to_owned()), "{roles:?}");
    }
}
