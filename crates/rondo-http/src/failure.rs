//! Converts network failures to model errors, without secrets.

use crate::HttpError;
use crate::base_url::BaseUrl;
use crate::client::{ExchangeError, NetworkError};
use crate::connector::Unresolved;
use rondo_types::text::first_bytes;
use rondo_types::{ErrorClass, ModelError};
use std::error::Error;
use std::io;
use std::time::Duration;

/// The bound on the part of a message that a library or a provider wrote.
const CAUSE_BYTES_MAX: usize = 512;
/// The bound on causes looked at.
const CAUSES_MAX: usize = 16;

/// When a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the response began.
    Sending,
    /// While its body was read.
    Reading,
}

/// Returns the error of a failure on the network.
///
/// All of it may be tried again, except a server that cannot be trusted or does not speak HTTP, and
/// one of this machine that is not running.
/// A TLS failure after the handshake is one of the line, not of trust.
pub(crate) fn network_error(
    error: &NetworkError,
    stage: Stage,
    base_url: &BaseUrl,
    connect_timeout: Duration,
) -> ModelError {
    let name = base_url.name();
    let causes = causes(error.as_ref());
    let failed = find::<ExchangeError>(&causes);
    let is_connecting = matches!(failed, Some(ExchangeError::Connect(_)));
    if let Some(cause) = find::<rustls::Error>(&causes) {
        return ModelError {
            retryable: false,
            ..network(format!(
                "tls with {name} failed: {}",
                first_bytes(&cause.to_string(), CAUSE_BYTES_MAX).to_owned()
            ))
        };
    }
    if find::<Unresolved>(&causes).is_some() {
        return network(format!("failed to resolve {name}: {}", innermost(&causes)));
    }
    if is_connecting && kind(&causes) == Some(io::ErrorKind::TimedOut) {
        return network(format!(
            "connecting to {name} timed out after {connect_timeout:?}"
        ));
    }
    if failed.is_some_and(|failed| is_not_http(failed, &causes)) {
        let message = format!("{name} does not answer in http: {}", innermost(&causes));
        return ModelError::new(ErrorClass::Protocol, message);
    }
    if kind(&causes) == Some(io::ErrorKind::ConnectionRefused) {
        let message = format!("connection to {name} refused: nothing listens there");
        // A far server may be restarting; one of this machine waits for its user to start it.
        let retryable = !base_url.is_this_machine();
        return ModelError {
            retryable,
            ..network(message)
        };
    }
    network(match (kind(&causes), is_connecting, stage) {
        (Some(io::ErrorKind::TimedOut), false, _) => {
            format!("{name} stopped responding {}", when(stage))
        }
        (_, true, _) => format!("failed to connect to {name}: {}", innermost(&causes)),
        (Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), ..) => {
            format!("{name} reset the connection {}", when(stage))
        }
        _ => format!(
            "{name} closed the connection {}: {}",
            when(stage),
            innermost(&causes)
        ),
    })
}

/// Returns whether the server sent something that is not a reply in HTTP.
fn is_not_http(error: &ExchangeError, causes: &[Cause<'_>]) -> bool {
    match error {
        ExchangeError::Switched => true,
        // The server spoke before it was asked: hyper cancels the request, and has no cause but itself.
        ExchangeError::Http(error) if error.is_canceled() => causes
            .last()
            .is_some_and(|cause| cause.is::<hyper::Error>()),
        ExchangeError::Http(error) => error.is_parse(),
        ExchangeError::Connect(_) | ExchangeError::NoHost => false,
    }
}

/// Returns the error for a client that could not be built when it was first needed.
pub(crate) fn setup_error(error: &HttpError) -> ModelError {
    let class = match error {
        HttpError::NoRoots => ErrorClass::Network,
        _ => ErrorClass::Internal,
    };
    ModelError {
        retryable: false,
        ..ModelError::new(class, error.to_string())
    }
}

/// Returns the error for a request that cannot be put into the form that is sent.
pub(crate) fn unsendable_error(why: &str) -> ModelError {
    let message = format!("the request cannot be sent: {why}");
    ModelError {
        retryable: false,
        ..ModelError::new(ErrorClass::Internal, message)
    }
}

/// Returns the error for a redirect to a server that must not get the key without the user's consent.
pub(crate) fn redirect_error(status: u16, target: Option<&str>, base_url: &BaseUrl) -> ModelError {
    let name = base_url.name();
    let message = match target {
        Some(target) => {
            format!("{name} redirects to `{target}`; use that as the base url if you trust it")
        }
        None => format!("{name} redirects, but not to an address"),
    };
    ModelError {
        status: Some(status),
        ..ModelError::new(ErrorClass::NotFound, message)
    }
}

fn network(message: String) -> ModelError {
    ModelError::new(ErrorClass::Network, message)
}

fn when(stage: Stage) -> &'static str {
    match stage {
        Stage::Sending => "before it answered",
        Stage::Reading => "in the middle of its reply",
    }
}

type Cause<'e> = &'e (dyn Error + 'static);

/// Returns `error` and the chain below it; what an [`io::Error`] wraps is a link of its own, which
/// `source` would leave out.
fn causes<'e>(error: &'e (dyn Error + Send + Sync + 'static)) -> Vec<Cause<'e>> {
    let mut causes = Vec::new();
    let mut next: Option<Cause<'e>> = Some(error);
    while let Some(cause) = next
        && causes.len() < CAUSES_MAX
    {
        causes.push(cause);
        let wrapped = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    causes
}

fn find<'e, E: Error + 'static>(causes: &[Cause<'e>]) -> Option<&'e E> {
    causes.iter().find_map(|cause| cause.downcast_ref::<E>())
}

fn kind(causes: &[Cause<'_>]) -> Option<io::ErrorKind> {
    causes
        .iter()
        .rev()
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind)
}

fn innermost(causes: &[Cause<'_>]) -> String {
    let text = causes.last().map(ToString::to_string);
    let text = text.unwrap_or_else(|| "no reason given".to_owned());
    first_bytes(&text, CAUSE_BYTES_MAX).to_owned()
}
