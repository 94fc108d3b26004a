//! Tests of the judgment of commands and calls.

#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must work; helpers are outside of what the lint takes for tests"
)]

mod agentdojo;
mod analysis;
mod any_command;
mod bounds;
mod commands;
mod gate;
mod grants;
mod options;
mod reached;
mod read_only_sandbox;
mod reasons;
mod rules;
mod sets;
mod without_shell;
