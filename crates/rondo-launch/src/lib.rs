//! Starting, watching and ending processes.
//!
//! Between an agent and a command is a small process: the same program, started again with
//! [`SUPERVISE_ARG`]; [`run_if_requested`] at the top of `main` turns it into the supervisor, or into the keeper
//! that forks one for each command. Forking from the agent instead would copy its page tables, which costs 40 ms
//! at 500 MB.
//!
//! The caller gives plain data: a command or a program, its environment as names and values.
//! Permission to run, and the choice of environment variables, are decided in higher layers.
//!
//! # The supervisor
//! The supervisor creates the process session and the PTY, starts the command when told to, bounds its output (the full
//! output goes to a file), and ends the whole process tree on timeout, on cancel, or when its agent has been gone for longer
//! than a call may outlive it (`outlive`). Processes that a command leaves running are ended right after it. Its status file
//! is named by the call, so after a crash the outcome is read from the file, and a command that is still running is reached
//! over the supervisor's socket. "Running" is written before the command starts, so a call without that line had no effect.
//! The file is not synced, so a missing line proves this only until the machine restarts.
//!
//! # The keeper
//! Starting the binary costs more than most calls, so on Linux an agent starts it once, as its keeper, which forks all
//! supervisors. Forking is cheap there: one thread, next to no memory.
//!
//! - A message to the keeper is one byte with at most `DESCRIPTORS_MAX` descriptors: sealed memory with the role, its
//!   specification and the environment; the pipes between agent and supervisor; a socket for the fork's pidfd. A forked
//!   supervisor and a started one then run the same code (`Assignment`). Only a fork reads the memory, so nothing can block
//!   the keeper.
//! - The keeper has no environment but the two variables that mark our processes, no descriptors but its socket and a handle of
//!   its agent, and `/` as its directory. It refuses a socket whose other end is not its parent's.
//! - It ends with its agent, by the end of the socket or by the agent's pidfd. `PR_SET_PDEATHSIG` fires when the *thread* ends
//!   that started the keeper, so it is not used. Calls do not depend on the keeper.
//! - Nothing runs before the supervisor says that it is ready. If its fork dies before that, the call is handed over once
//!   more, and then the binary is started instead. The same happens if the system has no sealed memory, pidfds or `close_range`,
//!   if a directory is relative, and after three keepers that never forked. A keeper that does not fork within five seconds is
//!   killed; it is woken before each message, since commands can stop it.
//!
//! # Spares
//! After a command, the keeper forks what the next one needs (`spare.rs`): guard, supervisor, terminal, and the process that
//! executes the command, already in its sandbox as far as that is the same for each. A program has at most two. A supervisor
//! whose command ended with everything it started takes the next call itself, so a call costs one fork instead of three.
//!
//! - When a call arrives, the spare checks that each file its rules and mounts refer to is still the one its path leads to, and
//!   that nothing was mounted. Otherwise it ends without having begun, and the keeper forks as usual.
//! - A process that could look into a supervisor during a call may have kept its memory open. So after a call without secrets
//!   a supervisor takes none with secrets.
//! - Commands inherit the supervisor's limits, priority and processors, which a command can change. A supervisor that finds them
//!   changed ends, as does one whose command left processes or whose agent was replaced.
//!
//! # Decisions
//! - The agent does not wait for supervisor and guard once it knows how a command ended and that nothing is left of it: their
//!   ends and the unmounting would be a third of a short command's time.
//! - Ends of processes reach a supervisor by a signal whose handler writes to a pipe. A waiting thread took a good part of a
//!   short command's time.
//! - A command starts with the umask and resource limits that its agent had when its *first* command was started.
#![warn(missing_docs)]

mod again;
mod assignment;
mod capture;
mod child_role;
mod clean;
mod client;
mod environment;
mod frames;
mod guard;
mod handed;
mod keeper;
mod ledger;
mod line;
mod link;
mod pipe;
mod piped;
mod process;
mod prompts;
mod protocol;
mod pty_size;
mod reaper;
mod recall;
mod retention;
mod role;
mod role_process;
mod serve;
mod serve_process;
mod simple;
#[cfg_attr(not(target_os = "linux"), path = "spare_elsewhere.rs")]
mod spare;
mod spares;
mod start;
mod start_error;
mod status;
pub mod unix;
mod watchers;

pub use again::start_again;
pub use assignment::{Assignment, ForkLifeline};
pub use capture::{Capture, Captured};
pub use child_role::ChildRole;
pub use clean::Cleaner;
pub use client::{CommandEvent, Ender, SupervisedCommand};
pub use environment::{bound_heaps, hide_environment, move_environment, survive_large_files};
pub use guard::{COMMAND_END_MAX, NOTICE_MAX};
pub use pipe::send_last;
pub use piped::{PipedChild, PipedEnd, PipedSpec};
pub use process::{ProcessExit, SupervisedProcess};
pub use protocol::{CallSpec, ProcessSpec};
pub use pty_size::PtySize;
pub use reaper::{Reaper, start_reaper};
pub use recall::{RecalledCall, StatusLocation, end, end_orphans, look};
pub use retention::{are_alive, end_all, remove_oldest};
pub use role::{Role, SUPERVISE_ARG, SupervisorCommand, run_if_requested};
pub use role_process::{RolePresence, RoleProcess};
pub use rondo_sandbox::{Readers, replace_file};
pub use start_error::StartError;
pub use status::{CallStatus, CommandState, Exceeded, LOST_MAX, Prompt, StatusError};
