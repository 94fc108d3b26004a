//! Arguments of `rondo repl`.

use super::TurnArgs;
use clap::{Args, ValueEnum};

/// Arguments of `rondo repl`. They apply to every turn.
#[derive(Debug, Args, Default)]
pub(crate) struct ReplArgs {
    /// First line, as if typed at the prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Whether the command was not typed; the prompt then shows a short introduction.
    #[arg(skip)]
    pub(crate) implied: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Run the Python cells of the continued session again
    #[arg(long)]
    pub(crate) restore_python: bool,
    /// Mode to start in
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,
}

/// How a typed line is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// A question to the agent.
    Agent,
    /// A command.
    Shell,
    /// Python.
    Python,
}
