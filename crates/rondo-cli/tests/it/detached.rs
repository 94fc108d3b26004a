//! Turns that no terminal holds, and those who listen to them.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use crate::person::Person;
use rondo_testkit::{Gate, ReplyScript, Response, Server, Step, openai};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::process::Command;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Asks for a command in the background, and returns the session's id and its process's.
async fn detached(env: &TestEnv, server: &Server, args: &[&str]) -> (String, String) {
    let mut all = vec!["--detach"];
    all.extend(args);
    all.push("go");
    let shown = env.ask(server, &all).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let (_, pid) = shown.stderr.split_once("`kill ").unwrap();
    let (pid, _) = pid.split_once('`').unwrap();
    (shown.stdout.trim().to_owned(), pid.to_owned())
}

async fn attach(env: &TestEnv, id: &str, format: &str) -> Shown {
    env.run(&["attach", id, "--output-format", format]).await
}

/// The events of a listener that are recorded, and its text. Output, the pieces of a text and the numbers that count them
/// depend on how much was heard while it arrived.
fn recorded(shown: &Shown) -> (Vec<Value>, String) {
    let (pieces, mut events): (Vec<Value>, Vec<Value>) = shown
        .lines()
        .into_iter()
        .filter(|event| event["type"] != "tool_output_delta")
        .partition(|event| event["type"] == "text_delta");
    for event in &mut events {
        event.as_object_mut().unwrap().remove("seq");
    }
    let text = pieces.iter().filter_map(|it| it["text"].as_str()).collect();
    (events, text)
}

/// A command that ends once the test made a file.
fn waits_for_a_file() -> Value {
    json!({"command": "until [ -e go ]; do sleep 0.02; done; echo went"})
}

#[tokio::test]
async fn a_turn_runs_in_the_background_and_two_listeners_see_the_same() {
    let env = TestEnv::new();
    let server = serve(vec![calls("exec", &waits_for_a_file()), says("Done.")]).await;
    let (id, _) = detached(&env, &server, &["--yolo"]).await;
    let go = async {
        server.request(0).await;
        env.write("go", "");
    };
    let (first, second, ()) = tokio::join!(
        attach(&env, &id, "stream-json"),
        attach(&env, &id, "stream-json"),
        go
    );
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?}");
    let told = recorded(&first);
    assert_eq!(told, recorded(&second));
    assert_eq!(told.0.first().unwrap()["type"], "init");
    assert_eq!(told.0.last().unwrap()["text"], "Done.");
    // A later one receives all of it, too.
    let late = attach(&env, &id, "stream-json").await;
    assert_eq!(recorded(&late), told);
    let text = attach(&env, &id, "text").await;
    assert_eq!(
        (text.code, text.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{text:?}"
    );
    assert!(text.stderr.contains("asked: go"), "{text:?}");
}

#[tokio::test]
async fn a_turn_in_the_background_waits_for_answers_and_goes_on_with_them() {
    let env = TestEnv::new();
    let write = json!({"path": "made.txt", "content": "x"});
    let server = serve(vec![calls("write_file", &write), says("Done.")]).await;
    let (id, _) = detached(&env, &server, &[]).await;
    let shown = attach(&env, &id, "text").await;
    assert_eq!(shown.code, Some(47), "{shown:?}");
    assert!(shown.stderr.contains("r00100100"), "{shown:?}");
    let url = server.url("/v1");
    let answered = env.run(&["answer", "--base-url", &url, &id, "y"]).await;
    assert_eq!(
        (answered.code, answered.stdout.as_str()),
        (Some(0), "Done.\n")
    );
    let shown = attach(&env, &id, "json").await;
    assert_eq!(shown.result()["text"], "Done.");
}

#[tokio::test]
async fn a_turn_in_the_background_has_a_session_of_processes_of_its_own() {
    let env = TestEnv::new();
    let server = serve(vec![calls("exec", &waits_for_a_file()), says("Done.")]).await;
    let (id, pid) = detached(&env, &server, &["--yolo"]).await;
    let ps = Command::new("ps")
        .args(["-o", "sid=", "-p", &pid])
        .output()
        .unwrap();
    let sid = String::from_utf8(ps.stdout).unwrap();
    assert_eq!(sid.trim(), pid);
    for fd in ["0", "1", "2"] {
        match std::fs::read_link(format!("/proc/{pid}/fd/{fd}")) {
            // Other processes of the user do not see what this one has open; root does.
            Err(err) if err.kind() == ErrorKind::PermissionDenied => {}
            open => assert_eq!(open.unwrap().to_str(), Some("/dev/null"), "{fd}"),
        }
    }
    env.write("go", "");
    assert_eq!(attach(&env, &id, "text").await.code, Some(0));
}

#[tokio::test]
async fn a_listener_is_told_that_the_turn_was_cut_off() {
    let env = TestEnv::new();
    let server = serve(vec![calls("exec", &waits_for_a_file()), says("Done.")]).await;
    let (id, pid) = detached(&env, &server, &["--yolo"]).await;
    server.request(0).await;
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    let shown = attach(&env, &id, "text").await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stderr.contains("its turn was cut off"), "{shown:?}");
    env.write("go", "");
    let url = server.url("/v1");
    let resumed = env
        .run(&["resume", "--base-url", &url, "--yolo", &id])
        .await;
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{resumed:?}"
    );
    // The earlier listener would have seen the rest.
    let shown = attach(&env, &id, "text").await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_listener_that_waits_is_told_that_the_process_was_killed() {
    let env = TestEnv::new();
    let server = serve(vec![calls("exec", &waits_for_a_file())]).await;
    let (id, pid) = detached(&env, &server, &["--yolo"]).await;
    let mut listener = env
        .command(&["attach", &id, "--output-format", "stream-json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    // After the last record so far.
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("tool_call_started") {
            break;
        }
    }
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    let shown = env.wait(listener).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stderr.contains("its turn was cut off"), "{shown:?}");
    env.write("go", "");
}

#[tokio::test]
async fn text_is_shown_as_it_arrives_and_its_row_ends_before_an_error() {
    let env = TestEnv::new();
    let gate = Gate::new();
    let mut frames = openai::frames(&ReplyScript::text(["Half ", "done."]).usage(1, 1));
    frames.truncate(2);
    let reply = Response::sse(frames).step(Step::Gate(gate.clone()));
    let server = Server::start([reply]).await;
    let (id, pid) = detached(&env, &server, &[]).await;
    let mut person = Person::start(&env, &["attach", &id]);
    person.sees("Half").await;
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    person.sees("its turn was cut off").await;
    assert_eq!(person.code().await, Some(1));
    let all = person.all();
    assert!(all.contains("\nerror: no process is running"), "{all}");
}

#[tokio::test]
async fn what_cannot_begin_says_so_and_is_no_session() {
    let env = TestEnv::new();
    let shown = env.run(&["ask", "--detach", "-m", "nope/x", "go"]).await;
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (Some(52), ""),
        "{shown:?}"
    );
    assert!(shown.stderr.starts_with("error: "), "{shown:?}");
    let shown = attach(&env, "latest", "text").await;
    assert_eq!(shown.code, Some(45), "{shown:?}");
}
