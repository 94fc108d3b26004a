//! Between the fuzzer and the runner: one JSON value a line.

use serde::{Deserialize, Serialize};

/// A command to be judged, and run if it is judged read-only.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) command: String,
    /// The setup after which it runs whatever it is judged to be; `None` if the judgment counts.
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

/// Reply of the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// It takes requests.
    Ready,
    /// The command is asked about, so that it did not run.
    Asked,
    /// The command is judged read-only and ran.
    Ran {
        /// Effects that a read-only command does not have.
        effects: Vec<String>,
        /// Set if it was ended because it took too long.
        is_slow: bool,
    },
}
