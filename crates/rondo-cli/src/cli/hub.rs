//! Arguments of `rondo serve` and `rondo outbox`.

use clap::{Args, Subcommand};

/// Arguments of `rondo serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the configuration, and start nothing
    #[arg(long)]
    pub(crate) check: bool,
}

/// Arguments of `rondo outbox`.
#[derive(Debug, Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    pub(crate) command: OutboxCommand,
}

/// Looks at what the hub has not sent.
#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// List what waits to be sent and what was given up
    List,
    /// Send a message now that waits or was given up
    Retry {
        /// Number from `rondo outbox list`
        id: u64,
    },
    /// Drop a message that waits or was given up
    Drop {
        /// Number from `rondo outbox list`
        id: u64,
    },
}
