//! Why a request to a server failed, in words for its user.

use super::http::Failure;
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;

/// Says on one line why a request failed.
pub(crate) fn why_failed(err: &ServiceError) -> String {
    let text = match err {
        ServiceError::McpError(error) => format!("it refused: {}", error.message),
        ServiceError::TransportSend(error) => {
            why_not_sent(&*error.error).unwrap_or_else(|| "the connection to it broke".to_owned())
        }
        ServiceError::TransportClosed => "the connection to it has ended".to_owned(),
        ServiceError::UnexpectedResponse => "its reply does not match the request".to_owned(),
        ServiceError::Timeout { .. } => "it did not reply in time".to_owned(),
        err => err.to_string(),
    };
    rondo_core::shown::line(&text)
}

/// Describes how a server at an address failed to take a message; nothing if that is not known.
pub(super) fn why_not_sent(err: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(err);
    while let Some(err) = cause {
        if let Some(failure) = err.downcast_ref::<Failure>() {
            return Some(words(failure));
        }
        cause = err.source();
    }
    None
}

fn words(failure: &Failure) -> String {
    match failure {
        StreamableHttpError::Client(err) => err.to_string(),
        StreamableHttpError::HttpStatus(refusal) => {
            format!("it answered with the HTTP status {}", refusal.status)
        }
        StreamableHttpError::UnexpectedServerResponse(text) => text.clone().into_owned(),
        StreamableHttpError::UnexpectedContentType(Some(kind)) => format!(
            "it answered with `{kind}` and not with JSON: is its `url` that of the protocol?"
        ),
        StreamableHttpError::UnexpectedContentType(None) => {
            "it did not say what its answer is: is its `url` that of the protocol?".to_owned()
        }
        StreamableHttpError::ResponseBodyTooLarge { max_size } => {
            format!("its answer is larger than {max_size} bytes")
        }
        StreamableHttpError::Deserialize(_) => {
            "its answer is not a message of the protocol".to_owned()
        }
        StreamableHttpError::Sse(_)
        | StreamableHttpError::Io(_)
        | StreamableHttpError::UnexpectedEndOfStream
        | StreamableHttpError::TransportChannelClosed => {
            "the connection ended before its answer was complete".to_owned()
        }
        StreamableHttpError::SessionExpired => "it has forgotten the session".to_owned(),
        StreamableHttpError::SessionRecoveryTimeout => {
            "it has forgotten the session, and did not begin another in time".to_owned()
        }
        StreamableHttpError::ReinitializationFailed(error) => format!(
            "it has forgotten the session, and refused another: {}",
            error.message
        ),
        other => other.to_string(),
    }
}
