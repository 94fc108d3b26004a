//! The observer that writes turns as traces and metrics.

use crate::clock::Clock;
use crate::convention;
use crate::instruments::Instruments;
use crate::turn::TurnObserver;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{SpanBuilder, SpanKind, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use rondo_core::EventSender;
use std::sync::Arc;
use std::time::SystemTime;

/// Sink of the traces and metrics of turns. Clones share everything.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Sink>);

#[derive(Debug, Clone)]
pub(crate) struct Sink {
    tracer: SdkTracer,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) clock: Clock,
    /// Includes texts, arguments and results.
    pub(crate) content: bool,
    /// The span that turns belong to if the task that runs them is in none.
    pub(crate) parent: Option<Context>,
}

impl Telemetry {
    /// Writes to the program's own providers, without content.
    #[must_use]
    pub fn new(traces: &SdkTracerProvider, metrics: &SdkMeterProvider) -> Self {
        let scope = InstrumentationScope::builder("rondo")
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(convention::SCHEMA_URL)
            .build();
        let meter = metrics.meter_with_scope(scope.clone());
        Self(Arc::new(Sink {
            tracer: traces.tracer_with_scope(scope),
            instruments: Arc::new(Instruments::new(&meter)),
            clock: Clock::system(),
            content: false,
            parent: None,
        }))
    }

    /// Sets whether texts, arguments and results are written to spans, cut to bounds. They may hold
    /// anything that the model was told or has found.
    #[must_use]
    pub fn with_content(self, content: bool) -> Self {
        self.changed(|sink| sink.content = content)
    }

    /// Sets the span of another process that turns belong to, out of the context that a propagator
    /// extracted. A span of this process that is current when a turn begins comes first.
    #[must_use]
    pub fn with_parent(self, parent: Context) -> Self {
        self.changed(|sink| sink.parent = Some(parent))
    }

    /// Takes times from a function instead of the system's clock.
    #[must_use]
    pub fn with_clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.changed(|sink| sink.clock = Clock::new(now))
    }

    fn changed(self, change: impl FnOnce(&mut Sink)) -> Self {
        let mut sink = Arc::unwrap_or_clone(self.0);
        change(&mut sink);
        Self(Arc::new(sink))
    }

    /// Traces and measures the turn that is run with this sender.
    #[must_use]
    pub fn observe(&self, events: EventSender) -> EventSender {
        let turn = TurnObserver::new(Arc::clone(&self.0), &events);
        events.observed_by(Arc::new(turn))
    }
}

impl Sink {
    pub(crate) fn start(
        &self,
        name: String,
        kind: SpanKind,
        attributes: Vec<KeyValue>,
        parent: &Context,
        at: SystemTime,
    ) -> Span {
        let builder = SpanBuilder::from_name(name)
            .with_kind(kind)
            .with_start_time(at)
            .with_attributes(attributes);
        self.tracer.build_with_context(builder, parent)
    }
}
