//! Errors before a turn starts, worded for the user.

use rondo_types::ErrorClass;
use std::error::Error;
use std::fmt::{Display, Write as _};

/// The bound on causes that are kept.
const CAUSES_MAX: usize = 16;

/// An error that prevents a turn: what failed, why, and what the user can do.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    /// The kind of failure; a host maps it to its exit or status codes.
    pub kind: SetupErrorKind,
    message: String,
    #[source]
    cause: Option<Box<CauseError>>,
    /// Suggestion for the user.
    pub hint: Option<String>,
}

/// The message of an underlying error, and its own cause.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
struct CauseError {
    message: String,
    #[source]
    cause: Option<Box<Self>>,
}

impl CauseError {
    /// Copies the messages of an error and of its sources.
    fn of(error: &(dyn Error + 'static), causes_max: usize) -> Box<Self> {
        let causes_max = causes_max.saturating_sub(1);
        let cause = error.source().filter(|_| causes_max > 0);
        Box::new(Self {
            message: error.to_string(),
            cause: cause.map(|cause| Self::of(cause, causes_max)),
        })
    }
}

/// The kind of a [`SetupError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// Any other failure.
    Other,
    /// The arguments are invalid.
    Usage,
    /// A key is missing or refused.
    Auth,
    /// Input, such as a directory, cannot be read.
    Input,
    /// The user has to approve something first.
    ApprovalNeeded,
    /// There is no such session, or nothing in it to resume.
    NoSession,
    /// Another process has the session.
    SessionInUse,
    /// The session's turn waits for an answer.
    Parked,
    /// The settings are invalid.
    Config,
    /// The journal cannot be read or written.
    Journal,
    /// The deadline passed.
    Deadline,
}

/// The result of an operation that fails with a [`SetupError`].
pub type Result<T, E = SetupError> = std::result::Result<T, E>;

impl SetupError {
    /// Builds an error with no cause.
    pub fn new(kind: SetupErrorKind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            cause: None,
            hint: None,
        }
    }

    /// Builds an error with the message and causes of another one.
    pub fn caused(kind: SetupErrorKind, error: impl Error + 'static) -> Self {
        let CauseError { message, cause } = *CauseError::of(&error, CAUSES_MAX);
        Self {
            kind,
            message,
            cause,
            hint: None,
        }
    }

    /// Builds an error from a message and its cause.
    pub fn because(
        kind: SetupErrorKind,
        what: impl Display,
        why: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let why: Box<dyn Error + Send + Sync> = why.into();
        Self {
            cause: Some(CauseError::of(&*why, CAUSES_MAX)),
            ..Self::new(kind, what)
        }
    }

    /// Adds context: `what` becomes the message, and the former message its cause.
    #[must_use]
    pub fn context(self, what: impl Display) -> Self {
        let Self { message, cause, .. } = self;
        Self {
            kind: self.kind,
            message: what.to_string(),
            cause: Some(Box::new(CauseError { message, cause })),
            hint: self.hint,
        }
    }

    /// Adds a hint for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the error as one line: what failed and every cause.
    #[must_use]
    pub fn line(&self) -> String {
        self.causes(": ")
    }

    /// Returns the message, then each cause on a line of its own.
    #[must_use]
    pub fn what(&self) -> String {
        self.causes("\n  caused by: ")
    }

    fn causes(&self, separator: &str) -> String {
        let mut text = self.message.clone();
        let mut cause = self.cause.as_deref();
        while let Some(known) = cause {
            let _ = write!(text, "{separator}{known}");
            cause = known.cause.as_deref();
        }
        text
    }

    /// Returns the class that a `result` event names.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self.kind {
            SetupErrorKind::Auth => ErrorClass::Auth,
            SetupErrorKind::Usage | SetupErrorKind::Input | SetupErrorKind::Config => {
                ErrorClass::BadRequest
            }
            SetupErrorKind::Deadline => ErrorClass::Deadline,
            _ => ErrorClass::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_causes() {
        let cause = std::io::Error::other("disk on fire");
        let error = SetupError::because(SetupErrorKind::Config, "failed to read `x`", cause);
        let error = error.hint("put it out");
        assert_eq!(
            error.what(),
            "failed to read `x`\n  caused by: disk on fire"
        );
        assert_eq!(error.hint.as_deref(), Some("put it out"));
        assert_eq!(error.line(), "failed to read `x`: disk on fire");
        let error = SetupError::caused(SetupErrorKind::Other, error).context("no journal");
        assert_eq!(error.line(), "no journal: failed to read `x`: disk on fire");
    }
}
