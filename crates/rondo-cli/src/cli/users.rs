//! Arguments of `rondo users`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Add, list and revoke users of the gateway and their API keys
#[derive(Debug, Args)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

/// Actions on users.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum UsersCommand {
    /// Add a user and print an API key, which is shown only once
    Add {
        /// Name of the user
        name: String,
        /// Role of the user
        #[arg(long, default_value = "member")]
        role: RoleName,
        /// The user's id on another channel, such as `telegram:4711` (repeatable)
        #[arg(long, value_name = "CHANNEL:ID")]
        id: Vec<String>,
        /// Write the key to a file that only you can read, in place of printing it [default: the file that `rondo chat`
        /// reads]
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        save: Option<Option<PathBuf>>,
    },
    /// Print another API key for a user
    Key {
        /// Name of the user
        name: String,
        /// Write the key to a file that only you can read, in place of printing it [default: the file that `rondo chat`
        /// reads]
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        save: Option<Option<PathBuf>>,
    },
    /// List the users
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Remove a user, revoke all of the user's keys, and close the user's connections
    Revoke {
        /// Name of the user
        name: String,
    },
}

/// A role by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RoleName {
    /// May do everything, including approving calls
    Owner,
    /// May use the agent's tools, but not approve calls
    Member,
    /// May only talk
    Guest,
}
