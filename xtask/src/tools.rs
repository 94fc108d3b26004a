//! The tools that are programs of their own, so that the tests do not wait for what they are built from.

use anyhow::{Context, Result};
use rondo_tool_support::workspace;
use std::ffi::OsString;

/// Arguments of a tool, its `--help` too.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Args {
    /// Runs a task of a tool; true when it succeeded.
    ///
    /// # Errors
    /// When cargo cannot be started.
    pub(crate) fn run(&self, package: &str, task: Option<&str>) -> Result<bool> {
        run(package, task, &self.args)
    }
}

/// Runs a task of a tool in the caller's directory; true when it succeeded.
///
/// # Errors
/// When cargo cannot be started.
pub(crate) fn run(package: &str, task: Option<&str>, args: &[OsString]) -> Result<bool> {
    let mut command = workspace::cargo();
    command.current_dir(std::env::current_dir()?);
    command.args(["run", "--quiet", "--package", package, "--"]);
    let status = command.args(task).args(args).status();
    Ok(status.context("failed to start cargo")?.success())
}
