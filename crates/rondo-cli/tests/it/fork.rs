//! `rondo fork`: the beginning is shared, what follows is another session's own.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use rondo_testkit::{Server, assert_paired};
use serde_json::{Value, json};

const WRITE: &str = "echo line >> effects";

/// A session of one turn: it looks, runs a command with an effect, and answers.
async fn session(more: &[&str]) -> (TestEnv, Server) {
    let mut replies = vec![
        calls("list_files", &json!({})),
        calls("exec", &json!({"command": WRITE})),
        says("first answer"),
    ];
    replies.extend(more.iter().map(|text| match *text {
        "effect" => calls("exec", &json!({"command": WRITE})),
        text => says(text),
    }));
    let server = serve(replies).await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["--yolo", "do it"]).await;
    assert_eq!(shown.stdout, "first answer\n", "{shown:?}");
    (env, server)
}

async fn fork(env: &TestEnv, server: &Server, args: &[&str]) -> Shown {
    let url = server.url("/v1");
    env.run(&[&["fork", "latest", "--base-url", &url], args].concat())
        .await
}

fn effects(env: &TestEnv) -> usize {
    let lines = std::fs::read_to_string(env.project().join("effects"));
    lines.unwrap().lines().count()
}

fn messages(server: &Server, request: usize) -> Vec<Value> {
    let body = server.requests()[request].json();
    assert_paired(&body);
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_fork_within_a_turn_goes_on_from_there_and_asks_again_before_effects() {
    let (env, server) = session(&["effect", "second answer"]).await;
    let shown = fork(&env, &server, &["--at", "1"]).await;
    // Nobody is there to ask, so the call is denied and the turn goes on.
    assert_eq!(shown.stdout, "second answer\n", "{shown:?}");
    assert_eq!(shown.code, Some(44), "{shown:?}");
    assert_eq!(effects(&env), 1);
    // The shared step was not asked for again, and the request after it is the same.
    assert_eq!(server.requests().len(), 5);
    assert_eq!(server.requests()[1].json(), server.requests()[3].json());
    let list = env.run(&["session", "list", "--json"]).await.lines();
    assert_eq!(list.len(), 2);
    assert!(list.iter().any(|it| it["forked_from"].is_string()));
    assert!(list.iter().all(|it| it["state"] == "done"), "{list:?}");
}

#[tokio::test]
async fn a_fork_may_allow_anew_what_has_effects() {
    let (env, server) = session(&["effect", "second answer"]).await;
    let shown = fork(&env, &server, &["--at", "1.1", "--yolo"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("second answer\n", Some(0)),
        "{shown:?}"
    );
    assert_eq!(effects(&env), 2);
}

#[tokio::test]
async fn a_message_takes_the_place_of_what_followed() {
    let (env, server) = session(&["another way"]).await;
    let args = [
        "--at",
        "1",
        "-m",
        "openai/test",
        "--message",
        "stop looking",
    ];
    let shown = fork(&env, &server, &args).await;
    assert_eq!(shown.stdout, "another way\n", "{shown:?}");
    let said = messages(&server, 3);
    let roles: Vec<_> = said.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(said[4]["content"], "stop looking");
    assert_eq!(effects(&env), 1);
}

#[tokio::test]
async fn a_fork_at_the_end_of_a_turn_is_a_session_of_its_own() {
    let (env, server) = session(&["to the fork", "to the parent"]).await;
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let parent = list[0]["id"].as_str().unwrap();
    let id = fork(&env, &server, &["--at", "3"]).await.stdout;
    let id = id.trim_end();
    for (session, answer) in [(id, "to the fork\n"), (parent, "to the parent\n")] {
        let shown = env.ask(&server, &["--session", session, "more"]).await;
        assert_eq!(shown.stdout, answer, "{shown:?}");
    }
    assert_eq!(messages(&server, 3), messages(&server, 4));
    let removed = env.run(&["session", "rm", parent, "--yes"]).await;
    assert!(removed.stderr.contains("is the parent of"), "{removed:?}");
}

#[tokio::test]
async fn a_step_that_is_not_there_is_said() {
    let (env, server) = session(&[]).await;
    for (at, said) in [("9", "no step 9, its last is 3"), ("7.1", "no turn 7")] {
        let shown = fork(&env, &server, &["--at", at, "--no-run"]).await;
        assert_eq!(shown.code, Some(42), "{shown:?}");
        assert!(shown.stderr.contains(said), "{shown:?}");
    }
    let list = env.run(&["session", "list", "--json"]).await.lines();
    assert_eq!(list.len(), 1);
}
