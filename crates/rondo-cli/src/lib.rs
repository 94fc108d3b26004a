//! The command line of Rondo: arguments, the terminal, the prompt and exit codes. Everything that other hosts
//! need too, from settings to sessions, is in `rondo-runtime`.
//!
//! # Layout
//! - `cli`: the arguments.
//! - `commands`: one file for each command; `user_input`: the user's message from words, standard input and files.
//! - `repl`: one prompt for the agent, a shell and Python.
//! - `slash`: slash commands that the line prompt and the full screen have.
//! - `full_screen`: opens the full-screen interface, which is `rondo-tui`.
//! - `story`: renders a recorded session.
//! - `render`: renders a turn; `show_turn`: shows a running turn and handles signals; `screen`: shares the
//!   terminal between a turn and questions; `approver`: asks the questions; `remember`: answers that let more than one
//!   call run; `changes`: the changes to files that
//!   both show.
//! - `output`: standard output and standard error; `log`: the output of `-v`.
//! - `exit`, `error`: exit codes and messages; `signals`: the signals that stop a run; `process_end`: the deadline of
//!   the process.
//!
//! Everything except [`run`] is private: the binary is the interface.

mod approver;
mod changes;
mod cli;
mod commands;
mod error;
mod executor;
mod exit;
mod full_screen;
mod hosted;
mod interactive;
mod log;
mod output;
mod process_end;
mod remember;
mod render;
mod repl;
mod screen;
mod show_turn;
mod signals;
mod slash;
mod story;
mod terminal_context;
mod user_input;

pub use commands::run;
