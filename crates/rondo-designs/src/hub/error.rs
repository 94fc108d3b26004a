//! Why a message has no answer.

use rondo_types::{ModelError, Outcome, StopReason};
use std::path::PathBuf;

/// Why a message has no answer of the model.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// The model still wanted calls at the limit.
    #[error("Max iterations reached")]
    MaxIterationsReached {
        /// The limit.
        max: u32,
        /// The notice, with the results until then.
        text: String,
    },
    /// The provider failed, took too long, or its replies cannot be used.
    #[error("{message}")]
    Provider {
        /// Description of the failure, without secrets.
        message: String,
        /// Set if sending the message again may help.
        is_recoverable: bool,
    },
    /// The turn was stopped, as by a shutdown.
    #[error("the message was not answered: the assistant was stopped")]
    Cancelled,
    /// There is nothing to answer.
    #[error("the message is empty")]
    EmptyMessage,
    /// The agent cannot run at all.
    #[error("the agent cannot run: {0}")]
    Config(String),
    /// A session's file cannot be read or written.
    #[error("the session cannot be kept in `{}`: {message}", path.display())]
    Session {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        message: String,
    },
}

impl AgentError {
    /// Returns whether the same message may be answered when it is sent again.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        match self {
            Self::Provider { is_recoverable, .. } => *is_recoverable,
            Self::MaxIterationsReached { .. } | Self::Cancelled | Self::Session { .. } => true,
            Self::EmptyMessage | Self::Config(_) => false,
        }
    }

    /// Returns the message for the chat.
    #[must_use]
    pub fn reply(&self) -> String {
        match self {
            Self::MaxIterationsReached { text, .. } => text.clone(),
            error if error.is_recoverable() => format!("Sorry, {error}. Please send it again."),
            error => format!("Sorry, {error}."),
        }
    }

    /// Returns why a turn has no answer of the model; `None` if it has one.
    pub(super) fn of(outcome: &Outcome, max: u32) -> Option<Self> {
        match outcome.stop_reason {
            StopReason::Complete => None,
            StopReason::MaxSteps => Some(Self::MaxIterationsReached {
                max,
                text: outcome.text.clone(),
            }),
            StopReason::Cancelled => Some(Self::Cancelled),
            stop => Some(match &outcome.error {
                Some(error) => error.clone().into(),
                None => Self::Provider {
                    message: match outcome.text.is_empty() {
                        true => format!("the turn ended early ({stop})"),
                        false => outcome.text.clone(),
                    },
                    is_recoverable: matches!(stop, StopReason::StepTimeout | StopReason::Deadline),
                },
            }),
        }
    }
}

impl From<ModelError> for AgentError {
    fn from(error: ModelError) -> Self {
        Self::Provider {
            is_recoverable: error.retryable,
            message: error.message,
        }
    }
}
