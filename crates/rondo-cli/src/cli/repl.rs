//! Arguments of `rondo repl`.

use super::TurnArgs;
use clap::{Args, ValueEnum};

/// Arguments of `rondo repl`. They hold for every turn of it.
#[derive(Debug, Args, Default)]
pub(crate) struct ReplArgs {
    /// What to begin with, as if it had been typed at the prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Whether no command was typed, so that the user may not know where they are.
    #[arg(skip)]
    pub(crate) implied: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Run the Python cells of the session again that is gone on with
    #[arg(long)]
    pub(crate) restore_python: bool,
    /// The mode to begin in
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,
}

/// What a line that is typed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// A question to the agent.
    Agent,
    /// A command.
    Shell,
    /// Python.
    Python,
}
