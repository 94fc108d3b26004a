//! Arguments of `rondo policy`.

use super::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use std::path::PathBuf;

/// Show the approval rules and check a command against them
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// Questions about the rules.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PolicyCommand {
    /// Print whether a command would be allowed, asked about or denied, without running it
    Check {
        /// Command, in quotes
        #[arg(allow_hyphen_values = true)]
        line: String,
        /// Profile whose rules apply too [default: the profile in your settings]
        #[arg(long, add = ArgValueCandidates::new(completion::profiles))]
        profile: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the rules that apply here and the source of each
    List {
        /// Profile whose rules apply too [default: the profile in your settings]
        #[arg(long, add = ArgValueCandidates::new(completion::profiles))]
        profile: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run commands in a folder in the sandbox without asking
    Sandbox {
        /// Folder [default: this directory]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Ask about commands in the folder again
        #[arg(long)]
        revoke: bool,
        /// List the folders
        #[arg(long, conflicts_with_all = ["revoke", "directory"])]
        list: bool,
    },
}
