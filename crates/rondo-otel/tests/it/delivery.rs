//! Headers, repeated deliveries, and collectors that do not answer.

use crate::bench::Bench;
use crate::collector::{Collector, of_resource, shut_down};
use rondo_otel::{Exporter, ExporterError, Settings, ShutdownError};
use rondo_testkit::{ReplyScript, Response, Script, Server, faults, openai, refused_url};
use rondo_types::Outcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

async fn ask(exporter: &Exporter) -> Outcome {
    let reply = openai::streamed(&ReplyScript::text(["answered"]));
    let model = Server::start(Script::repeat(reply)).await;
    Bench::chat(&model).ask("asked", exporter.telemetry()).await
}

#[tokio::test]
async fn the_environments_settings_are_followed() {
    let collector = Collector::start().await;
    let url = collector.server.url("/base");
    let settings = Settings::from_lookup(|name| {
        let value = match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => url.as_str(),
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" => {
                return Some(collector.server.url("/v1/traces"));
            }
            "OTEL_EXPORTER_OTLP_HEADERS" => "authorization=Bearer%20t0k,x-team=a",
            "OTEL_SERVICE_NAME" => "mine",
            "OTEL_RESOURCE_ATTRIBUTES" => "deployment.environment.name=test",
            "TRACEPARENT" => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            _ => return None,
        };
        Some(value.to_owned())
    });
    let exporter = Exporter::start(&settings.unwrap().unwrap()).unwrap();
    ask(&exporter).await;
    shut_down(exporter).await.unwrap();
    let requests = collector.server.requests();
    assert!(requests.iter().any(|it| it.path == "/base/v1/metrics"));
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer t0k"));
        assert_eq!(request.header("x-team"), Some("a"));
    }
    let (resource, _) = collector.origin();
    assert_eq!(
        of_resource(&resource, "service.name").as_deref(),
        Some("mine")
    );
    let environment = of_resource(&resource, "deployment.environment.name");
    assert_eq!(environment.as_deref(), Some("test"));
    let turn = collector.span("invoke_agent default");
    assert_eq!(turn.trace_id[..2], [0x0a, 0xf7]);
    assert_eq!(turn.parent_span_id[..2], [0xb7, 0xad]);
}

#[tokio::test]
async fn the_settings_win_over_the_environment_of_the_process() {
    const OF_PROCESS: [(&str, &str); 5] = [
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=process,x-process=1",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://process.invalid"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
    ];
    // The environment of this process belongs to all tests, so another process runs this one again.
    if std::env::var_os("OTEL_EXPORTER_OTLP_HEADERS").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args([
            "--exact",
            "delivery::the_settings_win_over_the_environment_of_the_process",
        ]);
        let output = again.envs(OF_PROCESS).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.contains("1 passed"),
            "{printed}"
        );
        return;
    }
    let collector = Collector::start().await;
    let mut settings = collector.settings();
    for target in [&mut settings.traces, &mut settings.metrics] {
        target.as_mut().unwrap().headers =
            vec![("authorization".to_owned(), "settings".to_owned())];
    }
    let exporter = Exporter::start(&settings).unwrap();
    ask(&exporter).await;
    shut_down(exporter).await.unwrap();
    collector.span("invoke_agent default");
    assert!(!collector.histograms().is_empty());
    for request in collector.server.requests() {
        assert_eq!(request.header("authorization"), Some("settings"));
        assert_eq!(request.header("x-process"), None);
        assert_eq!(request.header("content-encoding"), None);
    }
}

#[tokio::test]
async fn a_delivery_that_may_pass_later_is_repeated() {
    let busy = Response::text(503, "").header("retry-after", "0");
    let done = Response::text(200, "");
    let script = Script::from(vec![busy]).then_repeat(done);
    let collector = Collector::answering(script).await;
    let mut settings = collector.settings();
    settings.metrics = None;
    let exporter = Exporter::start(&settings).unwrap();
    ask(&exporter).await;
    shut_down(exporter).await.unwrap();
    let requests = collector.server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn a_delivery_that_is_refused_is_lost_without_harm() {
    let refusal = Script::repeat(Response::text(401, ""));
    let collector = Collector::answering(refusal).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    assert_eq!(ask(&exporter).await.text, "answered");
    assert_eq!(shut_down(exporter).await, Err(ShutdownError::Undelivered));
}

#[tokio::test]
async fn a_collector_that_is_not_there_fails_no_turn() {
    let exporter = Exporter::start(&Settings::new(&refused_url().await)).unwrap();
    assert_eq!(ask(&exporter).await.text, "answered");
    assert_eq!(shut_down(exporter).await, Err(ShutdownError::Undelivered));
}

#[tokio::test]
async fn a_collector_that_hangs_up_is_not_tried_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let hangs_up = tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut settings = Settings::new(&url);
    settings.metrics = None;
    let exporter = Exporter::start(&settings).unwrap();
    ask(&exporter).await;
    let _ = shut_down(exporter).await;
    assert_eq!(accepted.load(Ordering::Relaxed), 1);
    hangs_up.abort();
}

#[tokio::test]
async fn a_collector_that_never_answers_is_not_waited_for() {
    let stall = Script::repeat(faults::zero_byte_stall());
    let collector = Collector::answering(stall).await;
    let exporter = Exporter::start(&collector.settings()).unwrap();
    assert_eq!(ask(&exporter).await.text, "answered");
    let ending = tokio::task::spawn_blocking(move || exporter.shutdown(Duration::from_millis(200)));
    assert!(ending.await.unwrap().is_err());
}

#[test]
fn an_address_that_is_none_is_refused_without_being_repeated() {
    for address in ["", "secret", "ftp://secret"] {
        let error = Exporter::start(&Settings::new(address)).unwrap_err();
        assert!(matches!(error, ExporterError::Address));
        assert!(!error.to_string().contains("secret"));
    }
}
