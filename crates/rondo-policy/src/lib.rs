//! Decides whether a call may run: the analysis of shell commands, the gate, and the environment of commands.
//!
//! Nothing here starts a process. A judgment reads directories, links and a repository's settings, and the
//! gate lets the call run, asks about it or denies it.
//!
//! # Layout
//! - `gate`: the gate, with the lists of allowed and disallowed tools; `question`: the words of its questions;
//!   `judged`: the judgment of a command, and its basis.
//! - [`analysis`]: parses a command and judges it as read-only, with effects, or unknown. The read-only
//!   programs and their options are data in `analysis/tables.rs`; programs that run others are in
//!   `analysis/wrappers.rs`.
//! - [`rules`]: rules that users and projects write, and the denials that are built in.
//! - `looking`: the calls that were allowed because they only look.
//! - `read_only_sandbox`: the sandbox in which commands of the system run without asking, whatever their shape;
//!   `analysis/read_only_sandbox.rs` tells which.
//! - `answers`: the calls that reveal no more than the answer could.
//! - `grants`: what the user allowed at a question, and which commands are safe to extend; `terms`: what an approval
//!   agrees to.
//! - `lookup`: whether a program's name leads to the program that is meant.
//! - `environment`: the environment variables that commands get; `workdir`: the directory and environment of the
//!   user's shell.
#![warn(missing_docs)]

pub mod analysis;
mod answers;
mod environment;
mod gate;
mod grants;
mod judged;
mod looking;
mod lookup;
mod pattern;
mod question;
mod read_only_sandbox;
pub mod rules;
mod terms;
mod unix;
mod workdir;

pub use analysis::{AllowedDirs, Judgement, is_complete};
pub use answers::Answers;
pub use environment::CommandEnvironment;
pub use gate::{Confined, GateOptions, OUTSIDE_SANDBOX, StandardGate};
pub use grants::Grants;
pub use judged::{Basis, Judged};
pub use looking::LookingCalls;
pub use pattern::{PatternError, ToolPatterns};
pub use read_only_sandbox::ReadOnlySandbox;
pub use workdir::{Variables, Workdir};
