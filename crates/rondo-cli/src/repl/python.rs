//! Python mode: one interpreter that the user and the agent share.

use super::keyboard::Keyboard;
use super::shell::LastCommand;
use super::{After, Repl};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::sanitize::plain;
use crate::screen::Screen;
use rondo_python::{
    Capability, CellEnd, Exception, LiveOutput, OutputStream, Session, SessionError, Until,
};
use rondo_types::ToolOutcome;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What is asked about a command of shell mode that failed; what it printed goes along.
const ABOUT_COMMAND: &str = "This command of mine failed. Say why, and how to put it right.";
/// How long a cell may take to end by an interrupt before the user reads what else there is.
const TELL_AFTER: Duration = Duration::from_millis(500);
/// A Ctrl-C this soon after the first is impatience, and ends no interpreter.
const END_AFTER: Duration = Duration::from_secs(2);
const HOW_TO_END: &str = "interrupted, and still running: Ctrl-C again, two seconds after the first, ends the interpreter and loses its variables";

/// A cell that failed, for whoever is asked about it.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    code: String,
    exception: Exception,
}

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
        // Whoever looks at the value need not wait for the disk.
        let shown = match &ended {
            Ok(end) => self.show(code, end, is_new),
            Err(_) => Ok(()),
        };
        if let Some(started) = started {
            self.talk.cell_ended(started, &ended, is_new, took).await?;
        }
        ended.map_err(|err| CliError::caused(Exit::Error, anyhow::Error::new(err)))?;
        shown.map(|()| After::Prompt)
    }

    async fn watched_cell(
        &mut self,
        session: &Session,
        code: &str,
    ) -> Result<(std::result::Result<CellEnd, SessionError>, Duration)> {
        let began = Instant::now();
        let output = self.talk.output;
        let live = LiveOutput::new(move |stream, text| match stream {
            OutputStream::Stdout => drop(output.styled(&text)),
            OutputStream::Stderr => output.stderr(&text),
        });
        let until = Until::default();
        let cancel = until.cancel.clone();
        let mut keyboard = self.talk.keyboard(Screen::new())?;
        let stopping = stop_when_told(&mut keyboard, session, &cancel, &output);
        let ended = tokio::select! {
            ended = session.run_cell(code, live, until) => ended,
            never = stopping => match never {},
        };
        let typed = keyboard.take_typed();
        drop(keyboard);
        self.typed_ahead(&typed);
        Ok((ended, began.elapsed()))
    }

    /// `is_new` is said where nobody else was told that the last interpreter was lost.
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
        show_traceback(&exception, &self.talk.output);
        if exception.is_interrupt() {
            self.failed_cell = None;
            return Ok(());
        }
        offer(&self.talk.output);
        self.last_command = None;
        self.failed_cell = Some(Failed {
            code: code.to_owned(),
            exception,
        });
        Ok(())
    }

    /// Asks the agent about the cell or the command of shell mode that failed last.
    ///
    /// # Errors
    /// When none has, or nobody can be asked.
    pub(super) async fn ask_about_failure(&mut self) -> Result<After> {
        if self
            .last_command
            .as_ref()
            .is_some_and(LastCommand::has_failed)
        {
            self.attach_last_command();
            let over = self.talk.ask(ABOUT_COMMAND).await?;
            return Ok(self.turn_over(over));
        }
        let Some(failed) = self.failed_cell.clone() else {
            let message = "neither a command of shell mode nor a cell has failed last";
            return Err(CliError::new(Exit::Usage, message));
        };
        let Failed { code, exception } = failed;
        let question = format!(
            "This Python cell of mine failed. Say why, and how to put it right.\n\n```python\n{code}\n```\n\n```\n{}\n```",
            exception.traceback.trim_end()
        );
        let over = self.talk.ask(&question).await?;
        Ok(self.turn_over(over))
    }

    /// Shows the exception that was raised last.
    ///
    /// # Errors
    /// When the interpreter cannot be asked.
    pub(super) async fn last_error(&mut self) -> Result<()> {
        let session = self.talk.python()?;
        let last = session.last_exception().await;
        match last.map_err(|err| CliError::caused(Exit::Error, anyhow::Error::new(err)))? {
            Some(exception) => {
                show_traceback(&exception, &self.talk.output);
                Ok(())
            }
            None => self.print("nothing was raised\n"),
        }
    }

    /// Shows what is known of an expression.
    ///
    /// # Errors
    /// When the interpreter cannot be asked.
    pub(super) async fn inspect(&mut self, expression: &str) -> Result<()> {
        if expression.is_empty() {
            return Err(CliError::new(Exit::Usage, "`/inspect` takes a name"));
        }
        let session = self.talk.python()?;
        let arguments = json!({"expr": expression});
        let capability = Capability::Inspect;
        let told = session.call(capability, &arguments, Until::default()).await;
        self.print(&inspected(&told))
    }
}

/// Interrupts the cell at each Ctrl-C, and has its interpreter ended by one that comes late enough.
async fn stop_when_told(
    keyboard: &mut Keyboard,
    session: &Session,
    end: &CancellationToken,
    output: &Output,
) -> Infallible {
    keyboard.stopped().await;
    session.interrupt();
    let first = Instant::now();
    tokio::select! {
        () = keyboard.stopped() => session.interrupt(),
        () = sleep(TELL_AFTER) => {}
    }
    output.note(HOW_TO_END);
    loop {
        keyboard.stopped().await;
        if first.elapsed() >= END_AFTER {
            end.cancel();
        }
        session.interrupt();
    }
}

/// Returns what is known of a value, one thing after another.
fn inspected(told: &ToolOutcome) -> String {
    let parts = match told {
        ToolOutcome::Ok(output) => output.value.as_object(),
        ToolOutcome::Error(error) => return format!("{}\n", error.message),
    };
    let mut text = String::new();
    for (name, part) in parts.into_iter().flatten() {
        let shown = match part.get("qualified").or(part.get(name)).unwrap_or(part) {
            Value::Null => continue,
            Value::String(shown) => shown.trim_end().to_owned(),
            Value::Array(items) => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                items.join(" ")
            }
            other => other.to_string(),
        };
        let gap = if shown.contains('\n') { "\n" } else { " " };
        let _ = writeln!(text, "{name}:{gap}{shown}");
    }
    text
}

/// The places dim, the last line in red, as recent versions of Python have it.
fn show_traceback(exception: &Exception, output: &Output) {
    let text = plain(exception.traceback.trim_end());
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

fn offer(output: &Output) {
    let offer = "Alt-A asks the agent about it";
    output.stderr(&match output.stderr_color {
        true => format!("\x1b[2m{offer}\x1b[0m\n"),
        false => format!("{offer}\n"),
    });
}
