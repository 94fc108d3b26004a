//! Arguments of `rondo users`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `rondo users`.
#[derive(Debug, Args)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

/// What is done with users.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum UsersCommand {
    /// Add a user, and print a key of the hub's API for them, which is shown this once
    Add {
        /// Name of the user
        name: String,
        /// `owner` may do everything; `member` may use the agent's tools, and approves nothing; `guest` may talk
        #[arg(long, default_value = "member")]
        role: RoleName,
        /// Who they are on another channel, such as `telegram:4711` (repeatable)
        #[arg(long, value_name = "CHANNEL:ID")]
        id: Vec<String>,
        /// Write the key to a file that only you can read, in place of printing it; without a path, to the one that
        /// `rondo chat` reads
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        save: Option<Option<PathBuf>>,
    },
    /// Print another key for a user
    Key {
        /// Name of the user
        name: String,
        /// Write the key to a file, as with `add`
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        save: Option<Option<PathBuf>>,
    },
    /// List the users
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke all keys of a user and remove them; what they listen to ends
    Revoke {
        /// Name of the user
        name: String,
    },
}

/// A role by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RoleName {
    /// May do everything
    Owner,
    /// May use the agent's tools
    Member,
    /// May talk
    Guest,
}
