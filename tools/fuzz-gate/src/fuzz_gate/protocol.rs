//! Between the fuzzer and the runner: one JSON value a line.

use serde::{Deserialize, Serialize};

/// A command to be judged, and run where it is judged read-only.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) command: String,
    /// The setup after which it runs whatever it is judged to be; `None` where the judgement counts.
    pub(super) ungated_after: Option<String>,
}

impl Request {
    /// Asks for a command to run if it is judged read-only.
    pub(super) fn judged(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            ungated_after: None,
        }
    }
}

/// What the runner says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// It takes requests.
    Ready,
    /// The command is asked about, so that it did not run.
    Asked,
    /// The command is judged read-only and ran.
    Ran {
        /// What it did that something read-only does not.
        effects: Vec<String>,
        /// Whether it was ended because it took too long.
        is_slow: bool,
    },
}
