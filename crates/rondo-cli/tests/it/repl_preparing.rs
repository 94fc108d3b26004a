//! The line prompt while a turn is prepared.

use crate::harness::{TestEnv, says};
use crate::person::{CTRL_C, Person};
use crate::repl::{leave, said};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read as _;
use tokio::task::spawn_blocking;

/// Sets the command that finds the key.
fn key_command(env: &TestEnv, server: &Server, command: &str) {
    let url = server.url("/v1");
    env.user_config(&format!(
        "model = 'slow/any'\n[providers.slow]\ndialect = 'openai-chat'\nbase_url = '{url}'\napi_key_command = \"{command}\"\n"
    ));
}

/// Enters a line and stops it while its key is found; waits until the command that finds it has ended.
async fn stopped(env: &TestEnv, person: &mut Person, line: &str) {
    person.prompt("agent").await;
    person.enter(line).await;
    let pipe = env.project().join("pipe");
    let opened = spawn_blocking(|| File::open(pipe)).await;
    let mut pipe = opened.unwrap().unwrap();
    person.press(CTRL_C).await;
    person
        .sees_below(line, "stopped before anything was asked")
        .await;
    let read = spawn_blocking(move || pipe.read(&mut [0])).await;
    assert_eq!(read.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_question_that_is_stopped_before_it_is_asked_leaves_nothing_that_is_asked_later() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&says("At last.")),
    ]))
    .await;
    let env = TestEnv::new();
    let pipe = env.project().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    let slow = format!("sleep 1000 > '{}'; echo k", pipe.display());
    key_command(&env, &server, &slow);
    let mut person = Person::start(&env, &["repl"]);
    stopped(&env, &mut person, "first").await;
    person.prompt("agent").await;
    person.enter("/resume").await;
    person.sees("there is no turn to resume").await;
    person.prompt("agent").await;
    leave(person).await;
    // A turn that was cut off stays so.
    key_command(&env, &server, "echo k");
    let mut person = Person::start(&env, &["repl"]);
    person.prompt("agent").await;
    person.enter("second").await;
    server.request(0).await;
    kill_process(Pid::from_raw(person.process()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(person.code().await, None);
    key_command(&env, &server, &slow);
    let mut person = Person::start(&env, &["repl", "-c"]);
    stopped(&env, &mut person, "/resume").await;
    person.prompt("agent").await;
    leave(person).await;
    key_command(&env, &server, "echo k");
    let mut person = Person::start(&env, &["repl", "-c"]);
    person.prompt("agent").await;
    person.enter("/resume").await;
    person.sees("At last.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 2);
    assert_eq!(said(&server, 1), ["second"]);
}
