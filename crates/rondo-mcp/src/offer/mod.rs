//! Offer of servers: their tools under names of our own, pinned, within a budget.
//!
//! # Layout
//! - `definition`: a tool as its server describes it, and what models read of it.
//! - `name`: the names that models call tools by.
//! - `argument_name`: names of arguments that providers refuse.
//! - `pins`: facts about servers from before.
//! - `catalog`: the tools of all servers, and the state of each.
//! - `search`: finds tools by words.
//! - `source`: the offer of one session, and the tool that finds more.
//! - `tool`: a tool of a server as a tool of a turn.

mod argument_name;
mod catalog;
mod definition;
mod name;
mod pins;
mod search;
mod source;
mod tool;

pub(crate) use catalog::{Catalog, Change};
pub use definition::ToolDefinition;
pub use name::PREFIX;
pub use pins::{Era, PinStore, Pins};
pub(crate) use source::SessionTools;
