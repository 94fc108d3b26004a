//! Arguments of `rondo skills`.

use super::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

/// List and show skills: instructions for particular tasks
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
}

/// Views of skills.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SkillsCommand {
    /// List your skills and those of this folder, and the reasons why others are unusable
    List,
    /// Print the text that the model reads when it uses a skill
    Show {
        /// Name from `rondo skills list`
        #[arg(add = ArgValueCandidates::new(completion::skills))]
        name: String,
    },
}
