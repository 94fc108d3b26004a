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
    /// What stands on the screen, the latest at the end.
    pub output: Option<String>,
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
        ];
        let known = facts.into_iter().filter_map(|(name, value)| {
            let value = value.as_ref()?;
            Some(format!("- {name}: {value}"))
        });
        let known: Vec<String> = known.collect();
        (!known.is_empty()).then(|| format!("# CONTEXT\n{}", known.join("\n")))
    }

    /// Returns the user's message. The screen goes with it rather than with the instructions, since
    /// anything may stand there.
    pub(super) fn message(&self, prompt: &str) -> Message {
        match &self.output {
            Some(output) if !output.trim().is_empty() => Message::user(format!(
                "On my terminal stands:\n<terminal>\n{}\n</terminal>\n\n{prompt}",
                tail(output.trim_end())
            )),
            _ => Message::user(prompt),
        }
    }
}

fn tail(output: &str) -> &str {
    let start = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_BYTES_MAX));
    output.get(start..).unwrap_or_default()
}
