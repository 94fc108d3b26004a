//! Records of a script and of its calls.

use serde::{Deserialize, Serialize};

/// A script that runs in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptRun {
    /// Its file, as it was named.
    pub name: String,
    /// Text of the script.
    pub source: String,
    /// Arguments from the command line.
    pub arguments: Vec<String>,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// A call of a script to something outside of it: a command, a conversation, a file, the time. The branch and the place
/// name it; the rest tells whether the script still takes the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCall {
    /// Which of the functions that run at once made it; empty for the script itself.
    pub branch: String,
    /// Its place among the calls of that branch, from 1.
    pub place: u32,
    /// The function.
    pub function: String,
    /// The line of the script, from 1; 0 if it is not known.
    pub line: u32,
    /// The beginning of the SHA-256 of its arguments, in hex.
    pub hash: String,
}
