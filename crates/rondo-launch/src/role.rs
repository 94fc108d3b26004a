//! Which process a program becomes: itself, or a supervisor.

use super::start_error::StartError;
use super::{keeper, serve, unix};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument that turns a program with the hook into a supervisor.
pub const SUPERVISE_ARG: &str = "__rondo-supervise";

/// What else than a command a program can supervise.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// The argument behind [`SUPERVISE_ARG`] that asks for it.
    pub name: &'static str,
    /// Serves from the specification on stdin to the end; returns the exit code.
    pub serve: fn() -> i32,
}

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Becomes the supervisor and never returns, if the program was started as one: that of the role which
/// the second argument names, otherwise that of a command.
///
/// Must be the first thing in `main`, before arguments are read and threads are started. Otherwise
/// it only notes that this program can be started as a supervisor.
pub fn run_if_requested(roles: &[Role]) {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == SUPERVISE_ARG)
    {
        // A shell's has the user's keys, which are for the shell.
        unix::move_environment();
        unix::reset_signals();
        unix::survive_large_files();
        let asked = std::env::args_os().nth(2);
        let is_asked = |role: &&Role| asked.as_ref().is_some_and(|name| name == role.name);
        let role = roles.iter().find(is_asked);
        let builtin = match asked.is_some_and(|name| name == keeper::KEEPER_ARG) {
            true => keeper::serve,
            false => serve::serve,
        };
        exit(role.map_or_else(builtin, |role| (role.serve)()));
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
            Self::CurrentExe => unix::current_exe().map_err(StartError::Spawn),
            Self::Path(path) if path.is_absolute() => Ok(path.clone()),
            Self::Path(path) => Err(StartError::NotAbsolute(path.clone())),
        }
    }
}
