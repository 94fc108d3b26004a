//! Arguments of `rondo policy`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
    /// Have commands in a folder run in the sandbox without a question, or asked about again
    Sandbox {
        /// Folder [default: this directory]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Have commands in the folder asked about again
        #[arg(long)]
        revoke: bool,
        /// List the folders
        #[arg(long, conflicts_with_all = ["revoke", "directory"])]
        list: bool,
    },
}
