//! A cell that the user runs, and its end.

use crate::error::Stop;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellEnd {
    /// The `repr` of the value of its last expression, at most 4,096 characters of it; `None` if
    /// there is no such expression, or its value is `None`.
    pub value_repr: Option<String>,
    /// Set if something of it is left out.
    pub truncated: bool,
    /// Standard output since the end of the last cell, head and tail.
    pub stdout: String,
    /// And to standard error; at a terminal, both are in `stdout`, with what the terminal echoed.
    pub stderr: String,
    /// Exception that it raised. `SystemExit` is one of these: it does not end the session.
    pub exception: Option<Exception>,
    /// Set if the cell itself called `exit()`, `quit()` or `sys.exit()`, and not a function it used.
    pub leaves: bool,
    /// Input of its terminal that was not read, at most about 20,000 bytes.
    pub unread_input: Vec<u8>,
    /// Set if it read something that was typed at its terminal.
    pub has_read_input: bool,
    /// Why it was interrupted, if it was.
    pub stopped: Option<Stop>,
    /// Set if the interpreter is a new one because the last one was lost.
    pub is_restarted: bool,
}

/// A Python exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// `ZeroDivisionError`.
    pub exc_type: String,
    /// `division by zero`; at most about 4,096 characters.
    pub message: String,
    /// `Traceback ...`; at most about 16,384 characters.
    pub traceback: String,
}

impl Exception {
    /// Returns whether it is what an interrupt raises, `KeyboardInterrupt`.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        self.exc_type == "KeyboardInterrupt"
    }
}

/// Completeness of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    /// It can be run.
    Complete,
    /// It needs more lines.
    Incomplete,
    /// No further line makes it Python; running it tells why.
    Invalid,
}

/// How long something may take. Nothing is set by default.
#[derive(Debug, Clone, Default)]
pub struct CellLimits {
    /// Its end, waiting for its turn included.
    pub deadline: Option<Instant>,
    /// How long it may run once it is its turn.
    pub timeout: Option<Duration>,
    /// Ends it when it fires.
    pub cancel: CancellationToken,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes the output of a cell as it comes, whole, for people to watch. Must not block.
#[derive(Clone)]
pub struct LiveOutput(Arc<dyn Fn(OutputStream, String) + Send + Sync>);

impl LiveOutput {
    /// Wraps a function that takes each piece.
    pub fn new(take: impl Fn(OutputStream, String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Returns one that discards everything.
    #[must_use]
    pub fn discard() -> Self {
        Self::new(|_, _| ())
    }

    pub(crate) fn push(&self, stream: OutputStream, text: String) {
        (self.0)(stream, text);
    }
}

impl fmt::Debug for LiveOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveOutput")
    }
}
