//! Five agent-loop designs in their own words, over the one loop of `rondo-core`.
//!
//! Each module has the names and functions of one design. They are projections: values are
//! translated on the way in and out, and [`run_turn`](rondo_core::run_turn) does the rest, so limits,
//! validation, cancelling and pairing of calls are the same everywhere.
//!
//! # Layout
//! - [`python`]: questions over a live Python session, `run_question`.
//! - [`stream`]: the streaming engine as a library, `AgentLoop`.
//! - [`react`]: calls as tagged text, `Agent` and its channel of events.
//! - [`shell`]: a shell's agent, messages in the shape of OpenAI.
//! - [`hub`]: a chat gateway's agent, with sessions and a workspace.
//!
//! The designs ask no one before a tool runs: what a program registers may be called. Each loop
//! takes a [`Gate`](rondo_core::Gate) if that is too much.
#![warn(missing_docs)]

pub mod hub;
pub mod python;
pub mod react;
pub mod shell;
pub mod stream;

mod bounded;
mod recital;
mod run;
