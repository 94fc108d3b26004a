//! Why something cannot be set up, as a person is told.

use rondo_types::ErrorClass;
use std::fmt::{self, Display, Write as _};

/// The bound on causes that are told.
const CAUSES_MAX: usize = 16;

/// What failed before a turn could begin, why, and what to do about it.
#[derive(Debug)]
pub struct SetupError {
    /// What sort of failure it is; a host maps it to its own codes.
    pub kind: SetupErrorKind,
    /// What failed, with its causes.
    pub error: anyhow::Error,
    /// What the user can do.
    pub hint: Option<String>,
}

/// What sort of failure keeps a turn from beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// Something that fits no other kind.
    Other,
    /// What was asked for makes no sense.
    Usage,
    /// A key is missing or refused.
    Auth,
    /// Input, such as a directory, cannot be read.
    Input,
    /// Somebody has to allow it first.
    ApprovalNeeded,
    /// There is no such session, or nothing in it to carry on.
    NoSession,
    /// Another process works on the session.
    SessionInUse,
    /// The settings make no sense.
    Config,
    /// The journal cannot be read or written.
    Journal,
    /// Time ran out.
    Deadline,
}

/// What setting something up returns.
pub type Result<T, E = SetupError> = std::result::Result<T, E>;

impl SetupError {
    /// Builds an error with no cause.
    pub fn new(kind: SetupErrorKind, message: impl Display) -> Self {
        Self::caused(kind, anyhow::Error::msg(message.to_string()))
    }

    /// Builds an error from what caused it.
    pub fn caused(kind: SetupErrorKind, error: impl Into<anyhow::Error>) -> Self {
        Self {
            kind,
            error: error.into(),
            hint: None,
        }
    }

    /// Adds what the user can do.
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

    /// Returns what failed, then each cause on a line of its own.
    #[must_use]
    pub fn what(&self) -> String {
        self.causes("\n  caused by: ")
    }

    fn causes(&self, separator: &str) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).take(CAUSES_MAX) {
            let _ = write!(text, "{separator}{cause}");
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

impl Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_causes() {
        let cause = std::io::Error::other("disk on fire");
        let error = anyhow::Error::new(cause).context("failed to read `x`");
        let error = SetupError::caused(SetupErrorKind::Config, error).hint("put it out");
        assert_eq!(
            error.what(),
            "failed to read `x`\n  caused by: disk on fire"
        );
        assert_eq!(error.hint.as_deref(), Some("put it out"));
        assert_eq!(error.line(), "failed to read `x`: disk on fire");
    }
}
