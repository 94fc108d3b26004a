use crate::harness::{TestEnv, calls, says};
use rondo_testkit::{Response, Server, openai};
use serde_json::json;

#[tokio::test]
async fn nothing_is_asked_without_a_probe() {
    let server = Server::start(Vec::new()).await;
    let url = server.url("/v1");
    let shown = TestEnv::new()
        .run(&["doctor", "-m", "openai/m", "--base-url", &url])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("ok key              none needed"),
        "{}",
        shown.stdout
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_probe_says_what_the_provider_supports() {
    let server = Server::start(vec![
        Response::json(200, &json!({"object": "list", "data": [{"id": "m"}]})),
        openai::streamed(&says("one").saying("two")),
        openai::streamed(&calls("report_value", &json!({"value": 7}))),
    ])
    .await;
    let url = server.url("/v1");
    let shown = TestEnv::new()
        .run(&["doctor", "--probe", "-m", "openai/m", "--base-url", &url])
        .await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        "ok text",
        "ok tool call",
        "ok listed",
        "ok streaming",
        "ok usage",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
}

#[tokio::test]
async fn what_is_missing_is_an_error() {
    let shown = TestEnv::new().run(&["doctor", "-m", "groq/m"]).await;
    assert_eq!(shown.code, Some(1));
    assert!(
        shown
            .stdout
            .contains("!! key              none of GROQ_API_KEY is set"),
        "{}",
        shown.stdout
    );
}
