//! Arguments of `rondo skills`.

use clap::{Args, Subcommand};

/// Arguments of `rondo skills`.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
}

/// Looks at skills.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SkillsCommand {
    /// List the skills of yours and of this folder, and why others cannot be used
    List,
    /// Print what the model reads when it uses a skill
    Show {
        /// Name from `rondo skills list`
        name: String,
    },
}
