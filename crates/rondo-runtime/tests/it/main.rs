//! A host on the runtime, against a scripted server.
#![expect(clippy::unwrap_used, reason = "what fails here must fail its test")]

use rondo_runtime::env::Env;
use rondo_testkit::{CallScript, ReplyScript, Server, openai};
use serde_json::json;
use std::fs;

mod service;

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
async fn a_host_of_fifty_lines_asks_calls_tools_and_goes_on_where_it_was() {
    let read = CallScript::new("c", "read_file", &json!({"path": "note"}));
    let replies = [
        ReplyScript::calls([read]),
        ReplyScript::text(["It says ", "hello."]),
        ReplyScript::text(["Again: hello."]),
    ];
    let server = Server::start(replies.map(|it| openai::streamed(&it.usage(1, 1)))).await;
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(project.path().join("note"), "hello").unwrap();
    let dir = project.path().to_str().unwrap();
    let mut out = Vec::new();
    host::answer(env(&home, &server), dir, "What is in note?", &mut out)
        .await
        .unwrap();
    host::answer(env(&home, &server), dir, "And again?", &mut out)
        .await
        .unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out, "It says hello.Again: hello.");
    let asked = server.requests()[2].json();
    let said: Vec<_> = asked["messages"].as_array().unwrap().iter().collect();
    let roles: Vec<_> = said.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
}

#[test]
fn the_architecture_shows_this_host() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let page = fs::read_to_string(format!("{folder}/../../ARCHITECTURE.md")).unwrap();
    let host = fs::read_to_string(format!("{folder}/examples/host.rs")).unwrap();
    assert!(
        page.contains(&format!("```rust\n{host}```")),
        "ARCHITECTURE.md shows another program"
    );
    let code = host
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//!"));
    assert!(code.count() <= 50);
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
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (first, second) = tokio::join!(
        host::answer(env(&homes[0], &servers[0]), dir, "q", &mut one),
        host::answer(env(&homes[1], &servers[1]), dir, "q", &mut two),
    );
    first.unwrap();
    second.unwrap();
    assert_eq!((one, two), (b"one".to_vec(), b"two".to_vec()));
    for (home, server) in homes.iter().zip(&servers) {
        assert_eq!(server.requests().len(), 1);
        assert!(home.path().join("data/sessions").is_dir());
    }
}
