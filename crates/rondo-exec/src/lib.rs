//! The tool that runs commands, and the user's own shell.
//!
//! A command never runs as a child of the big process: it runs under a small supervisor, the same
//! binary started again, so that starting costs the same however much memory the agent holds and so
//! that a process is left to end the command and to record its end when the agent dies.
#![warn(missing_docs)]

mod denial;
mod environment;
mod follow;
mod form;
mod interrupted;
mod live;
mod outcome;
pub mod shell;
pub mod supervisor;
mod tool;

pub use denial::{changed_protected, sandbox_note};
pub use rondo_launch::{
    SupervisorCommand, bound_heaps, hide_environment, move_environment, survive_large_files,
};
pub use tool::{ExecOptions, ExecTool, NetworkCounter};
