//! Arguments of `rondo context`.

use super::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

/// Show what takes up the context window of a session
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    pub(crate) command: ContextCommand,
}

/// Views of the context.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ContextCommand {
    /// Show the size of each part of a session's requests
    Show {
        /// Session: an id, a prefix of an id, or `latest`
        #[arg(add = ArgValueCandidates::new(completion::sessions))]
        session: String,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}
