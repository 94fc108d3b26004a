//! A provider that fails, and another one, of another dialect, that continues.

use crate::harness::{Shown, TestEnv, calls, says, serve};
use rondo_testkit::{
    Gate, Response, Script, Server, assert_paired, faults, gemini, openai, refused_url,
};
use serde_json::{Value, json};

const NO_RETRY: &str = "[profiles.default.limits.retry]\nmax_retries = 0\nbase_ms = 1\nmax_ms = 1\njitter_percent = 0\n";

/// The second provider speaks Gemini; the first, at an address of its own, Chat Completions.
async fn second(replies: Vec<Response>) -> (Server, TestEnv) {
    let server = Server::start(Script::from(replies)).await;
    let env = TestEnv::new()
        .var("GEMINI_API_KEY", "k-123456789")
        .var("GOOGLE_GEMINI_BASE_URL", &server.url(""));
    (server, env)
}

async fn ask(env: &TestEnv, url: &str, more: &[&str]) -> Shown {
    let mut args = vec!["ask", "-m", "openai/test", "--base-url", url];
    args.extend(["--fallback", "gemini/second"]);
    args.extend(more);
    env.run(&args).await
}

fn kinds(shown: &Shown, kind: &str) -> Vec<Value> {
    let lines = shown.lines().into_iter();
    lines.filter(|line| line["type"] == kind).collect()
}

async fn check(first: Response, class: &str) {
    let first = Server::start(Script::repeat(first)).await;
    check_at(&first.url("/v1"), class).await;
}

async fn check_at(url: &str, class: &str) {
    let (server, env) = second(vec![gemini::streamed(&says("Four."))]).await;
    env.user_config(NO_RETRY);
    let args = ["--output-format", "stream-json", "2+2?"];
    let shown = ask(&env, url, &args).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let result = shown.result();
    assert_eq!(result["text"], "Four.");
    assert_eq!(result["model"], "gemini/second");
    assert_eq!(result["steps"], 1);
    assert_eq!(result.get("error"), None);
    let told = kinds(&shown, "model_fallback");
    assert_eq!(told.len(), 1, "{shown:?}");
    assert_eq!(told[0]["from"], "openai/test");
    assert_eq!(told[0]["to"], "gemini/second");
    assert_eq!(told[0]["class"], class);
    assert_eq!(
        kinds(&shown, "init")[0]["fallbacks"],
        json!(["gemini/second"])
    );
    let request = &server.requests()[0];
    assert!(request.path.contains("second"), "{}", request.path);
    assert_eq!(request.header("x-goog-api-key"), Some("k-123456789"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_key_that_is_refused_is_no_end() {
    check(
        openai::error(401, "invalid_request_error", "bad key"),
        "auth",
    )
    .await;
}

#[tokio::test]
async fn a_model_that_is_gone_is_no_end() {
    check(
        openai::error(404, "invalid_request_error", "no such model"),
        "not_found",
    )
    .await;
}

#[tokio::test]
async fn too_many_requests_are_no_end_once_the_retries_are_spent() {
    check(faults::rate_limited(None), "rate_limited").await;
}

#[tokio::test]
async fn a_wait_of_an_hour_is_no_end() {
    check(faults::rate_limited(Some(3600)), "rate_limited").await;
}

#[tokio::test]
async fn a_server_error_is_no_end() {
    check(faults::html_error(500), "server").await;
}

#[tokio::test]
async fn a_reply_that_is_cut_before_any_of_it_was_shown_is_no_end() {
    let mut frames = openai::frames(&says("x"));
    frames.truncate(1);
    check(faults::cut_after(frames), "network").await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_no_end() {
    check_at(&format!("{}/v1", refused_url().await), "network").await;
}

#[tokio::test]
async fn a_reply_that_was_shown_is_not_begun_again_elsewhere() {
    let gate = Gate::new();
    gate.open();
    let mut frames = openai::frames(&says("half an answer"));
    frames.truncate(2);
    let first = Server::start(faults::reset_mid_event(frames, &gate)).await;
    let (server, env) = second(vec![]).await;
    let shown = ask(
        &env,
        &first.url("/v1"),
        &["--output-format", "stream-json", "x"],
    )
    .await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert_eq!(shown.result()["model"], "openai/test");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn another_dialect_goes_on_half_way_through_the_turn() {
    let first = Server::start([
        openai::streamed(&calls("read_file", &json!({"path": "note.txt"}))),
        openai::error(401, "invalid_request_error", "the key was revoked"),
    ])
    .await;
    let (server, env) = second(vec![
        gemini::streamed(&calls("list_files", &json!({}))),
        gemini::streamed(&says("It says hello.")),
    ])
    .await;
    env.write("note.txt", "hello from the file\n");
    let shown = ask(&env, &first.url("/v1"), &["What does it say?"]).await;
    assert_eq!(shown.stdout, "It says hello.\n");
    assert_eq!(shown.code, Some(0));
    let note = "note: openai/test failed (";
    assert!(shown.stderr.starts_with(note), "{}", shown.stderr);
    let end = "going on with gemini/second\n";
    assert!(shown.stderr.ends_with(end), "{}", shown.stderr);
    assert!(!shown.stderr.contains("k-123456789"));
    assert_eq!((first.requests().len(), server.requests().len()), (2, 2));
    for request in server.requests() {
        assert_paired(&request.json());
    }
    let told = server.requests()[0].json().to_string();
    assert!(told.contains("hello from the file"), "{told}");
}

#[tokio::test]
async fn where_all_fail_the_last_failure_decides() {
    let first = Server::start(Script::repeat(faults::html_error(500))).await;
    let (_server, env) = second(vec![gemini::error(401, "UNAUTHENTICATED", "bad key")]).await;
    env.user_config(NO_RETRY);
    let shown = ask(&env, &first.url("/v1"), &["--json", "x"]).await;
    assert_eq!(shown.code, Some(41), "{shown:?}");
    let result = shown.result();
    assert_eq!(result["model"], "gemini/second");
    assert_eq!(result["error"]["class"], "auth");
    assert!(shown.stderr.contains("GEMINI_API_KEY"), "{}", shown.stderr);
}

#[tokio::test]
async fn a_fallback_without_a_key_is_left_out_with_a_note() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("RONDO_FALLBACKS", "groq/m");
    env.ask(&server, &["2+2?"]).await.check(
        "Four.\n",
        "note: fallback `groq/m` is left out: there is no API key for `groq`: `GROQ_API_KEY` is not set\n",
        0,
    );
}

#[tokio::test]
async fn the_command_for_a_fallbacks_key_runs_only_when_it_is_asked() {
    let answer = || gemini::streamed(&says("Four."));
    let (server, env) = second(vec![answer()]).await;
    let url = server.url("");
    env.user_config(&format!(
        "fallbacks = ['late/second']\n[providers.late]\ndialect = 'gemini'\nbase_url = '{url}'\napi_key_header = 'x-goog-api-key'\napi_key_command = 'touch ran; printf k-late'\n"
    ));
    let fine = serve(vec![says("Four.")]).await;
    env.ask(&fine, &["2+2?"]).await.check("Four.\n", "", 0);
    assert!(!env.project().join("ran").exists());
    let refusing = Server::start(openai::error(401, "invalid_request_error", "no")).await;
    let shown = env.ask(&refusing, &["2+2?"]).await;
    assert_eq!((shown.stdout.as_str(), shown.code), ("Four.\n", Some(0)));
    let request = &server.requests()[0];
    assert_eq!(request.header("x-goog-api-key"), Some("k-late"));
}

#[tokio::test]
async fn py_50_a_fallback_known_to_lack_function_calling_fails_at_start() {
    let env = TestEnv::new().var("GEMINI_API_KEY", "k");
    let args = [
        "ask",
        "-m",
        "local/m",
        "--fallback",
        "gemini/gemma-3-27b-it",
    ];
    let shown = env.run(&[&args[..], &["x"]].concat()).await;
    assert_eq!(shown.code, Some(52), "{shown:?}");
    let said = "model `gemini/gemma-3-27b-it` cannot call functions";
    assert!(shown.stderr.contains(said), "{}", shown.stderr);
}

#[tokio::test]
async fn the_doctor_looks_at_fallbacks_too() {
    let env = TestEnv::new();
    env.user_config("model = 'local/m'\nfallbacks = ['groq/m']\n");
    let shown = env.run(&["doctor"]).await;
    assert_eq!(shown.code, Some(1));
    for line in [
        "ok model            local/m",
        "ok fallback         groq/m",
        "!! key              none of GROQ_API_KEY is set",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
}
