//! Why a call of a file tool failed.

use rondo_types::{ToolErrorCode, ToolOutcome};
use std::io;

/// Why a file tool has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The arguments make no sense together or to the library that reads them.
    #[error("{0}")]
    InvalidArgs(String),
    /// The file system, or what is in it, says no.
    #[error("{0}")]
    Failed(String),
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Failure {
    /// Describes a failed operation on a path; a path that leads outside says so.
    pub(crate) fn io(doing: &str, shown: &str, err: &io::Error) -> Self {
        if is_escape(err) {
            return Self::Failed(format!("`{shown}` leads outside the allowed directories"));
        }
        match err.kind() {
            io::ErrorKind::NotFound => Self::Failed(format!("`{shown}` does not exist")),
            _ => Self::Failed(format!("failed to {doing} `{shown}`: {err}")),
        }
    }

    pub(crate) fn into_outcome(self) -> ToolOutcome {
        let code = match &self {
            Self::InvalidArgs(_) => ToolErrorCode::InvalidArgs,
            Self::Failed(_) => ToolErrorCode::Failed,
            Self::Cancelled => ToolErrorCode::Cancelled,
        };
        ToolOutcome::error(code, self.to_string())
    }
}

/// The kernel's own refusals carry a number, those of the confinement do not.
fn is_escape(err: &io::Error) -> bool {
    err.kind() == io::ErrorKind::PermissionDenied && err.raw_os_error().is_none()
}
