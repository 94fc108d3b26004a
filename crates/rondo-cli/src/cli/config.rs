//! Arguments of `rondo config` and `rondo trust`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `rondo config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// Actions on settings.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConfigCommand {
    /// List every setting with its effective value and its source
    List {
        /// Print as JSON, including variables, flags and descriptions
        #[arg(long)]
        json: bool,
    },
    /// Print the effective value of a setting
    Get {
        /// Name of the setting
        name: String,
    },
    /// Set a value in your configuration file
    Set {
        /// Name of the setting
        name: String,
        /// Value, written as for the environment variable
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value from your configuration file
    Unset {
        /// Name of the setting
        name: String,
    },
    /// Edit your configuration file in `$VISUAL` or `$EDITOR`, then check it
    Edit,
    /// Print the path of your configuration file
    Path,
}

/// Arguments of `rondo trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Folder to trust [default: the project of this directory]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Stop trusting the folder
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Agree to all servers that the folder brings, without asking about each
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) servers: bool,
    /// List the trusted folders
    #[arg(long, conflicts_with_all = ["revoke", "directory", "servers"])]
    pub(crate) list: bool,
}
