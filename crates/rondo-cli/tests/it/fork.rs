//! `rondo fork`: the beginning is shared, what follows is another session's own.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use rondo_testkit::{CallScript, ReplyScript, Server, assert_paired};
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
    // There is no user to ask, so the call is denied and the turn continues.
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

/// Two servers: one of the session, the other of the settings, which name another model too.
async fn two_servers(of_session: Vec<ReplyScript>) -> (TestEnv, Server, Server) {
    let server = serve(of_session).await;
    let other = serve(vec![says("of the settings"), says("of the settings")]).await;
    let env = TestEnv::new();
    let url = other.url("/v1");
    env.user_config(&format!(
        "model = 'openai/other'\n[providers.openai]\nbase_url = '{url}'\n"
    ));
    let shown = env.ask(&server, &["--yolo", "do it"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    (env, server, other)
}

fn models(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter();
    requests.map(|it| it.json()["model"].clone()).collect()
}

#[tokio::test]
async fn what_is_said_next_in_a_session_goes_to_its_own_model_at_its_own_address() {
    let replies = ["first", "of the fork", "of the session", "and again"];
    let (env, server, other) = two_servers(replies.map(says).into()).await;
    // The address of all providers of the environment is not the session's either.
    let elsewhere = other.url("/elsewhere");
    let env = env.var("RONDO_BASE_URL", &elsewhere);
    let forked = ["fork", "latest", "--at", "1", "--message", "more"];
    let shown = env.run(&forked).await;
    assert_eq!(shown.stdout, "of the fork\n", "{shown:?}");
    let at = format!("`openai/test` is used at `{}`", server.url("/v1"));
    assert!(shown.stderr.contains(&at), "{shown:?}");
    for (args, said) in [
        (["ask", "-c", "more"].as_slice(), "of the session\n"),
        (&["ask", "--session", "latest", "more"], "and again\n"),
    ] {
        let shown = env.run(args).await;
        assert_eq!(shown.stdout, said, "{shown:?}");
    }
    assert_eq!(models(&server), ["test"; 4]);
    assert_eq!(other.requests().len(), 0);
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[tokio::test]
async fn a_model_or_an_address_that_is_named_counts_in_place_of_the_session_s() {
    let (env, server, other) = two_servers(vec![says("first")]).await;
    let named = env.run(&["ask", "-c", "-m", "openai/named", "more"]).await;
    assert_eq!(named.stdout, "of the settings\n", "{named:?}");
    let url = other.url("/v1");
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let id = list[0]["id"].as_str().unwrap();
    let forked = ["fork", id, "--at", "1.1", "--message", "more"];
    let shown = env
        .run(&[&forked[..], &["--base-url", &url]].concat())
        .await;
    assert_eq!(shown.stdout, "of the settings\n", "{shown:?}");
    assert_eq!(models(&other), ["named", "test"]);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_file_does_not_say_who_is_asked_next() {
    let (env, server, other) = two_servers(vec![says("first")]).await;
    let exported = env.run(&["session", "export", "-o", "s.jsonl"]).await;
    exported.check("", "", 0);
    let imported = env.run(&["session", "import", "s.jsonl", "--as", "copy"]);
    assert_eq!(imported.await.code, Some(0));
    let shown = env.run(&["ask", "--session", "copy", "more"]).await;
    assert_eq!(shown.stdout, "of the settings\n", "{shown:?}");
    let said = "your settings choose the model, not the file, which names `openai/test`";
    assert!(shown.stderr.contains(said), "{shown:?}");
    assert_eq!(models(&other), ["other"]);
    assert_eq!(server.requests().len(), 1);
}

/// A session of these turns, whose messages hardly fit its model.
async fn crowded(turns: &[&[ReplyScript]]) -> (TestEnv, Server) {
    let replies = turns.iter().copied().flatten().cloned();
    let forks = (0..9).map(|_| says("of a fork"));
    let server = serve(replies.chain(forks).collect()).await;
    let env = TestEnv::new();
    env.user_config("[models.'openai/test']\ncontext_tokens = 20000\n");
    for name in ["a", "b", "c"] {
        env.write(name, format!("{name} {}", "some words\n".repeat(1_200)));
    }
    for number in 0..turns.len() {
        let asked = format!("question {number}");
        let more: &[&str] = if number == 0 { &[] } else { &["-c"] };
        let shown = env.ask(&server, &[more, &[&asked]].concat()).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
    }
    (env, server)
}

/// Reads a file. What requests take is estimated from their bytes then.
fn reads(name: &str) -> ReplyScript {
    let call = CallScript::new("call_1", "read_file", &json!({"path": name}));
    ReplyScript::calls([call])
}

/// Forks a session and runs the fork, which must replay strictly and doubt no call. Returns its first
/// request's messages.
async fn forked(env: &TestEnv, server: &Server, parent: &str, args: &[&str]) -> Vec<Value> {
    let before = server.requests().len();
    let shown = env.run(&[&["fork", parent], args].concat()).await;
    assert_eq!(shown.stdout, "of a fork\n", "{args:?}: {shown:?}");
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{args:?}: {replayed:?}");
    let kept = env.run(&["session", "export", "latest"]).await.stdout;
    assert!(!kept.contains("in_doubt"), "{args:?}: {kept}");
    messages(server, before)
}

/// Returns a request's messages with one more of the user, which is joined to another one before it.
fn and_said(mut messages: Vec<Value>, text: &str) -> Vec<Value> {
    match messages.last_mut() {
        Some(last) if last["role"] == "user" => {
            last["content"] = json!(format!("{}\n\n{text}", last["content"].as_str().unwrap()));
        }
        _ => messages.push(json!({"role": "user", "content": text})),
    }
    messages
}

async fn only_session(env: &TestEnv) -> String {
    let list = env.run(&["session", "list", "--json"]).await.lines();
    assert_eq!(list.len(), 1);
    list[0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_fork_at_or_after_a_compaction_has_it() {
    let cut = [reads("a"), reads("b"), reads("c"), reads("b"), says("end")];
    let summed_up = [reads("b"), reads("c"), says("the summary"), says("end")];
    let first = [reads("a"), says("end")];
    // The steps at which the session is forked, with the request that followed each.
    for (turns, requests) in [
        (vec![&cut[..]], vec![("2", 2), ("3", 3), ("4", 4)]),
        (vec![&first[..], &summed_up[..]], vec![("1", 3), ("3", 5)]),
    ] {
        let (env, server) = crowded(&turns).await;
        let id = only_session(&env).await;
        for (step, request) in requests {
            let expected = messages(&server, request);
            let goes_on = forked(&env, &server, &id, &["--at", step]).await;
            assert_eq!(goes_on, expected, "{step}");
            let said = ["--at", step, "--message", "look again"];
            let said = forked(&env, &server, &id, &said).await;
            assert_eq!(said, and_said(expected, "look again"), "{step}");
        }
    }
}

/// Results and additions of the machine itself are records like any other.
#[tokio::test]
async fn a_fork_reads_the_results_that_the_machine_made_as_they_were() {
    let write = json!({"command": WRITE});
    let look = calls("list_files", &json!({}));
    let two = ReplyScript::calls([
        CallScript::new("call_1", "list_files", &json!({})),
        CallScript::new("call_2", "list_files", &json!({"path": "."})),
    ]);
    let cases: [(&str, &[&str], Vec<ReplyScript>); 6] = [
        ("unknown_tool", &[], vec![calls("list_things", &json!({}))]),
        ("invalid_args", &[], vec![calls("read_file", &json!({}))]),
        ("denied", &[], vec![calls("exec", &write)]),
        (
            "denied",
            &["--disallowed-tools", "exec(echo *)"],
            vec![calls("exec", &write)],
        ),
        ("not_run", &["--max-tool-calls", "1"], vec![two]),
        ("do not make it again", &[], vec![look.clone(), look]),
    ];
    for (marker, args, replies) in cases {
        let step = replies.len();
        let forks = [says("end"), says("of a fork"), says("of a fork")];
        let server = serve(replies.into_iter().chain(forks).collect()).await;
        let env = TestEnv::new();
        env.ask(&server, &[args, &["do it"]].concat()).await;
        let id = only_session(&env).await;
        let expected = messages(&server, step);
        let as_text = serde_json::to_string(&expected).unwrap();
        assert!(as_text.contains(marker), "{marker}: {as_text}");
        let at = step.to_string();
        let goes_on = forked(&env, &server, &id, &["--at", &at]).await;
        assert_eq!(goes_on, expected, "{marker}");
        let said = ["--at", &at, "--message", "look again"];
        let said = forked(&env, &server, &id, &said).await;
        assert_eq!(said, and_said(expected, "look again"), "{marker}");
    }
}
