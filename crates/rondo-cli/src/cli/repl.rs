//! Arguments of `rondo repl`.

use super::TurnArgs;
use clap::{Args, ValueEnum};

/// Open the line prompt, for questions, shell commands and Python
///
/// The options apply to every turn. `/help` at the prompt lists its commands and keys.
#[derive(Debug, Args, Default)]
pub(crate) struct ReplArgs {
    /// First line, as if typed at the prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Set if the command was not typed; the prompt then shows a short introduction.
    #[arg(skip)]
    pub(crate) implied: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Run the Python cells of the continued session again
    #[arg(long)]
    pub(crate) restore_python: bool,
    /// Mode of the prompt at the start
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,
}

/// How a typed line is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// Lines are questions to the agent
    Agent,
    /// Lines are shell commands
    Shell,
    /// Lines are Python code
    Python,
}
