//! Turns that fail, are stopped, are dropped, or continue with another model.

use crate::bench::Bench;
use crate::collector::{Collector, attribute, shut_down};
use rondo_core::{control, run_turn};
use rondo_otel::Exporter;
use rondo_testkit::{CallScript, ReplyScript, Script, Server, faults, gemini, openai};
use rondo_types::{Message, StopReason};
use serde_json::json;

#[tokio::test]
async fn a_turn_that_fails_names_the_class_of_the_failure() {
    let collector = Collector::start().await;
    let refusal = openai::error(401, "auth", "the key sk-secret-0123456789 is wrong");
    let model = Server::start(Script::repeat(refusal)).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let outcome = Bench::chat(&model).ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.stop_reason, StopReason::Error);
    shut_down(exporter).await.unwrap();
    assert_eq!(collector.tree(), include_str!("failed.tree"));
    assert_eq!(collector.histograms(), include_str!("failed.histograms"));
}

#[tokio::test]
async fn another_model_that_goes_on_has_spans_of_its_own() {
    let collector = Collector::start().await;
    let first = Server::start(Script::repeat(openai::error(404, "x", "no such model"))).await;
    let reply = gemini::streamed(&ReplyScript::text(["done"]));
    let second = Server::start(Script::repeat(reply)).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let bench = Bench::chat(&first).then_gemini(&second);
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.text, "done");
    shut_down(exporter).await.unwrap();
    assert_eq!(collector.tree(), include_str!("fallback.tree"));
}

#[tokio::test]
async fn a_turn_that_is_cancelled_ends_its_spans() {
    let collector = Collector::start().await;
    let model = Server::start(Script::repeat(faults::zero_byte_stall())).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let (setup, events) = Bench::chat(&model).setup();
    let (handle, turn_control) = control();
    let events = exporter.telemetry().observe(events);
    let turn = run_turn(setup, Vec::new(), Message::user("q"), events, turn_control);
    let stop = async {
        model.request(0).await;
        handle.cancel();
    };
    let (end, ()) = tokio::join!(turn, stop);
    let outcome = end.outcome().unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    shut_down(exporter).await.unwrap();
    for name in ["invoke_agent default", "chat m-1"] {
        let error = attribute(&collector.span(name), "error.type");
        assert_eq!(error.as_deref(), Some("cancelled"), "{name}");
    }
}

#[tokio::test]
async fn a_turn_whose_future_is_dropped_ends_its_spans() {
    let collector = Collector::start().await;
    let model = Server::start(Script::repeat(faults::zero_byte_stall())).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let (setup, events) = Bench::chat(&model).setup();
    let (_handle, turn_control) = control();
    let events = exporter.telemetry().observe(events);
    let turn = run_turn(setup, Vec::new(), Message::user("q"), events, turn_control);
    tokio::select! {
        _ = turn => panic!("the model never answers"),
        _ = model.request(0) => {}
    }
    shut_down(exporter).await.unwrap();
    let spans = collector.spans();
    assert_eq!(spans.len(), 2);
    for span in &spans {
        let error = attribute(span, "error.type");
        assert_eq!(error.as_deref(), Some("cancelled"), "{}", span.name);
    }
}

#[tokio::test]
async fn a_turn_that_is_out_of_steps_without_an_answer_is_an_error() {
    let collector = Collector::start().await;
    let call = CallScript::new("c", "left", &json!({}));
    let reply = openai::streamed(&ReplyScript::calls([call]));
    let model = Server::start(Script::repeat(reply)).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let mut bench = Bench::chat(&model).tool("left", 0, None);
    bench.profile.limits.max_steps = 1;
    bench.profile.limits.reserve_final = false;
    let outcome = bench.ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.stop_reason, StopReason::MaxSteps);
    shut_down(exporter).await.unwrap();
    let turn = collector.span("invoke_agent default");
    let error = attribute(&turn, "error.type");
    assert_eq!(error.is_some(), !outcome.answered);
    assert_eq!(
        attribute(&turn, "rondo.stop_reason").as_deref(),
        Some("max_steps")
    );
}

#[tokio::test]
async fn a_retry_after_a_broken_connection_has_no_status() {
    let collector = Collector::start().await;
    let answer = openai::streamed(&ReplyScript::text(["done"]));
    let model = Server::start(Script::from(vec![faults::cut_after(Vec::new()), answer])).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    let outcome = Bench::chat(&model).ask("asked", exporter.telemetry()).await;
    assert_eq!(outcome.text, "done");
    shut_down(exporter).await.unwrap();
    let tree = collector.tree();
    let retries: Vec<&str> = tree
        .lines()
        .filter(|line| line.contains("rondo.retry"))
        .collect();
    assert_eq!(retries.len(), 1, "{tree}");
    assert!(
        retries[0].contains("error.type=network rondo.attempt=1"),
        "{tree}"
    );
}
