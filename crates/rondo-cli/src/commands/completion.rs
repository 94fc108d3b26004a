//! `rondo completion`: prints the completion script of a shell.

use super::report::write_failed;
use crate::cli::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Runs the command.
pub(super) fn run(shell: Shell, output: &Output) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rondo", &mut script);
    output
        .styled(&String::from_utf8_lossy(&script))
        .map_err(write_failed)?;
    Ok(Exit::Answer)
}
