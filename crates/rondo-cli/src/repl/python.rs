//! Python mode: one interpreter that the user and the agent share.

use super::mode::Mode;
use super::turn::no_terminal;
use super::unix::{self, Keys, size, size_changes};
use super::{After, Repl};
use crate::error::Result;
use crate::output::Output;
use crate::slash::python::failed;
use rondo_python::{CellEnd, CellLimits, CellTerminal, LiveOutput, Session, SessionError};
use rondo_runtime::sanitize::plain;
use rondo_tui::prompt::reply::FailedCell;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long a cell may take to end by an interrupt before the user reads what else there is.
const TELL_AFTER: Duration = Duration::from_millis(500);
/// A Ctrl-C this soon after the first is impatience, and ends no interpreter.
const END_AFTER: Duration = Duration::from_secs(2);
const HOW_TO_END: &str = "interrupted, and still running: Ctrl-C again, two seconds after the first, ends the interpreter and loses its variables";

/// How many reads of the keyboard wait for the cell.
const KEYS_MAX: usize = 16;
const LEFT: &str =
    "the interpreter goes on, with its variables: F2 turns back to Python, Ctrl-D leaves `rondo`";

impl Repl {
    /// Runs a cell and shows what comes of it as Python does. It is recorded before it runs, and when
    /// it has ended. Ctrl-C interrupts it. What does not end by that, a loop in C code for one, is ended with
    /// its interpreter by a Ctrl-C two seconds after the first, as the user is told by then.
    ///
    /// # Errors
    /// When it cannot be recorded, or the interpreter cannot be started, or is lost.
    pub(super) async fn run_cell(&mut self, code: &str) -> Result<After> {
        let session = self.talk.python()?;
        let started = self.talk.cell_starts(code).await?;
        let (ended, took) = self.watched_cell(&session, code).await?;
        let is_new = self.talk.sync_presence();
        // The value is shown without waiting for the disk.
        let shown = match &ended {
            Ok(end) => self.show(code, end, is_new),
            Err(_) => Ok(()),
        };
        if let Some(cell) = started {
            self.talk.cell_ended(cell, &ended, is_new, took).await?;
        }
        ended.map_err(failed)?;
        shown.map(|()| After::Prompt)
    }

    async fn watched_cell(
        &mut self,
        session: &Session,
        code: &str,
    ) -> Result<(std::result::Result<CellEnd, SessionError>, Duration)> {
        let began = Instant::now();
        let output = self.talk.output;
        // At a terminal of its own, all that a cell writes comes as standard output.
        let live = LiveOutput::new(move |_, text| drop(output.styled(&text)));
        let until = CellLimits::default();
        let cancel = until.cancel.clone();
        let keys = self.talk.terminal.lend().map_err(no_terminal)?;
        let mut changes = size_changes().map_err(no_terminal)?;
        let (typed, typed_keys) = mpsc::channel(KEYS_MAX);
        let (sized, size) = watch::channel(size());
        let interrupted = Arc::new(Notify::new());
        let stopping = stop_when_told(&interrupted, session, &cancel, &output);
        let terminal = CellTerminal {
            keys: typed_keys,
            size,
            interrupted: Arc::clone(&interrupted),
        };
        let following = async {
            while changes.recv().await.is_some() {
                sized.send_replace(unix::size());
            }
            pending::<Infallible>().await
        };
        let mut ended = tokio::select! {
            ended = session.run_cell_at_terminal(code, live, until, terminal) => ended,
            never = pass_on(&keys, typed) => match never {},
            never = following => match never {},
            never = stopping => match never {},
        };
        drop(keys);
        if let Ok(end) = &mut ended {
            let unread = std::mem::take(&mut end.unread_input);
            self.typed_ahead(&String::from_utf8_lossy(&unread));
        }
        Ok((ended, began.elapsed()))
    }

    /// `is_new` is said where the user was not told yet that the last interpreter was lost.
    fn show(&mut self, code: &str, end: &CellEnd, is_new: bool) -> Result<()> {
        if end.is_restarted || is_new {
            self.talk
                .output
                .note("the interpreter was lost; this one is new and knows nothing");
        }
        if let Some(value) = &end.value_repr {
            let more = if end.truncated { "…" } else { "" };
            self.print(&format!("{value}{more}\n"))?;
        }
        let Some(exception) = end.exception.clone() else {
            self.failed_cell = None;
            return Ok(());
        };
        if end.leaves {
            self.leave_python();
            return Ok(());
        }
        show_traceback(&exception.traceback, &self.talk.output);
        if exception.is_interrupt() {
            self.failed_cell = None;
            return Ok(());
        }
        offer(&self.talk.output);
        self.last_command = None;
        let traceback = exception.traceback.trim_end();
        self.failed_cell = Some(FailedCell {
            line: code.lines().next().unwrap_or_default().to_owned(),
            details: Some(format!(
                "\n\n```python\n{code}\n```\n\n```\n{traceback}\n```"
            )),
        });
        Ok(())
    }

    /// Leaves Python mode, whose interpreter goes on: what is in it may have taken long to make. Lines
    /// that were to be entered there mean nothing elsewhere.
    fn leave_python(&mut self) {
        self.failed_cell = None;
        let dropped = std::mem::take(&mut self.queue).len();
        if self.mode() == Mode::Python {
            self.set_mode(Mode::Agent);
        }
        let output = &self.talk.output;
        output.note(LEFT);
        match dropped {
            0 => {}
            1 => output.note("1 line that was to follow is dropped"),
            count => output.note(&format!("{count} lines that were to follow are dropped")),
        }
    }
}

/// Passes on what is typed to the cell that has the terminal. Nothing is read that there is no room for.
async fn pass_on(keys: &Keys, typed: mpsc::Sender<Vec<u8>>) -> Infallible {
    while let Ok(room) = typed.reserve().await {
        room.send(keys.next().await);
    }
    pending().await
}

/// Hears of each Ctrl-C that interrupts the cell, and has its interpreter ended by one that comes late
/// enough.
async fn stop_when_told(
    interrupted: &Notify,
    session: &Session,
    end: &CancellationToken,
    output: &Output,
) -> Infallible {
    interrupted.notified().await;
    let first = Instant::now();
    tokio::select! {
        () = interrupted.notified() => {}
        () = sleep(TELL_AFTER) => {}
    }
    // The terminal is the cell's, which leaves the column to what writes.
    output.stderr("\r\n");
    output.note(HOW_TO_END);
    output.stderr("\r");
    loop {
        interrupted.notified().await;
        if first.elapsed() >= END_AFTER {
            end.cancel();
        }
        session.interrupt();
    }
}

/// The places dim, the last line in red, as recent versions of Python have it.
pub(super) fn show_traceback(text: &str, output: &Output) {
    let text = plain(text.trim_end());
    if !output.stderr_color {
        return output.stderr(&format!("{text}\n"));
    }
    let (places, last) = text.rsplit_once('\n').unwrap_or(("", &text));
    let places = match places {
        "" => String::new(),
        places => format!("\x1b[2m{places}\x1b[0m\n"),
    };
    output.stderr(&format!("{places}\x1b[31m{last}\x1b[0m\n"));
}

/// Names the key that asks the agent; a dumb terminal has none.
fn offer(output: &Output) {
    if !output.stderr_erases {
        return;
    }
    let offer = "Alt-A asks the agent about it";
    output.stderr(&match output.stderr_color {
        true => format!("\x1b[2m{offer}\x1b[0m\n"),
        false => format!("{offer}\n"),
    });
}
