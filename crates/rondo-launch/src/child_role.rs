//! Work that a program does in a process of its own, over its standard input and output, so that it can be ended.

use super::role::{SupervisorCommand, exit};
use super::start_error::StartError;
use super::unix;
use std::process::Command;

/// The first argument that turns a program with the hook into such a process.
const CHILD_ARG: &str = "__rondo-child";

/// A kind of such work.
#[derive(Debug, Clone, Copy)]
pub struct ChildRole {
    /// The second argument, which asks for it.
    pub name: &'static str,
    /// Does the work; returns the exit code.
    pub serve: fn() -> i32,
}

impl ChildRole {
    /// Does the work and never returns, if the program was started for it by [`ChildRole::command`].
    ///
    /// Must be called at the top of `main`, before arguments are read and threads are started.
    pub fn serve_if_requested(&self) {
        let mut asked = std::env::args_os().skip(1).take(2);
        if asked.next().is_some_and(|it| it == CHILD_ARG)
            && asked.next().is_some_and(|it| it == self.name)
        {
            unix::reset_signals();
            exit((self.serve)());
        }
    }

    /// Returns a command that starts a program for the work, without an environment, in the root directory. The
    /// program's `main` must call [`ChildRole::serve_if_requested`].
    ///
    /// # Errors
    /// As [`SupervisorCommand::resolve`].
    pub fn command(&self, program: &SupervisorCommand) -> Result<Command, StartError> {
        let mut command = Command::new(program.resolve()?);
        command
            .args([CHILD_ARG, self.name])
            .env_clear()
            .current_dir("/");
        Ok(command)
    }
}
