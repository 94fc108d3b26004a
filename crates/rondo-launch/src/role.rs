//! Which process a program becomes: itself, or a supervisor.

use super::assignment::Assignment;
use super::protocol::{FrameKind, encode_frame};
use super::start_error::StartError;
use super::{keeper, serve, serve_process, unix};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument that turns a program with the hook into a supervisor.
pub const SUPERVISE_ARG: &str = "__rondo-supervise";

/// Kind of process that a program can supervise.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// The argument behind [`SUPERVISE_ARG`] that asks for it: no line feed is in it.
    pub name: &'static str,
    /// How many descriptors it takes besides those that all take; the agent sends them in one message.
    pub descriptors: usize,
    /// Supervises to the end; returns the exit code, or why nothing was started.
    pub serve: fn(Assignment) -> io::Result<i32>,
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
        let asked = std::env::args_os().nth(2).unwrap_or_default();
        let asked = asked.to_string_lossy();
        exit(match &*asked {
            keeper::KEEPER_ARG => keeper::serve(roles),
            name => {
                let descriptors = found(roles, name).map_or(0, |it| it.descriptors);
                perform(roles, name, Assignment::from_stdio(descriptors))
            }
        });
    }
    HOOKED.store(true, Ordering::Release);
}

/// Performs the role of that name, and tells the agent if nothing was started. Returns the exit code.
pub(super) fn perform(roles: &[Role], name: &str, given: io::Result<Assignment>) -> i32 {
    let performed = given.and_then(|given| match found(roles, name) {
        Some(role) => (role.serve)(given),
        None => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("this program does not supervise `{name}`"),
        )),
    });
    performed.unwrap_or_else(|reason| tell_failure(&reason))
}

/// Tells the agent why nothing was started, and returns the exit code.
pub(super) fn tell_failure(reason: &io::Error) -> i32 {
    let mut frame = Vec::new();
    encode_frame(FrameKind::Failed, reason.to_string().as_bytes(), &mut frame);
    let _ = io::stdout().write_all(&frame);
    let _ = io::stdout().flush();
    1
}

fn found<'a>(roles: &'a [Role], name: &str) -> Option<&'a Role> {
    let own = [&serve::ROLE, &serve_process::ROLE];
    own.into_iter().chain(roles).find(|it| it.name == name)
}

#[expect(
    clippy::exit,
    reason = "the supervisor must not fall through into the program it was started as"
)]
pub(super) fn exit(code: i32) -> ! {
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
