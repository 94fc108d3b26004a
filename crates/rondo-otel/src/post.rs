//! Sends to one address what `opentelemetry-otlp` writes: <https://opentelemetry.io/docs/specs/otlp/#otlphttp>.
//!
//! The exporters of that crate take the environment's headers over those of their caller, and read them where a host of
//! Rondo may have another environment. So the headers of a request are not sent, but those of the settings.
//!
//! The SDK calls this from threads of its own and waits, so each address has a small runtime.

use crate::ExporterError;
use crate::settings::{Settings, Target};
use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use rondo_http::{Destination, Network, Receipt, Secret, Transport};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Ends the exporter's attempts as a status of the collector does: it repeats what could not be sent, and a process would end
/// most of a second later for a collector that is not there.
const NOT_AGAIN: u16 = 400;

/// The way to one address.
pub(crate) struct Post {
    destination: Destination,
    timeout: Duration,
    /// Taken when the value is dropped, which may happen where a runtime must not be waited for.
    runtime: Option<Runtime>,
    /// Set once a failure was reported, shared by both kinds: it is reported once.
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

    fn deliver(&self, body: Bytes) -> Result<Receipt, Undelivered> {
        let runtime = self.runtime.as_ref().ok_or(Undelivered::Stopped)?;
        let sending = async { timeout(self.timeout, self.destination.post(body)).await };
        match runtime.block_on(sending) {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(_)) => Err(Undelivered::Unreachable),
            Err(_) => Err(Undelivered::TimedOut),
        }
    }

    fn warn(&self, error: &Undelivered) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "telemetry may be lost, which is not reported again");
        }
    }
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let receipt = self.deliver(request.into_body());
        let Receipt {
            status,
            retry_after,
        } = match receipt {
            Ok(receipt) => receipt,
            Err(error @ Undelivered::Stopped) => return Err(error.into()),
            Err(error) => {
                self.warn(&error);
                Receipt {
                    status: NOT_AGAIN,
                    retry_after: None,
                }
            }
        };
        if !(200..300).contains(&status) {
            self.warn(&Undelivered::Refused(status));
        }
        let mut response = Response::builder().status(status);
        if let Some(wait) = retry_after {
            response = response.header("retry-after", wait.as_secs());
        }
        Ok(response.body(Bytes::new())?)
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
            rondo_http::HttpError::BaseUrl { .. } => ExporterError::Address,
            rondo_http::HttpError::Header { name, .. } => ExporterError::Header { name },
            rondo_http::HttpError::CaFile { path, source } => {
                ExporterError::Certificate { path, source }
            }
            other => ExporterError::Client(other),
        })
}
