//! The error of a turn.

use rondo_core::ResumeError;
use rondo_types::{ModelError, Outcome, Question};
use std::fmt;
use tokio::task::JoinError;

/// Why a turn failed.
///
/// Its `Debug` output, which a `main` that returns the error prints, omits the turn's messages.
#[derive(thiserror::Error)]
pub enum TurnError {
    /// A request failed for good, or the runtime did. The outcome has the transcript, findings and
    /// usage until then.
    #[error("the turn failed: {}", cause(.outcome))]
    Failed {
        /// The outcome until the failure; its [`Outcome::error`] has the class of the failure.
        outcome: Box<Outcome>,
    },
    /// There is no current tokio runtime, or it was shut down.
    #[error("the turn was started outside a tokio runtime")]
    NoRuntime,
    /// The turn's task panicked: in a part such as the journal, or because the runtime has no timers
    /// (call `enable_all` on its builder). A panic in a tool, a gate, an approver or a model's stream
    /// does not end in this error.
    #[error("the turn ended unexpectedly: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The interrupted turn cannot be resumed: this agent has other models, or the records are
    /// inconsistent.
    #[error("the turn that was cut off cannot be resumed")]
    Resume(#[from] ResumeError),
    /// The turn that was cut off came from a file, so that its messages may have been written by anyone, its
    /// limits and its calls. [`Session::resume_imported`](crate::Session::resume_imported) carries it
    /// on all the same.
    #[error("the turn that was cut off was imported: its file may be from anyone")]
    Imported,
    /// The approver replied [`QuestionReply::Later`](rondo_core::QuestionReply::Later), and the turn waits for that answer.
    /// Of a session that is recorded nothing is lost: opened again, it carries the turn on, and the approver is
    /// asked again.
    #[error("the turn is waiting for an answer to {}", count(questions))]
    Parked {
        /// Open questions; never empty.
        questions: Vec<Question>,
    },
}

impl TurnError {
    /// Returns the outcome until the failure; absent when the turn did not run to an outcome.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Failed { outcome } => Some(outcome),
            Self::NoRuntime
            | Self::Panicked { .. }
            | Self::Resume(_)
            | Self::Imported
            | Self::Parked { .. } => None,
        }
    }

    /// Returns the error that ended the turn, with its class, such as a wrong key or an unknown model.
    #[must_use]
    pub fn model_error(&self) -> Option<&ModelError> {
        self.outcome()?.error.as_ref()
    }
}

impl fmt::Debug for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { outcome } => f
                .debug_struct("Failed")
                .field("error", &outcome.error)
                .field("steps", &outcome.steps)
                .field("tool_calls", &outcome.tool_calls)
                .finish_non_exhaustive(),
            Self::NoRuntime => f.write_str("NoRuntime"),
            Self::Imported => f.write_str("Imported"),
            Self::Resume(error) => f.debug_tuple("Resume").field(error).finish(),
            Self::Parked { questions } => f
                .debug_struct("Parked")
                .field("questions", &questions.len())
                .finish_non_exhaustive(),
            Self::Panicked { message } => f
                .debug_struct("Panicked")
                .field("message", message)
                .finish(),
        }
    }
}

impl From<JoinError> for TurnError {
    fn from(error: JoinError) -> Self {
        let Ok(panic) = error.try_into_panic() else {
            return Self::NoRuntime;
        };
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked {
            message: text.unwrap_or("it panicked").to_owned(),
        }
    }
}

fn count(questions: &[Question]) -> String {
    match questions.len() {
        1 => "a question".to_owned(),
        count => format!("{count} questions"),
    }
}

fn cause(outcome: &Outcome) -> &str {
    let error = outcome.error.as_ref();
    error.map_or("no reason was given", |error| error.message.as_str())
}
