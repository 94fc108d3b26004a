//! `rondo repl`: one prompt for the agent, a shell and Python.

use crate::cli::{ColorChoice, ReplArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use crate::repl;
use rondo_runtime::env::Env;

/// Runs the command.
///
/// # Errors
/// When there is no terminal, the settings make no sense, or the session that is named cannot be had.
pub(super) fn run(
    args: ReplArgs,
    env: Env,
    color: Option<ColorChoice>,
    early: &Output,
) -> Result<Exit> {
    repl::run(args, env, color, early)
}
