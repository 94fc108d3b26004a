//! Tests of real commands under a real supervisor.

#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must work; helpers are outside of what the lint takes for tests"
)]

mod agent;
mod deaths;
mod fixture;
#[cfg(target_os = "linux")]
mod keeper;
mod lost;
mod names;
mod output;
mod piped;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod prompts;
mod reattach;
mod sandbox;
mod secrets;
mod shell;
#[cfg(target_os = "linux")]
mod spare;
mod tool;
mod tree;
mod workdir;
