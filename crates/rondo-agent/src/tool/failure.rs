//! Errors of typed tools, as results that the model reads.

use rondo_types::{ToolErrorCode, ToolOutcome};
use std::error::Error;

/// Any error of a program: `std` errors, `anyhow` errors, or a message.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The bound on causes that are told, for errors that are their own cause.
const CAUSES_MAX: usize = 16;

/// Returns the message with its causes. A cause that the message already ends with is not repeated,
/// since many errors print theirs.
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

/// A call that was told to end; the driver knows whether by a cancel or by its timeout.
pub(super) fn ended_early(message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::error(ToolErrorCode::Cancelled, message)
}
