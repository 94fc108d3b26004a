//! The command line of Rondo: arguments, the terminal, the prompt and exit codes. What it stands on, from
//! settings to sessions, is `rondo-runtime`.
//!
//! # Layout
//! - `cli`: the arguments as they were typed.
//! - `commands`: one file for each command; `user_input`: what the user says, assembled.
//! - `repl`: one prompt for the agent, a shell and Python.
//! - `story`: what happened in a recorded session.
//! - `render`: what a turn looks like; `show_turn`: a turn that runs, shown; `screen`: what shares the terminal;
//!   `approver`: questions on it; `changes`: what calls make of files, for both.
//! - `output`: standard output and standard error; `log`: what `-v` shows.
//! - `exit`, `error`: exit codes and messages; `signals`: what stops a run from outside.
//!
//! Everything is private but [`run`]: the binary is the interface.

mod approver;
mod changes;
mod cli;
mod commands;
mod error;
mod exit;
mod log;
mod output;
mod render;
mod repl;
mod screen;
mod show_turn;
mod signals;
mod story;
mod user_input;

pub use commands::run;
