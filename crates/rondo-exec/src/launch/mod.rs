//! Starting, watching and ending processes.
//!
//! Between an agent and a command is a small process: the same program, started again with
//! [`SUPERVISE_ARG`]; [`run_if_requested`] at the top of `main` turns it into the supervisor. Forking
//! from the agent instead would copy its page tables, which costs 40 ms at 500 MB.

mod capture;
mod clean;
mod client;
mod guard;
mod link;
mod pipe;
mod protocol;
mod pty_size;
mod reaper;
mod recall;
mod retention;
mod role;
mod serve;
mod start_error;
mod status;
pub(crate) mod unix;

pub(crate) use capture::Capture;
pub use client::{CommandEvent, Ender, Supervised};
pub(crate) use guard::NOTICE_MAX;
pub(crate) use pipe::{read_line, send_last};
pub use protocol::CallSpec;
pub use pty_size::PtySize;
pub(crate) use reaper::start_reaper;
pub(crate) use recall::{Known, Whereabouts, end, end_orphans, look};
pub(crate) use retention::remove_oldest;
pub use retention::{are_alive, end_all};
pub(crate) use role::{Role, run_if_requested};
pub use role::{SUPERVISE_ARG, SupervisorCommand};
pub use start_error::StartError;
pub use status::{CallStatus, CommandState, StatusError};
