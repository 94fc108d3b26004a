//! The state of the user's terminal, for the prompt.

use rondo_types::Message;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How much of the terminal's output the model is shown, in bytes; the end is kept.
pub const OUTPUT_BYTES_MAX: usize = 8 << 10;

/// What is known of the terminal that the user sits at. Whatever is absent is not mentioned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalContext {
    /// The current directory.
    pub cwd: Option<PathBuf>,
    /// The operating system.
    pub system: Option<String>,
    /// The shell.
    pub shell: Option<String>,
    /// The branch of the repository around the current directory.
    pub git_branch: Option<String>,
    /// What git is in the midst of there, such as a merge.
    pub git_state: Option<String>,
    /// The latest commands, the last one at the end.
    pub commands: Vec<String>,
    /// What stands on the screen, the latest at the end.
    pub output: Option<String>,
    /// What stands in the pane of tmux that was used before.
    pub tmux: Option<String>,
}

impl TerminalContext {
    /// Returns the facts as a block of the system prompt.
    pub(super) fn facts(&self) -> Option<String> {
        let directory = self.cwd.as_ref().map(|cwd| cwd.display().to_string());
        let facts = [
            ("Current directory", &directory),
            ("Operating system", &self.system),
            ("Shell", &self.shell),
            ("Git branch", &self.git_branch),
            ("Git state", &self.git_state),
        ];
        let known = facts.into_iter().filter_map(|(name, value)| {
            let value = value.as_ref()?;
            Some(format!("- {name}: {value}"))
        });
        let mut known: Vec<String> = known.collect();
        if !self.commands.is_empty() {
            let commands = self.commands.join("\n  $ ");
            known.push(format!("- Recent commands:\n  $ {commands}"));
        }
        (!known.is_empty()).then(|| format!("# CONTEXT\n{}", known.join("\n")))
    }

    /// Returns the user's message. The screen goes with it rather than with the instructions, since
    /// anything may stand there.
    pub(super) fn message(&self, prompt: &str) -> Message {
        Message::user(format!("{}{prompt}", self.screens()))
    }

    /// Returns all of it as text, to go along with a message that a person saw it with; empty where nothing is known.
    #[must_use]
    pub fn text(&self) -> String {
        let facts = self.facts().map(|it| format!("{it}\n\n"));
        let text = facts.unwrap_or_default() + &self.screens();
        text.trim_end().to_owned()
    }

    fn screens(&self) -> String {
        let screens = [
            ("On my terminal stands", "terminal", &self.output),
            ("In the other pane of tmux stands", "tmux", &self.tmux),
        ];
        let shown = screens.into_iter().filter_map(|(says, tag, output)| {
            let output = output.as_deref()?.trim_end();
            let tail = tail(output);
            (!output.is_empty()).then(|| format!("{says}:\n<{tag}>\n{tail}\n</{tag}>\n\n"))
        });
        shown.collect()
    }
}

fn tail(output: &str) -> &str {
    let start = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_BYTES_MAX));
    output.get(start..).unwrap_or_default()
}
