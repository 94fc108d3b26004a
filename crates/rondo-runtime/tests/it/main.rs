//! A host on the runtime, against a scripted server.
#![expect(clippy::unwrap_used, reason = "what fails here must fail its test")]

use rondo_runtime::SessionOptions;
use rondo_runtime::env::Env;
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use serde_json::json;
use std::fs;

mod cells;
mod ephemeral;
mod extensions;
mod folder;
mod hosting;
mod json_lines;
mod latest;
mod look_first;
mod opened;
mod reading;
mod service;
mod slow;
mod stopping;
mod subagents;

#[path = "../../examples/host.rs"]
#[expect(dead_code, reason = "its arguments come from the test")]
mod host;

fn env(home: &tempfile::TempDir, server: &Server) -> Env {
    Env::of(&[
        ("RONDO_HOME", home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ])
}

#[tokio::test]
async fn a_host_of_a_hundred_lines_has_two_listeners_and_another_process_that_answers() {
    let write = CallScript::new(
        "c",
        "write_file",
        &json!({"path": "note", "content": "hello"}),
    );
    let replies = [
        ReplyScript::calls([write]),
        ReplyScript::text(["It says ", "hello."]),
    ];
    let server = Server::start(replies.map(|it| openai::streamed(&it.usage(1, 1)))).await;
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = project.path().to_str().unwrap();
    // Two services are two processes to each other: they share the journal's file alone.
    let services = [(), ()].map(|()| host::open(env(&home, &server), dir).unwrap());
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let ask = host::run(&services[0], dir, &["ask", "Write a note."], &mut asked);
    let answer = async {
        let here = SessionOptions::in_directory(dir);
        let waits = async || {
            let found = services[1].find("latest", here.clone()).await?;
            found.questions().await
        };
        while !waits().await.is_ok_and(|it| !it.is_empty()) {
            tokio::task::yield_now().await;
        }
        let answer = ["answer", "latest"];
        host::run(&services[1], dir, &answer, &mut answered)
            .await
            .unwrap();
    };
    let (ask, ()) = tokio::join!(ask, answer);
    ask.unwrap();
    let [asked, answered] = [asked, answered].map(|it| String::from_utf8(it).unwrap());
    let end = asked.lines().rev().nth(1).unwrap();
    let (session, cursor) = end.split_once(' ').unwrap();
    let waits = format!("waits for: host answer {session}\n");
    assert_eq!(
        asked,
        format!("{waits}It says hello.\n{session} {cursor}\n1 calls\n")
    );
    assert!(answered.contains("It says hello.\n"), "{answered}");
    assert_eq!(
        fs::read_to_string(project.path().join("note")).unwrap(),
        "hello"
    );

    // Before the last update of the turn.
    let numbers: Vec<&str> = cursor.split('.').collect();
    let [turn, run, update, offset, began, ..] = numbers[..] else {
        panic!("{cursor}");
    };
    let before = update.parse::<u32>().unwrap() - 1;
    let before = format!("{turn}.{run}.{before}.{offset}.{began}");
    let mut again = Vec::new();
    host::run(&services[1], dir, &["listen", session, &before], &mut again)
        .await
        .unwrap();
    let again = String::from_utf8(again).unwrap();
    assert!(
        again.starts_with(&format!("\n{session} {turn}.{run}.{update}.")),
        "{again}"
    );
}

#[test]
fn the_example_host_has_at_most_a_hundred_lines() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let host = fs::read_to_string(format!("{folder}/examples/host.rs")).unwrap();
    let code = host
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//!"));
    assert!(code.count() <= 100);
}

#[tokio::test]
async fn two_runtimes_in_one_process_share_nothing() {
    let servers = [
        Server::start([openai::streamed(&ReplyScript::text(["one"]).usage(1, 1))]).await,
        Server::start([openai::streamed(&ReplyScript::text(["two"]).usage(1, 1))]).await,
    ];
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let project = tempfile::tempdir().unwrap();
    let dir = project.path().to_str().unwrap();
    let worlds = homes.iter().zip(&servers);
    let hosts: Vec<_> = worlds
        .map(|(home, server)| host::open(env(home, server), dir).unwrap())
        .collect();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (first, second) = tokio::join!(
        host::run(&hosts[0], dir, &["ask", "q"], &mut one),
        host::run(&hosts[1], dir, &["ask", "q"], &mut two),
    );
    first.unwrap();
    second.unwrap();
    assert!(one.starts_with(b"one\n") && two.starts_with(b"two\n"));
    for (home, server) in homes.iter().zip(&servers) {
        assert_eq!(server.requests().len(), 1);
        assert!(home.path().join("data/sessions").is_dir());
    }
}
