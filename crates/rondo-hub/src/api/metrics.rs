//! The figures of the hub, in the text format that Prometheus reads.

use crate::metrics::{Counters, ModelCounts, SECONDS};
use crate::states::ChannelState;
use axum::http::StatusCode;
use rondo_core::ports::OutboxCounts;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of the API since it started.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Responses by the hundreds of their status, from 1xx on.
    responses: [AtomicU64; 5],
    turned_away: AtomicU64,
    streams: AtomicU64,
}

/// Counts a stream as long as it lives.
pub(super) struct OpenStream(Arc<Figures>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Figures {
    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.responses.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream(self: &Arc<Self>) -> OpenStream {
        self.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    /// Writes all of it.
    pub(super) fn text(&self, hub: Counters, running: usize, outbox: OutboxCounts) -> String {
        let mut page = Page::default();
        self.write(&mut page);
        write_hub(&mut page, hub, running);
        write_outbox(&mut page, outbox);
        page.0
    }

    fn write(&self, page: &mut Page) {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let counts = self.responses.iter().map(count);
        let responses: Vec<_> = CLASSES.into_iter().zip(counts).collect();
        page.figures(
            "rondo_api_responses_total",
            "counter",
            "Responses of the HTTP API by class of status.",
            &responses,
        );
        page.figure(
            "rondo_api_connections_refused_total",
            "counter",
            "Connections without a valid key that were closed to make room for others.",
            count(&self.turned_away),
        );
        page.figure(
            "rondo_api_streams",
            "gauge",
            "Open event streams.",
            count(&self.streams),
        );
    }
}

fn write_hub(page: &mut Page, hub: Counters, running: usize) {
    for (name, help, value) in [
        ("received", "Accepted events.", hub.received),
        ("duplicates", "Duplicate events.", hub.duplicates),
        (
            "denied",
            "Events refused because of the sender's role.",
            hub.denied,
        ),
        ("sent", "Delivered messages.", hub.sent),
        (
            "put_off",
            "Attempts after which a message is still waiting.",
            hub.put_off,
        ),
        ("given_up", "Messages given up on.", hub.given_up),
        (
            "resent",
            "Messages sent again although they may have arrived.",
            hub.resent,
        ),
        (
            "quarantined",
            "Messages and turns quarantined because they crashed the hub.",
            hub.quarantined,
        ),
        (
            "set_aside",
            "Events that were set aside because they could not be processed.",
            hub.set_aside,
        ),
    ] {
        let name = format!("rondo_hub_{name}_total");
        page.figure(&name, "counter", help, value);
    }
    page.figure("rondo_hub_turns", "gauge", "Running turns.", running as u64);
}

fn write_outbox(page: &mut Page, outbox: OutboxCounts) {
    page.figure(
        "rondo_outbox_open",
        "gauge",
        "Messages waiting to be delivered.",
        outbox.open,
    );
    page.figure(
        "rondo_outbox_failed",
        "gauge",
        "Messages given up on, among those remembered.",
        outbox.failed,
    );
    page.figure(
        "rondo_outbox_resent_in_doubt",
        "gauge",
        "Times that a message was sent again although it may have arrived, among those remembered.",
        outbox.doubts,
    );
}

/// Writes which channels receive.
pub(super) fn of_channels(states: &BTreeMap<String, ChannelState>) -> String {
    let mut page = Page::default();
    let labels = states.iter().map(|(name, state)| {
        let is_up = u64::from(state.failure.is_none());
        (format!("{{channel=\"{name}\"}}"), is_up)
    });
    let labels: Vec<(String, u64)> = labels.collect();
    let up: Vec<(&str, u64)> = labels.iter().map(|(it, up)| (it.as_str(), *up)).collect();
    page.figures(
        "rondo_channel_up",
        "gauge",
        "1 if the channel receives messages, else 0.",
        &up,
    );
    page.0
}

/// Writes what was asked of models.
pub(super) fn of_models(models: &ModelCounts) -> String {
    let mut page = Page::default();
    let name = "rondo_model_request_seconds";
    page.head(
        name,
        "histogram",
        "Time from a model request to the complete reply.",
    );
    for (bound, count) in SECONDS.iter().zip(models.within) {
        page.value(name, &format!("_bucket{{le=\"{bound}\"}}"), count);
    }
    page.value(name, "_bucket{le=\"+Inf\"}", models.replies);
    let seconds = Duration::from_millis(models.reply_ms).as_secs_f64();
    page.value(name, "_sum", seconds);
    page.value(name, "_count", models.replies);
    let errors: Vec<(String, u64)> = models
        .errors
        .iter()
        .map(|(class, count)| (format!("{{class=\"{class}\"}}"), *count))
        .collect();
    let errors: Vec<(&str, u64)> = errors
        .iter()
        .map(|(it, count)| (it.as_str(), *count))
        .collect();
    page.figures(
        "rondo_model_errors_total",
        "counter",
        "Failed model requests by kind of failure.",
        &errors,
    );
    page.figures(
        "rondo_model_tokens_total",
        "counter",
        "Tokens reported by models; tokens read from a cache are part of the input.",
        &[
            ("{kind=\"input\"}", models.usage.input),
            ("{kind=\"cache_read\"}", models.usage.cache_read),
            ("{kind=\"output\"}", models.usage.output),
        ],
    );
    page.0
}

/// The labels of the classes of statuses, from 1xx on.
const CLASSES: [&str; 5] = [
    "{class=\"1xx\"}",
    "{class=\"2xx\"}",
    "{class=\"3xx\"}",
    "{class=\"4xx\"}",
    "{class=\"5xx\"}",
];

/// Figures as they are written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn figure(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.figures(name, kind, help, &[("", value)]);
    }

    fn figures(&mut self, name: &str, kind: &str, help: &str, values: &[(&str, u64)]) {
        self.head(name, kind, help);
        for (labels, value) in values {
            self.value(name, labels, *value);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}
