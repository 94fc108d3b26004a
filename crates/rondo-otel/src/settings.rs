//! Settings from the environment: the variables of the OpenTelemetry specification
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>,
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use crate::convention;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a collector may take, as the specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The bound on that: what `0`, which the specification reads as no limit, stands for. The end of
/// the process does not wait for it.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The bound on headers and on resource attributes, each.
const PAIRS_MAX: usize = 128;

/// Destination and extent of telemetry.
#[derive(Clone)]
pub struct Settings {
    /// Destination of traces, such as `http://localhost:4318/v1/traces`; absent for no traces.
    pub traces: Option<Target>,
    /// Destination of metrics; absent for no metrics.
    pub metrics: Option<Target>,
    /// How long one attempt to deliver may take; no attempt begins later than this after the first one.
    pub timeout: Duration,
    /// A file of certificate authorities, in PEM, that are trusted beside the system's.
    pub certificate: Option<PathBuf>,
    /// The attribute `service.name`.
    pub service_name: String,
    /// More attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Includes texts, arguments and results.
    pub content: bool,
    /// The span of the process that started this one, as `traceparent` has it
    /// (<https://www.w3.org/TR/trace-context/>).
    pub traceparent: Option<String>,
}

/// Destination of one kind of telemetry. Shows no header's value.
#[derive(Clone)]
pub struct Target {
    /// The address, path included.
    pub url: String,
    /// Headers, whose values are secrets.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Target").field("headers", &names).finish()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("traces", &self.traces)
            .field("metrics", &self.metrics)
            .field("service_name", &self.service_name)
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}

/// Why the environment's settings cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A variable's value has no meaning, or one that is not supported. The value is not repeated:
    /// it may be a secret.
    #[error("the variable `{name}` is invalid: {expected}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// Permitted values.
        expected: &'static str,
    },
}

impl Settings {
    /// Sends both kinds to a collector at this address, such as `http://localhost:4318`.
    #[must_use]
    pub fn new(endpoint: &str) -> Self {
        Self {
            traces: Some(Target::under(endpoint, Signal::Traces)),
            metrics: Some(Target::under(endpoint, Signal::Metrics)),
            timeout: TIMEOUT,
            certificate: None,
            service_name: "rondo".to_owned(),
            resource: Vec::new(),
            content: false,
            traceparent: None,
        }
    }

    /// Reads the process's environment; see [`Settings::from_lookup`].
    ///
    /// # Errors
    /// When a variable has a value that cannot be followed.
    pub fn from_env() -> Result<Option<Self>, SettingsError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Reads variables out of a function. Empty ones count as unset, as the specification has it.
    ///
    /// There are no settings without one of `OTEL_EXPORTER_OTLP_ENDPOINT`,
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`, nor where
    /// `OTEL_SDK_DISABLED` is `true`.
    ///
    /// # Errors
    /// When a variable has a value that cannot be followed.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SettingsError> {
        let env = Variables(&lookup);
        if env.is_true("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let traces = env.target(Signal::Traces)?;
        let metrics = env.target(Signal::Metrics)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let mut resource = env.pairs("OTEL_RESOURCE_ATTRIBUTES")?;
        let named = resource.iter().position(|(name, _)| name == "service.name");
        let named = named.map(|at| resource.remove(at).1);
        let service_name = env.get("OTEL_SERVICE_NAME").or(named);
        Ok(Some(Self {
            traces,
            metrics,
            timeout: env.timeout()?,
            certificate: env.get("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
            service_name: service_name.unwrap_or_else(|| "rondo".to_owned()),
            resource,
            content: env.wants_content(),
            traceparent: env.get("TRACEPARENT"),
        }))
    }
}

/// Returns the value in `OTEL_SEMCONV_STABILITY_OPT_IN` that cannot be followed: a form of the GenAI conventions
/// other than the one that is written. Other categories are for others.
#[must_use]
pub fn unknown_opt_in(value: &str) -> Option<&str> {
    let mut wanted = value.split(',').map(str::trim);
    wanted.find(|it| it.starts_with("gen_ai") && *it != convention::OPT_IN)
}

#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }

    /// Names its own variables: exporter, address, headers, protocol.
    fn variables(self) -> [&'static str; 4] {
        match self {
            Self::Traces => [
                "OTEL_TRACES_EXPORTER",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            ],
            Self::Metrics => [
                "OTEL_METRICS_EXPORTER",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
            ],
        }
    }
}

impl Target {
    fn under(endpoint: &str, signal: Signal) -> Self {
        Self {
            url: format!("{}{}", endpoint.trim_end_matches('/'), signal.path()),
            headers: Vec::new(),
        }
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    fn target(&self, signal: Signal) -> Result<Option<Target>, SettingsError> {
        let [exporter, endpoint, headers, protocol] = signal.variables();
        let expected = "expected `otlp` or `none`";
        match self.get(exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(_) => {
                return Err(SettingsError::Invalid {
                    name: exporter,
                    expected,
                });
            }
        }
        let general = || self.get("OTEL_EXPORTER_OTLP_ENDPOINT");
        let mut target = match (self.get(endpoint), general()) {
            (Some(url), _) => Target {
                url,
                headers: Vec::new(),
            },
            (None, Some(base)) => Target::under(&base, signal),
            (None, None) => return Ok(None),
        };
        self.check_protocol(protocol)?;
        target.headers = self.pairs("OTEL_EXPORTER_OTLP_HEADERS")?;
        // The signal's own come later, and a later one replaces an earlier one of its name.
        target.headers.extend(self.pairs(headers)?);
        Ok(Some(target))
    }

    fn check_protocol(&self, own: &'static str) -> Result<(), SettingsError> {
        let general = "OTEL_EXPORTER_OTLP_PROTOCOL";
        for name in [own, general] {
            match self.get(name).as_deref() {
                None => {}
                Some("http/protobuf") => return Ok(()),
                Some(_) => {
                    let expected = "expected `http/protobuf`";
                    return Err(SettingsError::Invalid { name, expected });
                }
            }
        }
        Ok(())
    }

    fn timeout(&self) -> Result<Duration, SettingsError> {
        let name = "OTEL_EXPORTER_OTLP_TIMEOUT";
        let Some(value) = self.get(name) else {
            return Ok(TIMEOUT);
        };
        let expected = "expected milliseconds";
        let millis = value.trim().parse();
        let millis = millis.map_err(|_| SettingsError::Invalid { name, expected })?;
        Ok(match Duration::from_millis(millis) {
            Duration::ZERO => TIMEOUT_MAX,
            timeout => timeout.min(TIMEOUT_MAX),
        })
    }

    /// The values that the instrumentations of the OpenTelemetry project understand.
    fn wants_content(&self) -> bool {
        let value = self.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        let value = value.map(|it| it.trim().to_ascii_lowercase());
        matches!(
            value.as_deref(),
            Some("true" | "1" | "span_only" | "span_and_event")
        )
    }

    /// Reads `name=value,name=value`, where values are percent-encoded.
    fn pairs(&self, name: &'static str) -> Result<Vec<(String, String)>, SettingsError> {
        let text = self.get(name).unwrap_or_default();
        let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let pairs: Option<Vec<_>> = items.take(PAIRS_MAX).map(pair).collect();
        let expected = "expected `name=value`, separated by commas, with percent-encoded values";
        pairs.ok_or(SettingsError::Invalid { name, expected })
    }
}

fn pair(item: &str) -> Option<(String, String)> {
    let (name, value) = item.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
}

#[cfg(test)]
mod tests;
