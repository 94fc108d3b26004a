//! Arguments of `rondo run`.

use super::{AskArgs, TurnArgs};
use clap::Args;
use rondo_runtime::Layer;
use rondo_runtime::table::help;

/// Run a Lua script that drives agents
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Resume the latest session of the script that was cut off, or the session with this id
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    pub(crate) resume: Option<String>,
    /// Check the script for mistakes without running it
    #[arg(long, conflicts_with_all = ["resume", "new"])]
    pub(crate) check: bool,
    /// Write a script to start from, with type definitions for editors beside it
    #[arg(long, conflicts_with = "resume")]
    pub(crate) new: bool,
    #[arg(help = help("quiet"), short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Lua script to run, followed by its own arguments; options of `rondo run` come before it
    #[arg(value_name = "SCRIPT", required = true, trailing_var_arg = true)]
    pub(crate) script: Vec<String>,
}

impl RunArgs {
    /// Returns the settings of the flags, with the flag that each is from.
    pub(crate) fn into_layer(self) -> Layer {
        let asked = AskArgs {
            turn: self.turn,
            quiet: self.quiet,
            ..AskArgs::default()
        };
        asked.layer()
    }
}
