//! Tests of real commands under a real supervisor, and of the judgement before them.

#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must work; helpers are outside of what the lint takes for tests"
)]

mod agent;
mod analysis;
mod commands;
mod deaths;
mod fixture;
mod gate;
mod options;
mod output;
mod reattach;
mod secrets;
mod shell;
mod tool;
mod tree;
mod workdir;
