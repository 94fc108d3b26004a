//! Grants: what an approval lets run from then on without asking.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Calls that an approval lets run from then on without asking.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grant {
    /// Which calls.
    pub scope: GrantScope,
    /// Set if the grant also holds while the conversation has text from outside, for calls that send data out or write
    /// outside the workspace: only if the user knew of such text when giving it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub despite_outside_text: bool,
}

/// Which calls a [`Grant`] allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum GrantScope {
    /// This very call: the same command or arguments, in the same directory, with the same variables and files.
    Call {
        /// The tool.
        tool: String,
        /// SHA-256 of all that, in hex.
        hash: String,
        /// Shortened description of the granted calls, for display.
        shown: String,
    },
    /// Commands that begin with these words.
    Commands {
        /// The tool that runs them.
        tool: String,
        /// The words; never empty.
        prefix: Vec<String>,
    },
    /// Every call of a tool.
    Tool {
        /// The tool.
        tool: String,
    },
    /// All commands in a folder, within the sandbox. The user's settings keep it, so it also holds in later sessions.
    Sandbox {
        /// The folder, absolute.
        folder: String,
    },
}

impl GrantScope {
    /// Returns whether the user's settings keep it, and not the session.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(self, Self::Sandbox { .. })
    }
}

impl Grant {
    /// The most grants of a session that count; the oldest ones give way.
    pub const COUNT_MAX: usize = 256;
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { tool, shown, .. } => write!(f, "{tool}, exactly: {shown}"),
            Self::Commands { tool, prefix } => write!(f, "{tool}({} *)", prefix.join(" ")),
            Self::Tool { tool } => f.write_str(tool),
            Self::Sandbox { folder } => {
                write!(f, "run commands in {folder} in the sandbox from now on")
            }
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scope.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_written_as_they_are_recorded() {
        let grant = Grant {
            scope: GrantScope::Commands {
                tool: "exec".to_owned(),
                prefix: vec!["git".to_owned(), "add".to_owned()],
            },
            despite_outside_text: false,
        };
        let text = r#"{"scope":{"scope":"commands","tool":"exec","prefix":["git","add"]}}"#;
        assert_eq!(serde_json::to_string(&grant).unwrap(), text);
        assert_eq!(serde_json::from_str::<Grant>(text).unwrap(), grant);
        assert_eq!(grant.to_string(), "exec(git add *)");
    }
}
