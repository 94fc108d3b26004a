//! Reasons why a supervised process did not start.

use super::handed::SPEC_BYTES_MAX;
use std::io;
use std::path::PathBuf;

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing in this program can be started as supervisor.
    #[error(
        "this program has no supervisor: call `rondo_exec::supervisor::run_if_requested` at the top of its `main`, or name a supervisor program"
    )]
    NoSupervisor,
    /// The supervisor is not named by an absolute path.
    #[error("the supervisor `{path}` is not an absolute path", path = .0.display())]
    NotAbsolute(PathBuf),
    /// The supervisor cannot be started.
    #[error("failed to start the supervisor")]
    Spawn(#[source] io::Error),
    /// The supervisor ended without a word, or said what it must not.
    #[error("the supervisor did not answer")]
    Lost(#[source] io::Error),
    /// The supervisor could not start the command.
    #[error("{0}")]
    Refused(String),
    /// It was cancelled before the command was started.
    #[error("the command was not started")]
    Cancelled,
    /// The specification is too long.
    #[error("the command is longer than {max} bytes", max = SPEC_BYTES_MAX / 4)]
    TooLong,
}
