//! The small process between the agent and a command.
//!
//! It is the same program, started again with [`SUPERVISE_ARG`]; [`run_if_requested`] at the top of
//! `main` turns it into the supervisor. Forking from the agent instead would copy its page tables,
//! which costs 40 ms at 500 MB.

mod capture;
mod clean;
mod client;
mod guard;
mod link;
mod protocol;
mod recall;
mod retention;
mod serve;
mod status;

pub(crate) use capture::Capture;
pub use client::{CommandEvent, Ender, StartError, Supervised};
pub(crate) use guard::NOTICE_MAX;
pub(crate) use link::send_last;
pub use protocol::{CallSpec, PtySize};
pub(crate) use recall::{Known, Whereabouts, end, end_orphans, look};
pub(crate) use retention::remove_oldest;
pub use retention::{are_alive, end_all};
pub(crate) use serve::{read_line, start_reaper};
pub use status::{CallStatus, CommandState, StatusError};

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument that turns a program with the hook into a supervisor.
pub const SUPERVISE_ARG: &str = "__rondo-supervise";

/// The second argument, where the supervisor is a shell's.
pub(crate) const SHELL_ARG: &str = "shell";

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Becomes the supervisor and never returns, if the program was started as one.
///
/// Must be the first thing in `main`, before arguments are read and threads are started. Otherwise
/// it only notes that this program can be started as a supervisor.
pub fn run_if_requested() {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == SUPERVISE_ARG)
    {
        // A shell's has the user's keys, which are for the shell.
        crate::unix::move_environment();
        crate::unix::reset_signals();
        crate::unix::survive_large_files();
        let for_shell = std::env::args_os().nth(2);
        exit(match for_shell.is_some_and(|arg| arg == SHELL_ARG) {
            true => crate::shell::serve(),
            false => serve::serve(),
        });
    }
    HOOKED.store(true, Ordering::Release);
}

#[expect(
    clippy::exit,
    reason = "the supervisor must not fall through into the program it was started as"
)]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// Names the program that is started as supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorCommand {
    /// The running program, which must have called [`run_if_requested`].
    CurrentExe,
    /// A program, by absolute path, whose `main` calls [`run_if_requested`].
    Path(PathBuf),
}

impl SupervisorCommand {
    /// Returns the absolute path to start.
    ///
    /// # Errors
    /// When the running program has no supervisor in it, or the path is not absolute.
    pub fn resolve(&self) -> Result<PathBuf, StartError> {
        match self {
            Self::CurrentExe if !HOOKED.load(Ordering::Acquire) => Err(StartError::NoSupervisor),
            Self::CurrentExe => crate::unix::current_exe().map_err(StartError::Spawn),
            Self::Path(path) if path.is_absolute() => Ok(path.clone()),
            Self::Path(path) => Err(StartError::NotAbsolute(path.clone())),
        }
    }
}
