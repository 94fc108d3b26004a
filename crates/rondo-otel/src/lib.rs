//! Exports turns as OpenTelemetry traces and metrics, by the GenAI conventions.
//!
//! A turn is an `invoke_agent` span; each request to a model and each tool call is a span under it.
//! Histograms count tokens and time. Texts, arguments and results are left out unless the program
//! asks for them.
//!
//! A [`Telemetry`] observes each moment of a turn in the engine itself, so its times do not depend on the task
//! that reads the events. It writes to any providers of the OpenTelemetry SDK; an [`Exporter`] provides
//! ones that send to a collector over OTLP.
//!
//! # Layout
//! - `telemetry`: the observer of turns, on any providers.
//! - `turn`, `request`, `call`: the three kinds of spans; `instruments`: the histograms.
//! - [`convention`]: names, and the version of the conventions they come from; `content`: messages
//!   in the conventions' form.
//! - `settings`: the `OTEL_*` environment variables; `exporter`, `post`, `client`: OTLP over HTTP.
//!
//! # A turn that is traced
//! ```
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use rondo_core::events;
//! use rondo_otel::{Exporter, Settings};
//! use rondo_types::{SessionId, TurnId};
//! use std::time::Duration;
//!
//! let exporter = Exporter::start(&Settings::new("http://localhost:4318"))?;
//! let (sender, listener) = events::channel(SessionId::new("s"), TurnId::new("t"));
//! let sender = exporter.telemetry().observe(sender);
//! // The turn runs with this sender; at the end of the program:
//! exporter.shutdown(Duration::from_secs(2))?;
//! # drop((sender, listener));
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod call;
mod clock;
mod content;
pub mod convention;
mod exporter;
mod instruments;
mod post;
mod request;
mod settings;
mod telemetry;
mod turn;

pub use exporter::{Exporter, ExporterError, ShutdownError};
pub use settings::{Settings, SettingsError, Target, unknown_opt_in};
pub use telemetry::Telemetry;
