//! Python mode: one interpreter that the user and the agent share.

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

/// A cell that failed, for whoever is asked about it.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    code: String,
    exception: Exception,
}

impl Repl {
    /// Runs a cell and shows what comes of it as Python does. It is recorded before it runs, and when
    /// it has ended. Ctrl-C interrupts it; a second one ends the interpreter.
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
            OutputStream::Stdout => drop(output.stdout(&text)),
            OutputStream::Stderr => output.stderr(&text),
        });
        let until = Until::default();
        let cancel = until.cancel.clone();
        let mut keyboard = self.talk.keyboard(Screen::new())?;
        let stopping = async {
            keyboard.stopped().await;
            session.interrupt();
            keyboard.stopped().await;
            cancel.cancel();
            std::future::pending::<Infallible>().await
        };
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
        self.failed_cell = Some(Failed {
            code: code.to_owned(),
            exception,
        });
        Ok(())
    }

    /// Asks the agent about the cell that failed last.
    ///
    /// # Errors
    /// When none has, or nobody can be asked.
    pub(super) async fn ask_about_failure(&mut self) -> Result<After> {
        let Some(failed) = self.failed_cell.clone() else {
            return Err(CliError::new(Exit::Usage, "no cell has failed"));
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
