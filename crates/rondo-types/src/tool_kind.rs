//! Kinds of tool calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Kind of a tool's calls, in the words of the Agent Client Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files or their content.
    Edit,
    /// Removes files or data.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches for information.
    Search,
    /// Runs commands or code. If the arguments have a text `command`, a command line of this machine's shell, or a list
    /// `argv`, a program and its arguments, the gate judges what that command would do.
    Execute,
    /// Reasons or plans, and has no effect.
    Think,
    /// Gets data from outside, such as a web page.
    Fetch,
    /// Anything else; also what a later version knows and this one does not.
    #[default]
    #[serde(other)]
    Other,
}

impl ToolKind {
    /// Returns the word for it in records and protocols.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }

    /// Returns whether nothing is said of it.
    #[must_use]
    pub fn is_other(&self) -> bool {
        *self == Self::Other
    }

    /// Returns whether its calls change files or run code on this machine: what no call does without being judged.
    #[must_use]
    pub fn changes_machine(self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move | Self::Execute)
    }

    /// Returns the command line that a call of this kind runs: the text `command` of its arguments, or its list `argv`,
    /// quoted so that a shell would read the same words.
    #[must_use]
    pub fn command_line(self, arguments: &Value) -> Option<Cow<'_, str>> {
        if self != Self::Execute {
            return None;
        }
        if let Some(command) = arguments.get("command") {
            return command.as_str().map(Cow::Borrowed);
        }
        let words = arguments.get("argv")?.as_array()?.iter();
        let words: Vec<&str> = words.map(Value::as_str).collect::<Option<_>>()?;
        // A NUL character ends a word for the system, so that no quotes could hold it.
        shlex::try_join(words).ok().map(Cow::Owned)
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_or_a_list_of_words_of_a_tool_that_executes_is_a_command_line() {
        let line = |arguments: Value| {
            let line = ToolKind::Execute.command_line(&arguments);
            line.map(Cow::into_owned)
        };
        let command = json!({"command": "ls | wc"});
        assert_eq!(line(command.clone()).unwrap(), "ls | wc");
        assert_eq!(ToolKind::Other.command_line(&command), None);
        let words = json!({"argv": ["ls", "a b", "it's", "$HOME", "x;rm", "A=b", ""]});
        assert_eq!(
            line(words).unwrap(),
            "ls 'a b' \"it's\" '$HOME' 'x;rm' 'A=b' ''"
        );
        for none in [
            json!({"command": ["ls"]}),
            json!({"command": 1, "argv": ["ls"]}),
            json!({"argv": "ls"}),
            json!({"argv": ["ls", 1]}),
            json!({"argv": ["ls\0"]}),
            json!({}),
        ] {
            assert_eq!(line(none.clone()), None, "{none}");
        }
    }
}
