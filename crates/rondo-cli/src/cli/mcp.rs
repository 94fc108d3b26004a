//! Arguments of `rondo mcp`.

use super::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;

/// Add, list, test and remove MCP servers, which offer more tools
///
/// A server of the Model Context Protocol is a program on this machine or an address.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// Actions on servers.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum McpCommand {
    /// Add a server to your configuration file, or replace one
    Add(Box<McpServerArgs>),
    /// List the servers of this directory and whether each may start
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign in to a remote server in your browser
    Login {
        /// Name of the server
        #[arg(add = ArgValueCandidates::new(completion::servers))]
        name: String,
    },
    /// Delete the stored sign-in of a server
    Logout {
        /// Name of the server
        #[arg(add = ArgValueCandidates::new(completion::servers))]
        name: String,
    },
    /// Remove a server from your configuration file
    Remove {
        /// Name of the server
        #[arg(add = ArgValueCandidates::new(completion::servers))]
        name: String,
    },
    /// Start servers and show their tools; asks about tools that have changed
    Test {
        /// Names of servers [default: all servers of this directory]
        #[arg(add = ArgValueCandidates::new(completion::servers))]
        names: Vec<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Accept changed tools without asking
        #[arg(long)]
        accept: bool,
    },
}

/// Add a server to your configuration file, or replace one
///
/// The server is a program (after `--`) or an address (`--url`).
#[derive(Debug, Args)]
pub(crate) struct McpServerArgs {
    /// Name of the server
    pub(crate) name: String,
    /// Address of a remote server
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// Header of each request, as `Name: value`; `${VAR}` is replaced by the variable when it is used (repeatable)
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Environment variable of the program, as `NAME=value`; `${VAR}` is replaced when it is used (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Seconds that the server may take to start and list its tools
    #[arg(long, value_name = "SECONDS")]
    pub(crate) startup_timeout: Option<f64>,
    /// Seconds that a call may take without progress
    #[arg(long, value_name = "SECONDS")]
    pub(crate) call_timeout: Option<f64>,
    /// Always offer all of its tools to the model, however many there are
    #[arg(long)]
    pub(crate) always_load: bool,
    /// Program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
