//! Arguments of `rondo chat`.

use clap::Args;
use std::path::PathBuf;

/// Talk to a running gateway
///
/// With a message, `rondo chat` prints the answer and exits. Without one, it reads messages line by line.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Message to send
    pub(crate) message: Vec<String>,
    /// Address of the gateway [default: `RONDO_HUB_URL`, or the address in your configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name of the chat; each chat is a separate conversation
    #[arg(long, value_name = "NAME", default_value = "terminal")]
    pub(crate) chat: String,
    /// File with the API key [default: the key in `RONDO_HUB_KEY`, or the file that `rondo users add --save` writes]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Allow sending the key to another machine without TLS, for example within a VPN
    #[arg(long)]
    pub(crate) allow_http: bool,
}
