//! Why a line was not run.

use super::protocol::LINE_BYTES_MAX;
use rondo_launch::StartError;
use std::io;

/// Why a line was not run, or how it was lost.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The shell cannot be started.
    #[error("the shell cannot be started")]
    Start(#[from] StartError),
    /// The shell ended before its first prompt; what it wrote.
    #[error("the shell ended before its first prompt")]
    EndedEarly(String),
    /// The start files took too long; what they wrote.
    #[error("the shell did not reach its first prompt")]
    NotReady(String),
    /// Another line runs.
    #[error("the shell is running another command")]
    Busy,
    /// The line is too long.
    #[error("the line is longer than {max} bytes", max = LINE_BYTES_MAX)]
    TooLong,
    /// No shell can run a line with a NUL character.
    #[error("the line contains a NUL character")]
    Nul,
    /// The supervisor died, and the shell with it.
    #[error("the shell was lost")]
    Lost(#[source] io::Error),
}
