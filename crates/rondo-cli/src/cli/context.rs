//! Arguments of `rondo context`.

use clap::{Args, Subcommand};

/// Arguments of `rondo context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    pub(crate) command: ContextCommand,
}

/// Looks at what models read.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ContextCommand {
    /// Show how much of the context each part of a session's requests takes
    Show {
        /// Id of a session, a prefix of one, or `latest`
        session: String,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}
