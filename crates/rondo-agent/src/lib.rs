//! Agents, their conversations and typed tools.
//!
//! The crate reads no settings file, environment variable or weights: the program passes in the
//! model, the tools and what may run. Most programs use it through the crate `rondo`.
#![warn(missing_docs)]

mod agent;
mod approval;
mod budget;
mod builder;
mod built_in;
mod cut_off;
mod durable;
mod error;
mod gate;
mod ids;
mod ledger;
mod parts;
mod run;
mod schema;
mod session;
mod source;
mod tool;
mod typed;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use approval::{PendingQuestion, PendingQuestions, approvals};
pub use builder::{AgentBuilder, BuildError};
pub use durable::OpenError;
pub use error::TurnError;
pub use run::Run;
pub use session::Session;
pub use tool::{FnTool, NoArgs, ToolContext, tool};
pub use typed::{TypedAnswer, TypedError};
