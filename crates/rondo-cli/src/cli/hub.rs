//! Arguments of `rondo serve`, `rondo onboard` and `rondo outbox`.

use clap::{Args, Subcommand};

/// Arguments of `rondo serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the configuration, and start nothing
    #[arg(long)]
    pub(crate) check: bool,
}

/// Arguments of `rondo onboard`.
#[derive(Debug, Args)]
pub(crate) struct OnboardArgs {
    /// Model to ask, as `provider/model`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Channel to set up, such as `telegram`
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// File that has the token of the channel's bot
    #[arg(long, value_name = "FILE", requires = "channel")]
    pub(crate) token_file: Option<std::path::PathBuf>,
    /// Owner of the hub: a name, and their id on the channel
    #[arg(long, value_name = "NAME=ID", requires = "channel")]
    pub(crate) owner: Option<String>,
    /// Do not wait for a first message
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Arguments of `rondo outbox`.
#[derive(Debug, Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    pub(crate) command: OutboxCommand,
}

/// Looks at what the hub has not sent.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
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
