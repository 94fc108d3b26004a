//! The errors of the design.

use rondo_schema::ArgsError;
use serde::{Deserialize, Serialize};

/// Error in place of a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", content = "message", rename_all = "snake_case")]
pub enum FaeLlmError {
    /// The loop cannot be built from this.
    #[error("the configuration cannot be used: {0}")]
    ConfigError(String),
    /// The messages cannot be sent.
    #[error("the request cannot be sent: {0}")]
    RequestError(String),
    /// The stream of a reply broke, or is larger than its bound.
    #[error("the stream failed: {0}")]
    StreamError(String),
    /// No tool has that name.
    #[error("{0}")]
    ToolNotFound(String),
    /// The arguments of a call are not JSON, or do not fit the tool's schema.
    #[error("{0}")]
    ToolValidationError(String),
    /// A call was denied, or broke off in the runtime.
    #[error("{0}")]
    ToolExecutionError(String),
    /// A call took too long.
    #[error("{0}")]
    TimeoutError(String),
    /// A call was stopped, or not begun, because the run was cancelled.
    #[error("{0}")]
    Cancelled(String),
}

impl FaeLlmError {
    /// Returns a name that stays the same over versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ConfigError(_) => "config_error",
            Self::RequestError(_) => "request_error",
            Self::StreamError(_) => "stream_error",
            Self::ToolNotFound(_) => "tool_not_found",
            Self::ToolValidationError(_) => "tool_validation_error",
            Self::ToolExecutionError(_) => "tool_execution_error",
            Self::TimeoutError(_) => "timeout_error",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

impl From<ArgsError> for FaeLlmError {
    fn from(error: ArgsError) -> Self {
        let message = error.to_string();
        match error {
            ArgsError::Schema { .. } => Self::ConfigError(message),
            _ => Self::ToolValidationError(message),
        }
    }
}
