use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, Metric, metric};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{Span, status};
use prost::Message as _;
use rondo_otel::{Exporter, Settings, ShutdownError};
use rondo_testkit::{Recorded, Response, Script, Server};
use std::fmt::Write as _;
use std::time::Duration;

/// How long a test waits for its own collector: much longer than it takes.
const SHUTDOWN: Duration = Duration::from_secs(60);

/// A collector that decodes what it is sent.
pub(crate) struct Collector {
    pub(crate) server: Server,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::answering(Script::repeat(Response::text(200, ""))).await
    }

    pub(crate) async fn answering(script: Script) -> Self {
        Self {
            server: Server::start(script).await,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::new(&self.server.url(""))
    }

    fn requests(&self, path: &str) -> Vec<Recorded> {
        let mut all = self.server.requests();
        all.retain(|request| request.path == path);
        all
    }

    /// Returns every byte that arrived: heads and bodies.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for request in self.server.requests() {
            all.extend(format!("{} {:?}", request.path, request.headers).into_bytes());
            all.extend_from_slice(&request.body);
        }
        all
    }

    pub(crate) fn holds(&self, text: &str) -> bool {
        let bytes = self.bytes();
        bytes.windows(text.len()).any(|it| it == text.as_bytes())
    }

    fn traces(&self) -> Vec<ExportTraceServiceRequest> {
        let decode = |request: Recorded| {
            assert_eq!(request.method, "POST");
            assert_eq!(
                request.header("content-type"),
                Some("application/x-protobuf")
            );
            ExportTraceServiceRequest::decode(request.body).unwrap()
        };
        self.requests("/v1/traces")
            .into_iter()
            .map(decode)
            .collect()
    }

    fn meters(&self) -> Vec<ExportMetricsServiceRequest> {
        let decode = |request: Recorded| ExportMetricsServiceRequest::decode(request.body).unwrap();
        self.requests("/v1/metrics")
            .into_iter()
            .map(decode)
            .collect()
    }

    /// Returns the spans in the order they began, those of one time by name.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.traces().into_iter().flat_map(|it| it.resource_spans);
        let scopes = resources.flat_map(|it| it.scope_spans);
        let mut spans: Vec<Span> = scopes.flat_map(|it| it.spans).collect();
        spans.sort_by(|a, b| {
            let key = |span: &Span| (span.start_time_unix_nano, span.name.clone());
            key(a).cmp(&key(b))
        });
        spans
    }

    /// Returns the span of this name.
    pub(crate) fn span(&self, name: &str) -> Span {
        let found = self.spans().into_iter().find(|span| span.name == name);
        found.unwrap()
    }

    /// Returns the resource, and the scope's name, version and schema.
    pub(crate) fn origin(&self) -> (Resource, [String; 3]) {
        let first = self.traces().remove(0).resource_spans.remove(0);
        let scope = first.scope_spans.into_iter().next().unwrap();
        let named = scope.scope.unwrap();
        let origin = [named.name, named.version, scope.schema_url];
        (first.resource.unwrap(), origin)
    }

    /// Returns the metrics of the last delivery: totals since the beginning.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let last = self.meters().pop().unwrap();
        let scopes = last
            .resource_metrics
            .into_iter()
            .flat_map(|it| it.scope_metrics);
        let scopes =
            scopes.inspect(|it| assert_eq!(it.schema_url, rondo_otel::convention::SCHEMA_URL));
        let mut all: Vec<Metric> = scopes.flat_map(|it| it.metrics).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Draws the spans as a tree: name, kind, status, attributes, events.
    pub(crate) fn tree(&self) -> String {
        let spans = self.spans();
        let mut text = String::new();
        for root in spans.iter().filter(|it| it.parent_span_id.is_empty()) {
            draw(root, &spans, 0, &mut text);
        }
        text
    }

    /// Draws the histograms: name, unit, and count and sum of each set of attributes.
    pub(crate) fn histograms(&self) -> String {
        let mut text = String::new();
        for metric in self.metrics() {
            let Some(metric::Data::Histogram(histogram)) = metric.data else {
                panic!("`{}` is no histogram", metric.name);
            };
            writeln!(text, "{} {}", metric.name, metric.unit).unwrap();
            let mut points: Vec<String> = histogram.data_points.iter().map(point).collect();
            points.sort();
            text.extend(points);
        }
        text
    }
}

/// Sends what is left, without holding up the collector, which runs on this thread.
pub(crate) async fn shut_down(exporter: Exporter) -> Result<(), ShutdownError> {
    let ending = tokio::task::spawn_blocking(move || exporter.shutdown(SHUTDOWN));
    ending.await.unwrap()
}

fn point(point: &HistogramDataPoint) -> String {
    let sum = point.sum.unwrap();
    format!(
        "  {}x = {sum:.3}{}\n",
        point.count,
        attributes(&point.attributes)
    )
}

fn draw(span: &Span, all: &[Span], depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    let kind = SpanKind::try_from(span.kind).unwrap().as_str_name();
    let kind = kind.trim_start_matches("SPAN_KIND_").to_lowercase();
    let status = span.status.as_ref().unwrap();
    assert_eq!(status.message, "", "messages may quote what was said");
    let failed = if status.code == status::StatusCode::Error as i32 {
        ", error"
    } else {
        ""
    };
    writeln!(text, "{pad}{} ({kind}{failed})", span.name).unwrap();
    for line in lines(&span.attributes) {
        writeln!(text, "{pad}  . {line}").unwrap();
    }
    for event in &span.events {
        writeln!(text, "{pad}  ! {}", drawn_event(event)).unwrap();
    }
    for child in all.iter().filter(|it| it.parent_span_id == span.span_id) {
        assert_eq!(child.trace_id, span.trace_id);
        assert!(child.start_time_unix_nano >= span.start_time_unix_nano);
        assert!(child.end_time_unix_nano <= span.end_time_unix_nano);
        draw(child, all, depth + 1, text);
    }
}

fn drawn_event(event: &Event) -> String {
    format!("{}{}", event.name, attributes(&event.attributes))
}

fn attributes(all: &[KeyValue]) -> String {
    lines(all).iter().map(|line| format!(" {line}")).collect()
}

fn lines(all: &[KeyValue]) -> Vec<String> {
    let mut lines: Vec<String> = all
        .iter()
        .map(|it| match it.key.as_str() {
            // The system chooses it.
            "server.port" => "server.port=..".to_owned(),
            key => format!("{key}={}", value(it.value.as_ref().unwrap())),
        })
        .collect();
    lines.sort();
    lines
}

fn value(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::BoolValue(it) => it.to_string(),
        any_value::Value::IntValue(it) => it.to_string(),
        any_value::Value::DoubleValue(it) => format!("{it:?}"),
        any_value::Value::ArrayValue(it) => {
            let values: Vec<String> = it.values.iter().map(self::value).collect();
            format!("[{}]", values.join(","))
        }
        other => panic!("{other:?}"),
    }
}

/// Returns an attribute of a span.
pub(crate) fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key == name)?;
    found.value.as_ref().map(value)
}

/// Returns an attribute of the resource.
pub(crate) fn of_resource(resource: &Resource, name: &str) -> Option<String> {
    let found = resource.attributes.iter().find(|it| it.key == name)?;
    found.value.as_ref().map(value)
}
