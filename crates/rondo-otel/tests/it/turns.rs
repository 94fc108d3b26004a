//! The whole tree of a turn, and its histograms.

use crate::bench::Bench;
use crate::collector::{Collector, attribute, of_resource, shut_down};
use rondo_otel::{Exporter, convention};
use rondo_testkit::{CallScript, ReplyScript, Script, Server, gemini, openai};
use rondo_types::{StopReason, ToolErrorCode, Usage};
use serde_json::json;

/// Two calls at once, a failed request, a failing call and two that are never run, an answer.
async fn eventful() -> Server {
    let call = |id: &str, name: &str| CallScript::new(id, name, &json!({"q": "argued"}));
    let mut both = ReplyScript::calls([call("c1", "left"), call("c2", "right")]);
    both.usage = Some(Usage {
        input: 100,
        output: 20,
        reasoning: 5,
        cache_read: 40,
        cache_write: 0,
    });
    let not_run = [
        call("c3", "broken"),
        call("c4", "missing"),
        call("c5", "forbidden"),
    ];
    let third = ReplyScript::calls(not_run).usage(200, 30);
    let answer = ReplyScript::text(["an", "swer", "ed"]).usage(300, 3);
    Server::start(Script::from(vec![
        openai::streamed(&both),
        openai::error(429, "rate_limit", "slow-down").header("retry-after", "0"),
        openai::streamed(&third),
        openai::streamed(&answer),
    ]))
    .await
}

async fn traced() -> (Collector, Server) {
    let (collector, model) = (Collector::start().await, eventful().await);
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let bench = Bench::chat(&model)
        .tool("left", 50, None)
        .tool("right", 0, None)
        .tool("broken", 250, Some(ToolErrorCode::Failed))
        .tool("forbidden", 0, None);
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.stop_reason, StopReason::Complete);
    shut_down(exporter).await.unwrap();
    (collector, model)
}

#[tokio::test]
async fn a_turn_is_a_tree_of_spans() {
    let (collector, _model) = traced().await;
    assert_eq!(collector.tree(), include_str!("turn.tree"));
}

#[tokio::test]
async fn a_turn_is_counted_in_histograms() {
    let (collector, _model) = traced().await;
    assert_eq!(collector.histograms(), include_str!("turn.histograms"));
}

#[tokio::test]
async fn calls_of_one_step_overlap() {
    let (collector, _model) = traced().await;
    let spans = collector.spans();
    let find = |name: &str| spans.iter().find(|it| it.name == name).unwrap();
    let (left, right) = (find("execute_tool left"), find("execute_tool right"));
    assert!(left.start_time_unix_nano <= right.end_time_unix_nano);
    assert!(right.start_time_unix_nano <= left.end_time_unix_nano);
    assert_eq!(left.start_time_unix_nano, right.start_time_unix_nano);
}

#[tokio::test]
async fn the_origin_names_the_service_and_the_conventions() {
    let (collector, _model) = traced().await;
    let (resource, scope) = collector.origin();
    let attribute = |name: &str| of_resource(&resource, name);
    assert_eq!(attribute("service.name").as_deref(), Some("rondo"));
    assert!(attribute("service.instance.id").is_some());
    assert_eq!(
        scope,
        ["rondo", env!("CARGO_PKG_VERSION"), convention::SCHEMA_URL]
    );
    assert!(convention::SCHEMA_URL.ends_with(convention::VERSION));
}

#[tokio::test]
async fn gemini_generates_content() {
    let collector = Collector::start().await;
    let reply = gemini::streamed(&ReplyScript::text(["done"]).usage(7, 2));
    let model = Server::start(Script::repeat(reply)).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let outcome = Bench::gemini(&model)
        .ask("asked", exporter.telemetry())
        .await;
    assert_eq!(outcome.text, "done");
    shut_down(exporter).await.unwrap();
    assert_eq!(collector.tree(), include_str!("gemini.tree"));
}

#[tokio::test]
async fn the_first_chunk_is_timed_from_when_the_request_was_sent() {
    let collector = Collector::start().await;
    let reply = openai::streamed(&ReplyScript::text(["done"]));
    let model = Server::start(Script::repeat(reply)).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let bench = Bench::chat(&model).queued();
    bench.ask("asked", exporter.telemetry()).await;
    shut_down(exporter).await.unwrap();
    let chat = collector.span("chat m-1");
    let first = attribute(&chat, "gen_ai.response.time_to_first_chunk");
    assert_eq!(first.as_deref(), Some("0.1"));
    // The wait is part of the request all the same.
    assert!(chat.end_time_unix_nano - chat.start_time_unix_nano >= 300_000_000);
}
