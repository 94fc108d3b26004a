//! The errors of a Python session.

use std::io;
use std::path::PathBuf;

/// Why a session could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The interpreter cannot be started.
    #[error("failed to start the Python interpreter `{program}`", program = .program.display())]
    Start {
        /// The interpreter.
        program: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The program that was started is not an interpreter that can be used.
    #[error("`{program}` did not start as a Python interpreter: {said}", program = .program.display())]
    NotReady {
        /// The program.
        program: PathBuf,
        /// Its standard error, or the way it ended.
        said: String,
    },
    /// The directory is gone, or cannot be entered. Nothing was run elsewhere.
    #[error("Python cannot work in `{directory}`", directory = .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The code is too long.
    #[error("the code is longer than {max} bytes")]
    TooLong {
        /// The bound.
        max: usize,
    },
    /// It was stopped before it began.
    #[error("the code was not run: {0}")]
    NotRun(Stop),
    /// The interpreter ended, and the variables with it. The next use starts a new one.
    #[error("{0}")]
    Lost(Box<Loss>),
    /// The helper inside the interpreter failed.
    #[error("the session failed: {0}")]
    Internal(String),
}

/// Addition to the message of every loss.
pub(crate) const TOLD: &str = "; its variables are lost, and the next use starts a new interpreter";

/// How an interpreter was lost, and what is left of what it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{how}{TOLD}")]
pub struct Loss {
    /// `the Python interpreter ended with exit code 3`.
    pub how: String,
    /// Why it was ended, if it did not end by itself.
    pub stopped: Option<Stop>,
    /// Standard output of the running call until then.
    pub stdout: String,
    /// And to standard error.
    pub stderr: String,
    /// Set if it was lost before, while nothing ran: then this call did not begin.
    pub is_earlier: bool,
}

/// Why code was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Its time was over.
    #[error("its time limit passed")]
    Deadline,
    /// It was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The caller waits for it no more.
    #[error("its result is no longer needed")]
    Unwanted,
}
