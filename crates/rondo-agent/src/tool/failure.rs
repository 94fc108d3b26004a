//! Turns errors of typed tools into results that the model reads.

use rondo_types::{ToolErrorCode, ToolOutcome};
use std::error::Error;

/// Any error: a `std` error, an `anyhow` error, or a message.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The most causes that are reported, in case an error is its own cause.
const CAUSES_MAX: usize = 16;

/// Returns the message with its causes. A cause is left out when the message already ends with it,
/// since many errors print their causes.
pub(super) fn described(error: impl Into<BoxError>) -> String {
    let error = error.into();
    let mut text = error.to_string();
    let mut source = error.source();
    for _ in 0..CAUSES_MAX {
        let Some(cause) = source else { break };
        let message = cause.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    text
}

/// The outcome of a call that was ended early. The driver sets the code to `timeout` if that was the
/// reason.
pub(super) fn ended_early(message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::error(ToolErrorCode::Cancelled, message)
}
