//! Commands on a PTY under a supervisor, process trees and command analysis.
//!
//! A command never runs as a child of the big process: it runs under a small supervisor, the same
//! binary started anew, so that starting costs the same however much memory the agent holds and so
//! that somebody is left to end the command and to record its end when the agent dies.
#![warn(missing_docs)]

pub mod analysis;
mod doubt;
mod environment;
mod follow;
mod gate;
mod live;
mod lookup;
mod outcome;
pub mod shell;
pub mod supervisor;
mod tool;
mod unix;
mod workdir;

pub use analysis::{AllowedDirs, Judgement};
pub use environment::{Environment, hide_environment, survive_large_files};
pub use gate::{GateOptions, HUB_BLACKLIST, PatternError, StandardGate};
pub use supervisor::SupervisorCommand;
pub use tool::{ExecOptions, ExecTool};
pub use workdir::{Variables, Workdir};
