//! Exports traces and metrics of turns, if the build supports it and the environment names a collector.

use crate::env::Env;
use crate::notices::Notices;
use rondo_core::EventSender;

/// Exporter of the turns of this process; disabled, unless the environment configures it.
pub struct Telemetry(Inner);

#[cfg(feature = "otel")]
type Inner = Option<rondo_otel::Exporter>;
#[cfg(not(feature = "otel"))]
type Inner = ();

#[cfg(feature = "otel")]
mod sent {
    use super::{Env, EventSender, Notices, Telemetry};
    use rondo_otel::{Exporter, Settings, ShutdownError, convention, unknown_opt_in};
    use std::time::Duration;
    use tokio::task::spawn_blocking;

    /// How long the end of the process waits for the collector.
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
    const OPT_IN: &str = "OTEL_SEMCONV_STABILITY_OPT_IN";

    impl Telemetry {
        /// Starts the exports that the environment asks for. A value that cannot be followed is reported, and the run
        /// continues without.
        pub async fn start(env: &Env, notices: &dyn Notices) -> Self {
            if let Some(wanted) = env.get(OPT_IN).and_then(unknown_opt_in) {
                let written = convention::VERSION;
                tracing::info!(
                    wanted,
                    written,
                    "telemetry has one form of the conventions only"
                );
            }
            let exporter = match Settings::from_lookup(|name| env.text(name)) {
                Ok(Some(settings)) => started(settings).await,
                Ok(None) => return Self(None),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = &exporter {
                notices.note(&format!("no telemetry is sent: {reason}"));
            }
            Self(exporter.ok())
        }

        /// Traces and measures the turn that runs with this sender.
        pub fn observe(&self, events: EventSender) -> EventSender {
            match &self.0 {
                Some(exporter) => exporter.telemetry().observe(events),
                None => events,
            }
        }

        /// Sends what is left, for a bounded time. A failure is not a failure of the run.
        pub async fn finish(self) {
            let Some(exporter) = self.0 else {
                return;
            };
            let ending = spawn_blocking(move || exporter.shutdown(SHUTDOWN_TIMEOUT));
            // A refused value was reported when it was refused.
            if let Ok(Err(error @ ShutdownError::TimedOut)) = ending.await {
                tracing::warn!(%error, "telemetry is incomplete");
            }
        }
    }

    /// A file of certificate authorities may be read, which takes a while.
    async fn started(settings: Settings) -> Result<Exporter, String> {
        let starting = spawn_blocking(move || Exporter::start(&settings));
        let exporter = starting.await.map_err(|err| err.to_string())?;
        exporter.map_err(|err| err.to_string())
    }

    /// Describes the telemetry for `rondo doctor`.
    pub fn described(env: &Env) -> Result<String, String> {
        let conventions = format!("GenAI conventions {}", convention::VERSION);
        match Settings::from_lookup(|name| env.text(name)) {
            Ok(Some(settings)) if settings.content => {
                Ok(format!("sent over OTLP, content included; {conventions}"))
            }
            Ok(Some(_)) => Ok(format!("sent over OTLP, without content; {conventions}")),
            Ok(None) => Ok(format!("off; {conventions}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(not(feature = "otel"))]
mod unsent {
    use super::{Env, EventSender, Notices, Telemetry};

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    #[expect(
        clippy::unused_async,
        reason = "the same shape as in a build that has telemetry"
    )]
    impl Telemetry {
        /// Says in the log that this build sends nothing, where something is expected.
        pub async fn start(env: &Env, _notices: &dyn Notices) -> Self {
            if env.get(ENDPOINT).is_some() {
                tracing::info!("this build has no telemetry; build it with the feature `otel`");
            }
            Self(())
        }

        /// Returns the sender as it is.
        pub fn observe(&self, events: EventSender) -> EventSender {
            events
        }

        /// Does nothing.
        pub async fn finish(self) {}
    }

    /// Describes the telemetry for `rondo doctor`.
    pub fn described(_env: &Env) -> Result<String, String> {
        Ok("not in this build".to_owned())
    }
}

#[cfg(feature = "otel")]
pub use sent::described;
#[cfg(not(feature = "otel"))]
pub use unsent::described;
