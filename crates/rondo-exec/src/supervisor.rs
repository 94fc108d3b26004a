//! The small process between the agent and a command.
//!
//! It is the same program, started again with [`SUPERVISE_ARG`]; [`run_if_requested`] at the top of
//! `main` turns it into the supervisor. On Linux, that is a fork of one such process that is kept. Forking from the agent instead would copy its page tables,
//! which costs 40 ms at 500 MB.

pub use rondo_launch::{
    CallSpec, CallStatus, CommandEvent, CommandState, Ender, PtySize, SUPERVISE_ARG, StartError,
    StatusError, SupervisedCommand, SupervisorCommand, are_alive, end_all, start_again,
};

/// Becomes the supervisor and never returns, if the program was started as one.
///
/// Must be the first thing in `main`, before arguments are read and threads are started. Otherwise
/// it only notes that this program can be started as a supervisor.
pub fn run_if_requested() {
    rondo_launch::run_if_requested(&[crate::shell::ROLE]);
}
