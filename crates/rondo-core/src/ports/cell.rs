//! Records of code that a person runs in the Python session they share with the agent.
//! The agent's own code is a tool call, and recorded as one.

use serde::{Deserialize, Serialize};

/// Why the recorded code of a cell is not the code that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeChange {
    /// It was longer than a record holds, and its end was left out.
    Cut,
    /// A key was in it, and was replaced.
    Redacted,
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum CellEnding {
    /// It ran to its end.
    Returned {
        /// The `repr` of the value of its last expression; `None` if it has no value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value_repr: Option<String>,
    },
    /// It raised something.
    Raised {
        /// `ZeroDivisionError`.
        exc_type: String,
        /// `division by zero`.
        message: String,
    },
    /// It was interrupted, and the variables stayed.
    Interrupted,
    /// The interpreter ended with it, and the variables with that.
    Lost {
        /// Message of the failure.
        message: String,
    },
    /// It did not run at all.
    NotRun {
        /// Message of the failure.
        message: String,
    },
}
