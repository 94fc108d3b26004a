//! One connection to a server: how it is begun, what is asked over it, and what the server asks in turn.
//!
//! # Layout
//! - `connect`: begins a connection in the lifecycle that the server speaks.
//! - `flood`: bounds on what the server sends without being asked.
//! - `http`: rmcp's HTTP client over the connections that all requests of Rondo share.
//! - `program`: the port to programs; starting them is not done here.
//! - `handler`: messages that the server sends by itself: progress, changes, questions.
//! - `elicit`: its questions, put to the user.
//! - `list`: its lists of tools, prompts and resources, page by page.
//! - `call`: one call of a tool.
//! - `words`: why a request failed, in words for the user.

mod call;
mod connect;
mod elicit;
mod flood;
mod handler;
mod http;
mod list;
mod program;
mod words;

pub(crate) use call::call;
pub(crate) use connect::{
    ConnectOptions, Live, asks_for_authorisation, connect, needs_more_scopes,
};
pub(crate) use handler::Shared;
pub use list::{PromptInfo, ResourceInfo};
pub(crate) use list::{prompts, resources, tools};
pub use program::{Program, ProgramSpec, StartPrograms, Streams};
pub(crate) use words::why_failed;
