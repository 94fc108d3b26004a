//! The command line of Rondo: arguments, configuration, rendering and exit codes.
//!
//! # Layout
//! - `cli`: the arguments as they were typed; `config`, `settings`: every layer, and the one
//!   conversion into what is in force; `env`, `paths`: the process's environment and directories.
//! - `providers`, `models`: who can be asked, and what is known of what they offer.
//! - `weights`, `embedded`: the weights of the models in the box, and such a model to ask.
//! - `sessions`: where they are kept and which one is meant; `secrets`: what is kept out of them.
//! - `commands`: one file for each command; `prompt`: the user's input, assembled.
//! - `repl`: one prompt for the agent, a shell and Python.
//! - `tools`, `python`: what a turn may call, and the live Python session behind some of it.
//! - `story`: what happened in a recorded session.
//! - `render`: what a turn looks like; `approver`: questions on the terminal;
//!   `changes`: what calls make of files, for both.
//! - `log`, `telemetry`: what `-v` shows, and what a collector is sent.
//! - `exit`, `error`: exit codes and messages; `signals`: what stops a run from outside.
//!
//! Everything is private but [`run`]: the binary is the interface.

mod approver;
mod calls;
mod changes;
mod cli;
mod commands;
mod config;
mod context;
mod embedded;
mod env;
mod error;
mod exit;
mod fallbacks;
mod files;
mod log;
mod models;
mod output;
mod paths;
mod profiles;
mod prompt;
mod providers;
mod python;
mod render;
mod repl;
mod request_limits;
mod screen;
mod secrets;
mod sessions;
mod settings;
mod signals;
mod story;
mod target;
mod telemetry;
mod tools;
mod transport;
mod turn_loop;
mod weights;

pub use commands::run;
