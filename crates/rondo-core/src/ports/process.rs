//! How the process that ran a turn ends, for the turn's record.

use rondo_types::CallId;
use serde::{Deserialize, Serialize};

/// How the process that ran a turn ends by it, and what that follows from beside the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// The exit code.
    pub exit_code: i32,
    /// Treats a degraded answer as a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict_complete: bool,
    /// The first calls that were denied because there was no user to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_approval: Vec<CallId>,
    /// Outside cause that stopped the turn, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
}

/// Outside cause that stops a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// Ctrl-C, or `SIGINT`.
    Interrupt,
    /// `SIGTERM`, or another signal that ends a program.
    Terminate,
    /// The reader of standard output is gone.
    PipeClosed,
}
