//! Arguments of `rondo mcp`.

use clap::{Args, Subcommand};

/// Arguments of `rondo mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// What is done with servers.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum McpCommand {
    /// Add a server to your configuration file, or replace it
    Add(Box<McpServerArgs>),
    /// List the servers of this directory, and whether each may be started; nothing is started
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign in to a server at an address, in a browser
    Login {
        /// Name of the server
        name: String,
    },
    /// Forget what a server has granted
    Logout {
        /// Name of the server
        name: String,
    },
    /// Remove a server from your configuration file
    Remove {
        /// Name of the server
        name: String,
    },
    /// Start servers and show what they offer; asks about tools that have changed
    Test {
        /// Names of servers [default: all of this directory]
        names: Vec<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Accept tools that have changed without asking
        #[arg(long)]
        accept: bool,
    },
}

/// A server to add: a program, or an address.
#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Name of the server
    pub(crate) name: String,
    /// Address of a server that is reached over HTTP
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// Header of each request, as `Name: value`; `${VAR}` in it is filled in when it is used (repeatable)
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Variable for the program, as `NAME=value`; `${VAR}` in it is filled in when it is used (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Seconds from its start to its list of tools
    #[arg(long, value_name = "SECONDS")]
    pub(crate) startup_timeout: Option<f64>,
    /// Seconds that a call may take without progress
    #[arg(long, value_name = "SECONDS")]
    pub(crate) call_timeout: Option<f64>,
    /// Offer its tools in every request, whatever their size
    #[arg(long)]
    pub(crate) always_load: bool,
    /// Program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
