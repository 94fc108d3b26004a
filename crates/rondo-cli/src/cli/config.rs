//! Arguments of `rondo config` and `rondo trust`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `rondo config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting, its value in force and who set it
    List {
        /// As JSON, with variables, flags and what each setting does
        #[arg(long)]
        json: bool,
    },
    /// Print the value in force
    Get {
        /// The setting
        name: String,
    },
    /// Set a value in your own configuration
    Set {
        /// The setting
        name: String,
        /// The value, as its variable would have it
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take a value out of your own configuration
    Unset {
        /// The setting
        name: String,
    },
    /// Edit your own configuration in `$VISUAL` or `$EDITOR`, and check it
    Edit,
    /// Print where your own configuration is
    Path,
}

/// Arguments of `rondo trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The folder; this directory's project if none is named
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Take the trust back
    #[arg(long)]
    pub(crate) revoke: bool,
    /// List the folders that are trusted
    #[arg(long, conflicts_with_all = ["revoke", "directory"])]
    pub(crate) list: bool,
}
