//! Posts one kind of telemetry to its address: <https://opentelemetry.io/docs/specs/otlp/#otlphttp>.
//!
//! The SDK calls this from threads of its own and waits, so each address has a small runtime.

use crate::ExporterError;
use crate::settings::{Settings, Target};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message as _;
use rondo_http::{Destination, HttpError, Network, Receipt, Secret, Transport};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// How often one delivery is tried.
const ATTEMPTS_MAX: u32 = 3;
/// The wait before the second attempt, where the collector does not say; doubled for the third.
const BACKOFF: Duration = Duration::from_millis(200);

/// The way to one address.
pub(crate) struct Post {
    destination: Destination,
    timeout: Duration,
    /// Taken when the value is dropped, which may happen where a runtime must not be waited for.
    runtime: Option<Runtime>,
    /// Whether a failure was reported, shared by both kinds: it is reported once.
    told: Arc<AtomicBool>,
}

/// Why something was not delivered; names no address, which may hold a secret.
#[derive(Debug, thiserror::Error)]
enum Undelivered {
    #[error("the collector cannot be reached")]
    Unreachable,
    #[error("the collector answered {0}")]
    Refused(u16),
    #[error("the collector did not answer in time")]
    TimedOut,
    #[error("the exporter was stopped")]
    Stopped,
}

impl Post {
    pub(crate) fn new(
        target: &Target,
        settings: &Settings,
        told: &Arc<AtomicBool>,
    ) -> Result<Self, ExporterError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ExporterError::Runtime)?;
        Ok(Self {
            destination: destination(target, settings)?,
            timeout: settings.timeout,
            runtime: Some(runtime),
            told: Arc::clone(told),
        })
    }

    fn deliver(&self, body: Vec<u8>) -> OTelSdkResult {
        let Some(runtime) = &self.runtime else {
            return Err(failure(&Undelivered::Stopped));
        };
        let trying = async { timeout(self.timeout, self.try_often(body.into())).await };
        let sent = runtime.block_on(trying);
        sent.unwrap_or(Err(Undelivered::TimedOut)).map_err(|error| {
            if !self.told.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "telemetry is lost, which is not said again");
            }
            failure(&error)
        })
    }

    async fn try_often(&self, body: Bytes) -> Result<(), Undelivered> {
        let mut wait = BACKOFF;
        let mut attempt = 1;
        loop {
            let sent = self.destination.post(body.clone()).await;
            let Receipt {
                status,
                retry_after,
            } = sent.map_err(|_| Undelivered::Unreachable)?;
            if (200..300).contains(&status) {
                return Ok(());
            }
            if !may_pass(status) || attempt == ATTEMPTS_MAX {
                return Err(Undelivered::Refused(status));
            }
            sleep(retry_after.unwrap_or(wait)).await;
            wait = wait.saturating_mul(2);
            attempt += 1;
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}

fn failure(error: &Undelivered) -> OTelSdkError {
    OTelSdkError::InternalFailure(error.to_string())
}

/// Proxies are not for telemetry; certificate authorities are read with the first delivery by https.
fn destination(target: &Target, settings: &Settings) -> Result<Destination, ExporterError> {
    let network = Network {
        ca_file: settings.certificate.clone(),
        ..Network::default()
    };
    let secret = |(name, value): &(String, String)| (name.clone(), Secret::new(value));
    let headers = target.headers.iter().map(secret).chain([(
        "content-type".to_owned(),
        Secret::new("application/x-protobuf"),
    )]);
    let headers: Vec<_> = headers.collect();
    Transport::new(network)
        .and_then(|transport| Destination::new(transport, "otel", &target.url, &headers))
        .map_err(|error| match error {
            HttpError::BaseUrl { .. } => ExporterError::Address,
            HttpError::Header { name, .. } => ExporterError::Header { name },
            HttpError::CaFile { path, source } => ExporterError::Certificate { path, source },
            other => ExporterError::Client(other),
        })
}

/// What the specification allows to be sent again.
fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// Spans, to their address.
#[derive(Debug)]
pub(crate) struct Spans {
    post: Post,
    resource: ResourceAttributesWithSchema,
}

impl Spans {
    pub(crate) fn new(post: Post) -> Self {
        Self {
            post,
            resource: ResourceAttributesWithSchema::default(),
        }
    }
}

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &self.resource),
        };
        self.post.deliver(request.encode_to_vec())
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

/// Metrics, to their address, as totals since the beginning.
#[derive(Debug)]
pub(crate) struct Metrics {
    post: Post,
}

impl Metrics {
    pub(crate) fn new(post: Post) -> Self {
        Self { post }
    }
}

impl PushMetricExporter for Metrics {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let request = ExportMetricsServiceRequest::from(metrics);
        self.post.deliver(request.encode_to_vec())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
