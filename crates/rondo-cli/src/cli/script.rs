//! Arguments of `rondo run`.

use super::{AskArgs, TurnArgs};
use clap::Args;
use rondo_runtime::Layer;
use rondo_runtime::table::help;

/// Arguments of `rondo run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Go on with a script that was cut off: its latest session, or the one of this id
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    pub(crate) resume: Option<String>,
    /// Look for mistakes without running anything
    #[arg(long, conflicts_with_all = ["resume", "new"])]
    pub(crate) check: bool,
    /// Write a script to start from, with what an editor needs to know beside it
    #[arg(long, conflicts_with = "resume")]
    pub(crate) new: bool,
    #[arg(help = help("quiet"), short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// Lua script to run, and what it is given; options of `rondo run` come before it
    #[arg(value_name = "SCRIPT", required = true, trailing_var_arg = true)]
    pub(crate) script: Vec<String>,
}

impl RunArgs {
    /// Returns what the flags set, and what they were of.
    pub(crate) fn into_layer(self) -> Layer {
        let asked = AskArgs {
            turn: self.turn,
            quiet: self.quiet,
            ..AskArgs::default()
        };
        asked.layer()
    }
}
