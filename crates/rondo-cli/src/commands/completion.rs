//! `rondo completion`. The scripts ask this program for the words that fit, since profiles, models, sessions and settings
//! differ from one directory and one day to the next.

use super::report::write_failed;
use crate::cli::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};
use std::ffi::OsString;

/// The variable by which a completion script asks for the words that fit.
const VARIABLE: &str = "RONDO_COMPLETE";

/// Runs the command.
pub(super) fn run(shell: Shell, output: &Output) -> Result<Exit> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        shell
            .write_registration(VARIABLE, "rondo", "rondo", "rondo", &mut script)
            .map_err(write_failed)?;
    }
    output
        .styled(&String::from_utf8_lossy(&script))
        .map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Prints the words that fit if a completion script asks for them; returns the exit code then.
pub(super) fn answer_shell(args: &[OsString]) -> Option<u8> {
    let completion = CompleteEnv::with_factory(Cli::definition).var(VARIABLE);
    match completion.try_complete(args, None) {
        Ok(false) => None,
        Ok(true) => Some(Exit::Answer.code()),
        // A shell shows nothing of it; a word that cannot be completed is no reason to print into the line.
        Err(_) => Some(Exit::Error.code()),
    }
}
