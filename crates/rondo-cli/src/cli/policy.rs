//! Arguments of `rondo policy`.

use clap::{Args, Subcommand};

/// Arguments of `rondo policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// Questions about the rules.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PolicyCommand {
    /// Print what becomes of a command, and of each simple command in it; nothing runs
    Check {
        /// The command, in quotes
        #[arg(allow_hyphen_values = true)]
        line: String,
        /// Profile whose rules count too [default: the one of the settings]
        #[arg(long)]
        profile: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the rules that are in force, and where they come from
    List {
        /// Profile whose rules count too [default: the one of the settings]
        #[arg(long)]
        profile: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}
