//! The context of the user's terminal, which each question of the profile `react` carries on every host.

use crate::harness::{TestEnv, says, serve};
use crate::hub::{Served, ask, set_up};
use crate::repl::{leave, start};
use crate::{screen, screen_shell};
use rondo_testkit::Server;

/// A key of the environment, which no request may hold.
const KEY: &str = "tok-0123456789abcdef";

/// A repository on a branch that has the key in its name, in which a merge is not done.
fn env() -> TestEnv {
    let env = TestEnv::new()
        .var("SHELL", "/bin/bash")
        .var("DEPLOY_TOKEN", KEY);
    env.write(".git/HEAD", format!("ref: refs/heads/topic-{KEY}\n"));
    env.write(".git/MERGE_HEAD", "0\n");
    env
}

/// Returns all messages of a request as text, and checks that it has the terminal's context and not the key.
fn checked(server: &Server, request: usize) -> String {
    let body = server.requests()[request].json()["messages"].to_string();
    for part in [
        "# CONTEXT\\n- Current directory: /",
        "- Operating system: linux\\n- Shell: /bin/bash\\n",
        "- Git branch: topic-[redacted]\\n- Git state: in the middle of a merge",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert!(!body.contains(KEY), "{body}");
    body
}

#[tokio::test]
async fn my_11_each_question_of_ask_carries_the_context_and_a_replay_sends_the_same_bytes() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = env();
    let first = env.ask(&server, &["--profile", "react", "where am I?"]);
    assert_eq!(first.await.code, Some(0));
    checked(&server, 0);
    std::fs::remove_file(env.project().join(".git/MERGE_HEAD")).unwrap();
    let second = env.ask(&server, &["-c", "--profile", "react", "and now?"]);
    assert_eq!(second.await.code, Some(0));
    let body = server.requests()[1].json()["messages"].to_string();
    let (before, now) = body.split_once("and now?").unwrap();
    assert!(before.contains("in the middle of a merge"), "{body}");
    assert!(
        now.contains("- Git branch: topic-") && !now.contains("a merge"),
        "{body}"
    );
    // The replay reads the context from the session's records and not from the repository.
    env.write(".git/HEAD", "ref: refs/heads/other\n");
    let replayed = env.run(&["replay", "latest", "--strict", "--profile", "react"]);
    let replayed = replayed.await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.contains(", as recorded"), "{replayed:?}");
}

#[tokio::test]
async fn my_11_no_other_profile_sends_the_context_and_a_setting_of_the_profile_leaves_it_out() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = env();
    env.ask(&server, &["where am I?"]).await;
    env.user_config("[profiles.react]\nterminal_context = false\n");
    env.ask(&server, &["--profile", "react", "where am I?"])
        .await;
    for request in server.requests() {
        let body = request.json().to_string();
        assert!(!body.contains("# CONTEXT"), "{body}");
    }
}

#[tokio::test]
async fn my_11_a_question_at_the_line_prompt_carries_the_commands_of_the_shell() {
    let server = serve(vec![says("Seen."), says("Seen again.")]).await;
    let env = env();
    let mut person = start(&env, &server, &["--profile", "react", "--mode", "shell"]);
    person.prompt("shell").await;
    person.enter("echo out$((40+2)) $DEPLOY_TOKEN").await;
    person.sees("out42").await;
    person.prompt("shell").await;
    person.enter(" echo hush$((40+2))").await;
    person.sees("hush42").await;
    person.prompt("shell").await;
    person.press("\t\t").await;
    person.prompt("agent").await;
    person.enter("what did I run?").await;
    person.sees("Seen.").await;
    person.prompt("agent").await;
    leave(person).await;
    let body = checked(&server, 0);
    assert!(body.contains("- Recent commands:\\n  $ echo out"), "{body}");
    assert!(body.contains("\\nout42 [redacted]\\n"), "{body}");
    assert!(!body.contains("hush"), "{body}");
}

#[tokio::test]
async fn my_11_a_question_on_the_full_screen_carries_the_commands_and_the_screen_of_the_pane() {
    let server = serve(vec![says("Seen.")]).await;
    let env = env();
    let mut person = screen::open(&env, &server, &["--profile", "react"]).await;
    person.press(screen_shell::PANE).await;
    person.shows("Ctrl-] leaves · Alt-Z zooms").await;
    person
        .press("echo out$((40+2)) $DEPLOY_TOKEN; false\r")
        .await;
    person.shows("exit 1").await;
    person.press(screen_shell::PANE).await;
    person.press("what did I run?\r").await;
    person.shows("Seen.").await;
    screen::leave(person).await;
    let body = checked(&server, 0);
    assert!(body.contains("- Recent commands:\\n  $ echo out"), "{body}");
    assert!(
        body.contains("<terminal>") && body.contains("out42 [redacted]"),
        "{body}"
    );
}

#[tokio::test]
async fn my_11_a_question_to_the_hub_carries_the_context_of_its_machine() {
    let model = serve(vec![says("Here.")]).await;
    let env = set_up(&model, "profile = 'react'").await;
    let _hub = Served::start(&env);
    assert_eq!(ask(&env, "where are you?").await, "Here.\n");
    let body = model.requests()[0].json()["messages"].to_string();
    assert!(
        body.contains("# CONTEXT\\n- Current directory: /"),
        "{body}"
    );
}
