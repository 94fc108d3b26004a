//! Arguments of `rondo config` and `rondo trust`.

use super::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use std::path::PathBuf;

/// List, get and set settings
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// Actions on settings.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConfigCommand {
    /// List every setting with its value, source, default and description
    List {
        /// Print as JSON, with environment variables and flags
        #[arg(long)]
        json: bool,
    },
    /// Print the effective value of a setting
    Get {
        /// Name of the setting
        #[arg(add = ArgValueCandidates::new(completion::settings))]
        name: String,
    },
    /// Set a value in your configuration file
    Set {
        /// Name of the setting
        #[arg(add = ArgValueCandidates::new(completion::settings))]
        name: String,
        /// Value, written as for the environment variable; items of a list are separated by commas
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value from your configuration file
    Unset {
        /// Name of the setting
        #[arg(add = ArgValueCandidates::new(completion::settings))]
        name: String,
    },
    /// Edit your configuration file in `$VISUAL` or `$EDITOR`, then check it
    Edit,
    /// Print the path of your configuration file
    Path,
}

/// Trust a folder, so that its own configuration applies in full
///
/// The configuration of a folder that you do not trust can only restrict Rondo, and its MCP servers are not started.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Folder to trust [default: the project of this directory]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Stop trusting the folder
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Approve all MCP servers of the folder without asking about each one
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) servers: bool,
    /// List the trusted folders
    #[arg(long, conflicts_with_all = ["revoke", "directory", "servers"])]
    pub(crate) list: bool,
}
