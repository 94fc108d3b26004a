//! Arguments of `rondo serve`, `rondo onboard` and `rondo outbox`.

use crate::commands::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

/// Run the gateway (chat channels and an HTTP API)
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the configuration and exit
    #[arg(long)]
    pub(crate) check: bool,
}

/// Set up the gateway step by step
///
/// Asks for a model, a channel and the owner, writes them to your configuration, and waits until the first message is
/// answered. Values given as options are not asked for.
#[derive(Debug, Args)]
pub(crate) struct OnboardArgs {
    /// Model to ask, as `provider/model`
    #[arg(long, value_name = "MODEL", add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    /// Channel to set up, such as `telegram`
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// File with the token of the channel's bot
    #[arg(long, value_name = "FILE", requires = "channel")]
    pub(crate) token_file: Option<std::path::PathBuf>,
    /// Owner of the gateway: a name and the owner's id on the channel
    #[arg(long, value_name = "NAME=ID", requires = "channel")]
    pub(crate) owner: Option<String>,
    /// Do not wait for a first message
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Inspect and retry undelivered messages
#[derive(Debug, Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    pub(crate) command: OutboxCommand,
}

/// Actions on undelivered messages.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum OutboxCommand {
    /// List messages that are waiting or that Rondo gave up on
    List,
    /// Send an undelivered message now
    Retry {
        /// Number from `rondo outbox list`
        id: u64,
    },
    /// Delete an undelivered message
    Drop {
        /// Number from `rondo outbox list`
        id: u64,
    },
}
