//! Starting, watching and ending processes.
//!
//! Between an agent and a command is a small process: the same program, started again with
//! [`SUPERVISE_ARG`]; [`run_if_requested`] at the top of `main` turns it into the supervisor, or into the keeper
//! that forks one for each command. Forking from the agent instead would copy its page tables, which costs 40 ms
//! at 500 MB.
//!
//! What is started is given as plain data: a command or a program, its environment as names and values.
//! What may run, and what of an environment is passed on, is judged above.
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
pub use assignment::{Assignment, Life};
pub use capture::{Capture, Captured};
pub use child_role::ChildRole;
pub use clean::Cleaner;
pub use client::{CommandEvent, Ender, Supervised};
pub use environment::{bound_heaps, hide_environment, move_environment, survive_large_files};
pub use guard::{COMMAND_END_MAX, NOTICE_MAX};
pub use pipe::send_last;
pub use piped::{PipedChild, PipedEnd, PipedSpec};
pub use process::{ProcessExit, ProcessSpec, SupervisedProcess};
pub use protocol::CallSpec;
pub use pty_size::PtySize;
pub use reaper::{Reaper, start_reaper};
pub use recall::{Known, Whereabouts, end, end_orphans, look};
pub use retention::{are_alive, end_all, remove_oldest};
pub use role::{Role, SUPERVISE_ARG, SupervisorCommand, run_if_requested};
pub use role_process::{Presence, RoleProcess};
pub use rondo_sandbox::{Readers, replace_file};
pub use start_error::StartError;
pub use status::{CallStatus, CommandState, Exceeded, LOST_MAX, Prompt, StatusError};
