//! `rondo ask --detach`: a turn that no terminal holds.
//!
//! The process that was typed starts another one, which reads the input, begins the turn and says which session it
//! is; then it lets go of all its streams and works on alone.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::{Output, is_ready_within};
use crate::process_end;
use crate::show_turn::GRACE;
use rondo_core::Journal;
use rondo_core::ports::Seq;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::sync::Arc;
use std::time::Duration;

/// Asks for a turn without a terminal.
const DETACH: &str = "--detach";
/// Tells the process that works on it.
const DETACHED: &str = "--detached";
/// Bytes of the line with the session's id.
const ID_BYTES_MAX: u64 = 1024;
/// How often it is looked whether the turn's first record is written.
const LOOK_UP: Duration = Duration::from_millis(2);

/// Starts the process that works on the turn, and prints the session once its first record is written.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start(output: &Output) -> Result<Exit> {
    let failed = |err: io::Error| {
        let context = "failed to start the background process of the turn";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    };
    let mut child =
        rondo_exec::supervisor::start_again(arguments(std::env::args_os())).map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout.take(ID_BYTES_MAX));
        stdout.read_line(&mut line).map_err(failed)?;
    }
    let id = line.trim();
    if id.is_empty() {
        // It has said why on standard error.
        let status = child.wait().map_err(failed)?;
        return Ok(Exit::of_code(status.code()));
    }
    process_end::set_code(Exit::PipeClosed.code());
    let is_read = is_ready_within(io::stdout(), PollFlags::OUT, GRACE).unwrap_or(true);
    if is_read {
        output
            .stdout(&format!("{id}\n"))
            .map_err(crate::commands::report::write_failed)?;
    }
    output.note(&format!(
        "the turn runs in the background: `rondo attach {id}` shows it, and `kill {}` stops it",
        child.id()
    ));
    Ok(if is_read {
        Exit::Answer
    } else {
        Exit::PipeClosed
    })
}

/// Returns the arguments of the process that works on the turn.
fn arguments(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_replaced = false;
    let arguments = typed.skip(1).map(|argument| {
        let is_flag = !is_replaced && argument == DETACH;
        is_replaced |= is_flag;
        match is_flag {
            true => OsString::from(DETACHED),
            false => argument,
        }
    });
    arguments.collect()
}

/// Begins a session of processes of its own, which no terminal ends.
pub(super) fn leave_terminal() {
    // It fails only for a process that leads a group already, which the one that was started here does not.
    let _ = rustix::process::setsid();
}

/// Prints the session of the turn as soon as its first record is written, and closes the standard streams.
///
/// # Cancel safety
/// Cancel safe: nothing is said then.
pub(super) async fn announce(session: &str, journal: Arc<impl Journal + ?Sized>, output: Output) {
    while journal.at() == Seq(0) {
        tokio::time::sleep(LOOK_UP).await;
    }
    // The process that started it may be gone.
    let _ = output.stdout(&format!("{session}\n"));
    let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty()) else {
        return;
    };
    let _ = dup2_stdin(&null);
    let _ = dup2_stdout(&null);
    let _ = dup2_stderr(&null);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_flag_is_replaced() {
        let typed = ["rondo", "ask", "--detach", "--", "--detach"].map(OsString::from);
        let expected = ["ask", "--detached", "--", "--detach"].map(OsString::from);
        assert_eq!(arguments(typed.into_iter()), expected);
    }
}
