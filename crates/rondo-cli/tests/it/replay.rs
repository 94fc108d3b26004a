use crate::harness::{TestEnv, calls, says, serve};
use crate::recorder::{Say, export, record, record_changed};
use rondo_core::ports::RecordBody;
use serde_json::{Value, json};
use std::fs;

async fn scene() -> (TestEnv, Vec<Value>) {
    let env = TestEnv::new();
    env.write("note.txt", "hello\n");
    let turns = vec![
        (
            "What does it say?",
            vec![Say::Read("note.txt"), Say::Text("It says hello.")],
        ),
        ("Thanks", vec![Say::Text("You are welcome.")]),
    ];
    let told = record(&env, "s-abc", turns).await;
    let told = told.iter().map(|it| serde_json::to_value(it).unwrap());
    let told = told.collect();
    (env, told)
}

#[tokio::test]
async fn a_replay_tells_what_the_session_told_without_a_network() {
    let (env, told) = scene().await;
    fs::remove_file(env.project().join("note.txt")).unwrap();
    let shown = env
        .run(&["replay", "s-a", "--output-format", "stream-json"])
        .await;
    assert_eq!((shown.stderr.as_str(), shown.code), ("", Some(0)));
    let mut lines = shown.lines();
    for line in &mut lines {
        // How the process ended is its own; the turn's records do not know of it.
        if let Some(line) = line.as_object_mut()
            && line["type"] == "result"
        {
            assert_eq!(line.remove("exit_code"), Some(json!(0)));
        }
    }
    assert_eq!(lines, told);
}

#[tokio::test]
async fn a_replay_says_that_all_is_as_recorded() {
    let (env, _) = scene().await;
    let text = "s-abc: 2 turns, 3 requests\n\
         turn 1: complete after 2 steps and 1 tool call, as recorded\n\
         turn 2: complete after 1 step and 0 tool calls, as recorded\n";
    for session in ["latest", "s-abc"] {
        env.run(&["replay", session, "--strict"])
            .await
            .check(text, "", 0);
    }
    export(&env, "s-abc", "kept.jsonl");
    env.run(&["replay", "kept.jsonl", "--strict"])
        .await
        .check(text, "", 0);
    let shown = env.run(&["replay", "latest", "--json"]).await;
    let line = &shown.lines()[0];
    assert_eq!(line["same"], true);
    assert_eq!(line["turns"][0]["requests"], 2);
}

#[tokio::test]
async fn a_changed_prompt_is_counted_and_shown_in_full_when_strict() {
    let (env, _) = scene().await;
    let changed = ["replay", "latest", "--system-prompt", "Be long."];
    let shown = env.run(&changed).await;
    assert_eq!(shown.code, Some(0));
    assert_eq!(
        shown.stdout,
        "s-abc: 2 turns, 3 requests\n\
         turn 1: complete after 2 steps and 1 tool call; 2 of 2 requests differ\n  \
         record 4, step 1: the request differs: system prompt\n  \
         record 9, step 2: the request differs: system prompt\n\
         turn 2: complete after 1 step and 0 tool calls; 1 of 1 requests differ\n  \
         record 15, step 1: the request differs: system prompt\n"
    );
    let strict = [&changed[..], &["--strict"]].concat();
    env.run(&strict).await.check(
        "s-abc: 2 turns, 3 requests\n\
         turn 1: complete after 2 steps and 1 tool call; 2 of 2 requests differ\n  \
         record 4, step 1: the request differs: system prompt\n\
         --- system prompt\n\
         @@ -1 +1 @@\n\
         -Be brief.\n\
         +Be long.\n",
        "",
        4,
    );
}

#[tokio::test]
async fn another_profile_shows_what_it_changes() {
    let (env, _) = scene().await;
    env.user_config("[profiles.short]\n[profiles.short.limits]\nmax_steps = 1\n");
    let shown = env
        .run(&[
            "replay",
            "latest",
            "--profile",
            "short",
            "--strict",
            "--json",
        ])
        .await;
    assert_eq!(shown.code, Some(4));
    let turn = &shown.lines()[0]["turns"][0];
    assert_eq!(turn["stop_reason"], "max_steps");
    let differences = turn["differences"].as_array().unwrap();
    assert_eq!(differences.last().unwrap()["kind"], "ending");
}

#[tokio::test]
async fn tools_that_only_look_run_again_and_say_what_has_drifted() {
    let (env, _) = scene().await;
    let live = ["replay", "latest", "--tools", "live", "--strict"];
    let shown = env.run(&live).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown
            .stdout
            .ends_with("{\"path\":\"note.txt\"}: the same\n")
    );
    env.write("note.txt", "goodbye\n");
    let shown = env.run(&live).await;
    assert_eq!(shown.code, Some(4));
    assert!(
        shown.stdout.contains("{\"path\":\"note.txt\"}: drifted\n"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("goodbye"), "{shown:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let env = TestEnv::new();
    let shown = env.run(&["replay", "latest"]).await;
    assert_ne!(shown.code, Some(0));
    assert!(
        shown.stderr.contains("there is no session `latest`"),
        "{shown:?}"
    );
    env.write("bad.jsonl", "{}\n");
    let shown = env.run(&["replay", "bad.jsonl"]).await;
    assert_eq!(shown.code, Some(42));
    assert!(shown.stderr.contains("line 1 of the file"), "{shown:?}");
}

#[tokio::test]
async fn a_directory_of_sessions_is_a_regression_suite() {
    let (env, _) = scene().await;
    record(
        &env,
        "s-xyz",
        vec![("Hi", vec![Say::Text("Hello & <bye>")])],
    )
    .await;
    export(&env, "s-abc", "cases/a.jsonl");
    export(&env, "s-xyz", "cases/b.jsonl");
    env.run(&["test", "cases"]).await.check(
        "ok       a.jsonl: turns 2, requests 3\n\
         ok       b.jsonl: turns 1, requests 1\n\
         2 sessions: 2 as recorded, 0 changed, 0 failed\n",
        "",
        0,
    );
    env.write("cases/c.jsonl", "{}\n");
    let changed = [
        "test",
        "cases",
        "--junit",
        "report.xml",
        "--system-prompt",
        "x",
    ];
    let shown = env.run(&changed).await;
    assert_eq!(shown.code, Some(4));
    assert_eq!(
        shown.stdout.lines().next().unwrap(),
        "changed  a.jsonl: 3 of 3 requests differ; record 4, step 1: the request differs: \
         system prompt"
    );
    assert!(
        shown
            .stdout
            .contains("failed   c.jsonl: failed to read the session")
    );
    assert!(
        shown
            .stdout
            .ends_with("3 sessions: 0 as recorded, 2 changed, 1 failed\n")
    );
    let report = fs::read_to_string(env.project().join("report.xml")).unwrap();
    assert!(
        report.contains("tests=\"3\" failures=\"2\" errors=\"1\""),
        "{report}"
    );
}

#[tokio::test]
async fn a_directory_without_sessions_is_refused() {
    let env = TestEnv::new();
    let shown = env.run(&["test", "."]).await;
    assert_eq!(shown.code, Some(42));
    assert!(shown.stderr.contains("no exported session"), "{shown:?}");
}

/// Sessions that earlier versions recorded, in every version of the format there was.
#[tokio::test]
async fn the_sessions_of_the_repository_are_replayed_as_they_were_recorded() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions");
    let shown = TestEnv::new().run(&["test", fixtures]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown
            .stdout
            .ends_with("sessions: 5 as recorded, 0 changed, 0 failed\n")
    );
}

#[tokio::test]
async fn a_strict_replay_sees_an_exit_code_that_does_not_follow() {
    let server = serve(vec![
        calls("exec", &json!({"command": "touch x"})),
        says("denied"),
    ])
    .await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["--json", "x"]).await;
    assert_eq!(shown.code, Some(44), "{shown:?}");
    let id = shown.result()["session"].as_str().unwrap().to_owned();
    record_changed(&env, (&id, "s-changed"), |body| {
        if let RecordBody::Final { process, .. } = body {
            process.as_mut().unwrap().needed_approval.clear();
        }
    })
    .await;
    let strict = env.run(&["replay", "s-changed", "--strict"]).await;
    strict.check(
        "s-changed: 1 turn, 2 requests\n\
         turn 1: complete after 2 steps and 0 tool calls; 1 difference\n  \
         the process ends with exit code 0, not with 44\n",
        "",
        4,
    );
    let shown = env
        .run(&["replay", "s-changed", "--strict", "--json"])
        .await;
    assert_eq!(shown.code, Some(4));
    let turn = &shown.lines()[0]["turns"][0];
    let difference = json!([{"kind": "exit_code", "recorded": 44, "now": 0}]);
    assert_eq!(turn["differences"], difference);
    assert_eq!(turn["result"]["exit_code"], 0);
    // As an older version recorded it: the outcome alone says how the process ended.
    record_changed(&env, (&id, "s-older"), |body| {
        if let RecordBody::Final { process, .. } = body {
            *process = None;
        }
    })
    .await;
    let older = env.run(&["replay", "s-older", "--strict", "--json"]).await;
    assert_eq!(older.code, Some(0), "{older:?}");
    assert_eq!(older.lines()[0]["turns"][0]["result"]["exit_code"], 0);
}
