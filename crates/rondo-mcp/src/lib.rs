//! Servers of the Model Context Protocol (MCP), and their tools as tools of a turn.
//!
//! [`Servers`] starts servers in the background and holds what they offer. A turn takes their tools through a
//! [`ToolSource`](rondo_core::ports::ToolSource), so that no first request waits for a server, and what changes is
//! taken up between two steps. Everything that a server says is from a stranger: tools are pinned as they were first
//! seen, names and schemas are brought into a form that every provider takes, hints never allow anything, and each list,
//! message, result and time is bounded.
//!
//! # Layout
//! - [`config`]: servers as they are configured, in our form and in those of other programs.
//! - `client`: one connection to a server.
//! - `content`: results as outcomes.
//! - `offer`: the tools offered of servers: names, pins, budget, search.
//! - `sign_in`: signing in to servers at addresses, and what was granted.
//! - `servers`, `running`: all servers, and the task that keeps one of them running.
#![warn(missing_docs)]

mod client;
pub mod config;
mod content;
mod offer;
mod private_file;
mod running;
mod servers;
mod sign_in;

pub use client::{Program, ProgramSpec, PromptInfo, ResourceInfo, StartPrograms, Streams};
pub use offer::{Era, PREFIX, PinStore, Pins, ToolDefinition};
pub use running::SessionDirectory;
pub use servers::{Consent, Options, ServerReport, Servers};
pub use sign_in::{SignIn, TokenStore};
