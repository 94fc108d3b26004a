use rondo_types::{ModelError, Outcome};

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// A request failed for good, or the runtime did. What was done until then is in the outcome:
    /// transcript, findings, usage.
    #[error("the turn failed: {}", cause(.outcome))]
    Failed {
        /// What there is of the turn; its [`Outcome::error`] has the class of the failure.
        outcome: Box<Outcome>,
    },
    /// No tokio runtime runs the turn: there is none here, or it was shut down.
    #[error("no tokio runtime runs the turn")]
    NoRuntime,
}

impl TurnError {
    /// Returns what there is of the turn.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Failed { outcome } => Some(outcome),
            Self::NoRuntime => None,
        }
    }

    /// Returns what failed, with its class: a wrong key, a busy server, an unknown model.
    #[must_use]
    pub fn model_error(&self) -> Option<&ModelError> {
        self.outcome()?.error.as_ref()
    }
}

fn cause(outcome: &Outcome) -> &str {
    let error = outcome.error.as_ref();
    error.map_or("nothing is known of why", |error| error.message.as_str())
}
