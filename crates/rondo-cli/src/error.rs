//! Errors as the user sees them.

use crate::exit::Exit;
use rondo_core::session_store::StoreError;
use rondo_runtime::{SetupError, sessions};
use rondo_types::ErrorClass;
use std::fmt::{Display, Write as _};
use std::io::ErrorKind;

/// The bound on printed causes.
const CAUSES_MAX: usize = 16;

/// Error of a command, with its cause and a hint.
#[derive(Debug)]
pub(crate) struct CliError {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// Failure, with its causes.
    pub(crate) error: anyhow::Error,
    /// Suggestion for the user.
    pub(crate) hint: Option<String>,
}

/// Result of a command.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

impl CliError {
    /// Builds an error with no cause.
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self::caused(exit, anyhow::Error::msg(message.to_string()))
    }

    /// Builds an error from what caused it.
    pub(crate) fn caused(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            hint: None,
        }
    }

    /// Adds a hint for the user.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the error as one line: what failed and every cause.
    pub(crate) fn line(&self) -> String {
        let mut line = self.error.to_string();
        for cause in self.error.chain().skip(1).take(CAUSES_MAX) {
            let _ = write!(line, ": {cause}");
        }
        line
    }

    /// Returns the message, then each cause on a line of its own.
    pub(crate) fn what(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).take(CAUSES_MAX) {
            let _ = write!(text, "\n  caused by: {cause}");
        }
        text
    }

    /// Returns the class that a `result` event names.
    pub(crate) fn class(&self) -> ErrorClass {
        match self.exit {
            Exit::Auth => ErrorClass::Auth,
            Exit::Usage | Exit::Input | Exit::Config => ErrorClass::BadRequest,
            Exit::Deadline => ErrorClass::Deadline,
            Exit::Interrupted | Exit::Terminated => ErrorClass::Cancelled,
            _ => ErrorClass::Internal,
        }
    }
}

impl From<SetupError> for CliError {
    fn from(mut error: SetupError) -> Self {
        Self {
            exit: Exit::of_setup(error.kind),
            hint: error.hint.take(),
            error: error.into(),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match &error {
            // The reader of an export is gone.
            StoreError::Io { source, .. } if source.kind() == ErrorKind::BrokenPipe => {
                Self::caused(Exit::PipeClosed, error)
            }
            _ => sessions::failed(error).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_causes() {
        let cause = std::io::Error::other("disk on fire");
        let error = anyhow::Error::new(cause).context("failed to read `x`");
        let error = CliError::caused(Exit::Config, error).hint("put it out");
        assert_eq!(
            error.what(),
            "failed to read `x`\n  caused by: disk on fire"
        );
        assert_eq!(error.hint.as_deref(), Some("put it out"));
        assert_eq!(error.line(), "failed to read `x`: disk on fire");
    }
}
