//! Arguments of `rondo serve`, `rondo onboard`, `rondo outbox` and `rondo cron`.

use super::completion;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

/// Run the gateway (chat channels and an HTTP API)
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the configuration and exit
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the log in this format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// How the lines of a log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
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

/// Show the scheduled jobs of chats
#[derive(Debug, Args)]
pub(crate) struct CronArgs {
    #[command(subcommand)]
    pub(crate) command: CronCommand,
}

/// Actions on scheduled jobs.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CronCommand {
    /// List the jobs of all chats
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}
