//! Errors of model requests.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a [`ModelError`]. Retries, fallbacks and exit codes depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// The account is out of money or quota; waiting does not help.
    Quota,
    /// Too many requests for now.
    RateLimited,
    /// The provider has no capacity for now.
    Overloaded,
    /// The provider failed (5xx).
    Server,
    /// The connection failed, was reset or ended early.
    Network,
    /// No content arrived in time.
    FirstByteTimeout,
    /// Content stopped arriving.
    IdleTimeout,
    /// The step as a whole took too long.
    StepTimeout,
    /// The turn's deadline passed.
    Deadline,
    /// The provider does not know the model or the address.
    NotFound,
    /// The conversation does not fit the model's context.
    ContextTooLong,
    /// The provider rejected the request as invalid.
    BadRequest,
    /// The model cannot do what was asked, such as function calling.
    Unsupported,
    /// The provider's filter blocked the prompt or the answer.
    ContentFilter,
    /// The model wrote a tool call that its provider could not read.
    InvalidToolCall,
    /// The response does not follow the protocol.
    Protocol,
    /// The response is larger than its bound.
    TooLarge,
    /// The turn was cancelled.
    Cancelled,
    /// The runtime itself failed.
    Internal,
}

impl ErrorClass {
    /// Returns the name of the class in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Network => "network",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::StepTimeout => "step_timeout",
            Self::Deadline => "deadline",
            Self::NotFound => "not_found",
            Self::ContextTooLong => "context_too_long",
            Self::BadRequest => "bad_request",
            Self::Unsupported => "unsupported",
            Self::ContentFilter => "content_filter",
            Self::InvalidToolCall => "invalid_tool_call",
            Self::Protocol => "protocol",
            Self::TooLarge => "too_large",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// Returns whether sending the same request again may help; the default for
    /// [`ModelError::retryable`].
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Server
                | Self::Network
                | Self::FirstByteTimeout
                | Self::IdleTimeout
        )
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a model request failed, or why a turn ended with an error.
///
/// Failures of Rondo itself, such as a journal that cannot be written, have the class [`ErrorClass::Internal`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of failure.
    pub class: ErrorClass,
    /// Lower-case fragment, with at most 512 bytes from the provider and no secrets.
    pub message: String,
    /// The HTTP status, if one was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `true` if sending the same request again may help.
    pub retryable: bool,
    /// How long the provider asks to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ModelError {
    /// Builds an error whose class decides whether it is retryable.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            status: None,
            retryable: class.is_retryable(),
            retry_after_ms: None,
        }
    }
}
