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
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program that was started is no interpreter that can be used.
    #[error("`{program}` did not start as a Python interpreter: {said}", program = .program.display())]
    NotReady {
        /// The program.
        program: PathBuf,
        /// What it said on standard error, or what became of it.
        said: String,
    },
    /// The directory is gone, or cannot be entered. Nothing was run elsewhere.
    #[error("Python cannot work in `{directory}`", directory = .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
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

/// What every loss is told with.
pub(crate) const TOLD: &str = "; its variables are lost, and the next use starts a new interpreter";

/// How an interpreter was lost, and what is left of what it did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{how}{TOLD}")]
pub struct Loss {
    /// `the Python interpreter ended with exit code 3`.
    pub how: String,
    /// Why it was ended, where it did not end by itself.
    pub stopped: Option<Stop>,
    /// What the call under way had written to standard output.
    pub stdout: String,
    /// And to standard error.
    pub stderr: String,
    /// Whether it was lost before, while nothing ran: then the call under way did not begin.
    pub is_earlier: bool,
}

/// Why code was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Its time was over.
    #[error("its time was over")]
    Deadline,
    /// It was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The caller waits for it no more.
    #[error("nobody waits for it any more")]
    Unwanted,
}
