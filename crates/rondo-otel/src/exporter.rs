//! Sends traces and metrics to a collector, within bounds on memory and time.

use crate::post::Post;
use crate::settings::{Settings, Target};
use crate::telemetry::Telemetry;
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, IdGenerator as _, RandomIdGenerator, Sampler,
    SdkTracerProvider, SpanLimits,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;
use std::time::Duration;

/// How long spans are gathered before they are sent.
const SPANS_EVERY: Duration = Duration::from_secs(5);
/// The bound on spans that wait to be sent; past it, new ones are dropped.
const SPANS_WAITING_MAX: usize = 2048;
/// The bound on spans in one delivery.
const SPANS_AT_ONCE_MAX: usize = 512;
/// The bounds where each may hold some hundred kilobytes of content, since collectors refuse what
/// is larger than some megabytes.
const SPANS_WITH_CONTENT_WAITING_MAX: usize = 256;
const SPANS_WITH_CONTENT_AT_ONCE_MAX: usize = 16;
/// How often metrics are sent.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// How often one delivery is repeated.
const RETRIES_MAX: usize = 2;
/// The wait before the first repetition, unless the collector names one; doubled for the second.
const BACKOFF: Duration = Duration::from_millis(200);
/// The address that the exporters are built with. [`Post`] has the real one, which may hold a secret.
const ADDRESS: &str = "http://collector.invalid/";

/// A [`Telemetry`] that is sent to a collector over OTLP (HTTP, protobuf).
///
/// Sending is done by threads of its own and bounded in memory and time; it never holds up a turn.
/// The first failure is logged as a warning, later ones are not.
#[derive(Debug)]
pub struct Exporter {
    telemetry: Telemetry,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// The collector's address, which may hold a secret and is not repeated, is not an http address.
    #[error("the address of the collector is not an `http` or `https` address")]
    Address,
    /// A header cannot be sent.
    #[error("the header `{name}` for the collector cannot be sent")]
    Header {
        /// Name of the header.
        name: String,
    },
    /// The file of certificate authorities is invalid.
    #[error("failed to read the certificates in `{path}`", path = path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP client cannot be built.
    #[error("failed to set up the HTTP client")]
    Client(#[source] rondo_http::HttpError),
    /// The exporter cannot be built.
    #[error("failed to set up the exporter")]
    Exporter(#[source] ExporterBuildError),
    /// There can be no runtime.
    #[error("failed to start a runtime")]
    Runtime(#[source] std::io::Error),
}

/// Why the last telemetry may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShutdownError {
    /// The collector did not take it.
    #[error("the collector did not take the last telemetry")]
    Undelivered,
    /// The collector took too long.
    #[error("the collector did not take the last telemetry in time")]
    TimedOut,
}

impl Exporter {
    /// Starts to send what turns do. The system's certificate authorities are read with the first
    /// delivery by https.
    ///
    /// # Errors
    /// When an address, a header or a certificate cannot be used. A collector that cannot be
    /// reached is not an error here.
    pub fn start(settings: &Settings) -> Result<Self, ExporterError> {
        let resource = resource(settings);
        let told = Arc::default();
        let post = |target: &Option<Target>| post(target.as_ref(), settings, &told);
        let spans = post(&settings.traces)?.map(|post| {
            let builder = SpanExporter::builder().with_http();
            configured(builder, post, settings).build()
        });
        let totals = post(&settings.metrics)?.map(|post| {
            let builder = MetricExporter::builder().with_http();
            let builder = builder.with_temporality(Temporality::Cumulative);
            configured(builder, post, settings).build()
        });
        let spans = spans.transpose().map_err(ExporterError::Exporter)?;
        let totals = totals.transpose().map_err(ExporterError::Exporter)?;
        let traces = traces(spans, resource.clone(), settings.content);
        let metrics = metrics(totals, resource);
        let mut telemetry = Telemetry::new(&traces, &metrics).with_content(settings.content);
        if let Some(parent) = &settings.traceparent {
            let carrier = HashMap::from([("traceparent".to_owned(), parent.clone())]);
            telemetry = telemetry.with_parent(TraceContextPropagator::new().extract(&carrier));
        }
        Ok(Self {
            telemetry,
            traces,
            metrics,
        })
    }

    /// Returns the observer to attach to turns.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Sends what is left, and ends. Blocks, and not for longer than `within`: what the collector
    /// did not take by then is lost.
    ///
    /// # Errors
    /// When something is, or may be, lost.
    pub fn shutdown(self, within: Duration) -> Result<(), ShutdownError> {
        let (ended, end) = sync_channel(2);
        let Self {
            traces, metrics, ..
        } = self;
        let also = ended.clone();
        let ends: [Box<dyn FnOnce() + Send>; 2] = [
            Box::new(move || drop(ended.send(traces.shutdown_with_timeout(within)))),
            Box::new(move || drop(also.send(metrics.shutdown()))),
        ];
        let deadline = crate::clock::Deadline::after(within);
        for shutdown in ends {
            let named = Builder::new().name("telemetry".to_owned());
            named
                .spawn(shutdown)
                .map_err(|_| ShutdownError::Undelivered)?;
        }
        let mut all = Ok(());
        for _ in 0..2 {
            let result: OTelSdkResult = end
                .recv_timeout(deadline.left())
                .map_err(|_| ShutdownError::TimedOut)?;
            all = all.and(result.map_err(|_| ShutdownError::Undelivered));
        }
        all
    }
}

fn post(
    target: Option<&Target>,
    settings: &Settings,
    told: &Arc<AtomicBool>,
) -> Result<Option<Post>, ExporterError> {
    target
        .map(|target| Post::new(target, settings, told))
        .transpose()
}

/// Sets everything that the exporter would otherwise take from the environment, but headers and compression: [`Post`] sends
/// its own headers, and nothing is compressed in this build.
fn configured<B: WithExportConfig + WithHttpConfig>(
    builder: B,
    post: Post,
    settings: &Settings,
) -> B {
    let retries = RetryPolicy::recommended()
        .with_max_retries(RETRIES_MAX)
        .with_initial_delay(BACKOFF);
    builder
        .with_http_client(post)
        .with_endpoint(ADDRESS)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(settings.timeout)
        .with_retry_policy(retries)
}

/// The instance tells the totals of one process from those of another.
fn resource(settings: &Settings) -> Resource {
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    let pairs = settings.resource.iter();
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
        ])
        .with_attributes(pairs.map(|(name, value)| KeyValue::new(name.clone(), value.clone())))
        .with_service_name(settings.service_name.clone())
        .build()
}

/// Everything that the SDK would otherwise take from the environment is set.
fn traces(exporter: Option<SpanExporter>, resource: Resource, content: bool) -> SdkTracerProvider {
    let builder = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_span_limits(SpanLimits::default())
        .with_resource(resource);
    let Some(exporter) = exporter else {
        return builder.build();
    };
    let (waiting, at_once) = if content {
        (
            SPANS_WITH_CONTENT_WAITING_MAX,
            SPANS_WITH_CONTENT_AT_ONCE_MAX,
        )
    } else {
        (SPANS_WAITING_MAX, SPANS_AT_ONCE_MAX)
    };
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(waiting)
        .with_max_export_batch_size(at_once)
        .with_scheduled_delay(SPANS_EVERY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter)
        .with_batch_config(config)
        .build();
    builder.with_span_processor(processor).build()
}

fn metrics(exporter: Option<MetricExporter>, resource: Resource) -> SdkMeterProvider {
    let builder = SdkMeterProvider::builder().with_resource(resource);
    let Some(exporter) = exporter else {
        return builder.build();
    };
    let reader = PeriodicReader::builder(exporter)
        .with_interval(METRICS_EVERY)
        .build();
    builder.with_reader(reader).build()
}
