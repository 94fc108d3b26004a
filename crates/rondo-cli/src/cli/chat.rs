//! Arguments of `rondo chat`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `rondo chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Message to send; the answer is printed, and that is all. Without one, lines are read and answered one by one
    pub(crate) message: Vec<String>,
    /// Address of the hub [default: `RONDO_HUB_URL`, or where your configuration has it listen]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name of the chat; each chat is a conversation of its own
    #[arg(long, value_name = "NAME", default_value = "terminal")]
    pub(crate) chat: String,
    /// File with the key [default: `RONDO_HUB_KEY` has the key itself; else the file of `rondo users add --save`]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Send the key to another machine without TLS, such as within a VPN
    #[arg(long)]
    pub(crate) allow_http: bool,
}
