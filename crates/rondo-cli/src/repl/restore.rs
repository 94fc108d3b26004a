//! `/restore`: runs the cells of an earlier interpreter again in the current one.

use super::Repl;
use super::talk::LineSession;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::screen::Screen;
use rondo_core::ports::RecordBody;
use rondo_python::{NotRestored, RecordedCell, Restoration, RestoreOptions};
use rondo_runtime::sessions::{Cells, KeptCell};
use rondo_types::text::first_line;
use rondo_types::units::counted;
use std::convert::Infallible;
use std::fmt::Write as _;

/// Cells that are listed as not restored; more are counted.
const LISTED_MAX: usize = 50;
/// Characters of a cell's first line that such a list shows.
const LINE_CHARS_MAX: usize = 48;
/// And of what is said of it.
const WHY_CHARS_MAX: usize = 160;
/// Names that are listed as gone.
const NAMES_MAX: usize = 20;

/// The cells of a session that ran, by whether that was in the interpreter that there is.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// In this one.
    pub(super) here: Vec<KeptCell>,
    /// In one of before.
    pub(super) elsewhere: Vec<KeptCell>,
}

impl LineSession {
    /// Reads which cells of the session ran where.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn sorted_cells(&mut self) -> Result<Sorted> {
        self.sync_presence();
        if self.is_ephemeral() || self.handle.info()?.is_none() {
            return Ok(Sorted::default());
        }
        let session = self.handle.id();
        let cells = Cells::read(self.handle.store(), session)?;
        if cells.left_out > 0 {
            let note = format!("{} cells are too many to be looked at", cells.left_out);
            self.output.note(&note);
        }
        let presence = self.python.as_ref().map(|it| it.presence());
        let is_here = |it: &KeptCell| {
            let presence = presence.as_ref();
            presence.is_some_and(|known| known.holds(session, it.seq, cells.lost_at))
        };
        let ran = cells.kept.iter().filter(|it| it.may_have_run()).cloned();
        let (here, elsewhere) = ran.partition(is_here);
        Ok(Sorted { here, elsewhere })
    }
}

impl Repl {
    /// Says that cells of the session are not in the interpreter, where that is so.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn tell_cells(&mut self) -> Result<()> {
        let count = self.talk.sorted_cells()?.elsewhere.len();
        if count > 0 {
            let (cells, are) = of_cells(count);
            self.talk.output.note(&format!(
                "{cells} of the session {are} not in this interpreter: `/restore` runs them again"
            ));
        }
        Ok(())
    }

    /// Runs the session's cells again that are not in the interpreter, or those that are named by
    /// their numbers, whatever is known of them.
    ///
    /// # Errors
    /// When there is no such cell, or they cannot be run.
    pub(super) async fn restore(&mut self, rest: &str) -> Result<()> {
        let named = numbers(rest)?;
        self.has_session()?;
        self.started_python().await?;
        let Sorted { here, elsewhere } = self.talk.sorted_cells()?;
        let is_named = |it: &KeptCell| named.contains(&it.cell.number);
        let cells: Vec<KeptCell> = match named.is_empty() {
            true => elsewhere,
            false => {
                let mut all: Vec<_> = here.iter().chain(&elsewhere).cloned().collect();
                all.retain(is_named);
                all.sort_by_key(|it| it.seq);
                all
            }
        };
        let known = |number: &&u32| !cells.iter().any(|it| it.cell.number == **number);
        if let Some(unknown) = named.iter().find(known) {
            let message = format!("the session has no cell {unknown} that ran");
            return Err(CliError::new(Exit::Usage, message));
        }
        if cells.is_empty() {
            return self.print("every cell of the session is in this interpreter\n");
        }
        if named.is_empty() && !here.is_empty() {
            let (ran, _) = of_cells(here.len());
            let note = format!("{ran} ran here already: what is run again comes after that");
            self.talk.output.note(&note);
        }
        let done = self.run_again(&cells, !named.is_empty()).await?;
        self.report(&cells, &done)
    }

    /// Refuses where there is nothing to restore from.
    fn has_session(&self) -> Result<()> {
        let message = match self.talk.handle.info()? {
            _ if self.talk.is_ephemeral() => "nothing is kept of this session",
            None => "the session has no cells yet",
            Some(_) => return Ok(()),
        };
        Err(CliError::new(Exit::NoSession, message))
    }

    /// Has an interpreter there, and knows which.
    async fn started_python(&mut self) -> Result<()> {
        let python = self.talk.python()?;
        let started = python.ensure_started().await;
        started.map_err(|err| CliError::caused(Exit::Error, anyhow::Error::new(err)))?;
        self.talk.sync_presence();
        Ok(())
    }

    /// Runs cells again in the interpreter that there is, and records that. Ctrl-C stops it; a second
    /// one ends the interpreter.
    ///
    /// # Errors
    /// When they cannot be run, or that cannot be recorded.
    pub(super) async fn run_again(
        &mut self,
        cells: &[KeptCell],
        force: bool,
    ) -> Result<Restoration> {
        let python = self.talk.python()?;
        let (what, _) = of_cells(cells.len());
        self.talk.output.note(&format!(
            "running {what} again, with what they do to files, the network and processes; Ctrl-C stops"
        ));
        let seqs = cells.iter().map(|it| it.seq).collect();
        self.talk.hand_over();
        let repeating = self.talk.handle.begin_repeating(seqs).await?;
        let options = RestoreOptions {
            force,
            secrets: self.talk.all_secrets(),
            ..RestoreOptions::default()
        };
        let recorded: Vec<RecordedCell> = cells.iter().map(|it| it.cell.clone()).collect();
        let mut keyboard = self.talk.keyboard(Screen::new())?;
        let stopping = async {
            keyboard.stopped().await;
            options.stop.cancel();
            keyboard.stopped().await;
            options.cancel.cancel();
            std::future::pending::<Infallible>().await
        };
        let done = tokio::select! {
            done = python.restore(&recorded, &options) => done,
            never = stopping => match never {},
        };
        let typed = keyboard.take_typed();
        drop(keyboard);
        self.typed_ahead(&typed);
        let done = done.map_err(|err| CliError::caused(Exit::Error, anyhow::Error::new(err)))?;
        self.note_repeated(cells, &done);
        let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
        let body = RecordBody::CellsRepeated {
            repeated: count(done.repeated.len()),
            not_restored: count(done.not_restored.len()),
        };
        repeating.end(body).await?;
        Ok(done)
    }

    fn note_repeated(&mut self, cells: &[KeptCell], done: &Restoration) {
        self.talk.sync_presence();
        let Some(python) = &self.talk.python else {
            return;
        };
        let mut presence = python.presence();
        if done.is_lost {
            return presence.forget();
        }
        let again = cells
            .iter()
            .filter(|it| done.repeated.contains(&it.cell.number));
        presence.repeat(self.talk.handle.id(), again.map(|it| it.seq));
    }

    /// Says what came of it.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub(super) fn report(&mut self, cells: &[KeptCell], done: &Restoration) -> Result<()> {
        let (ran, all) = (done.repeated.len(), cells.len());
        let stopped = match (done.is_lost, done.is_stopped) {
            (true, _) => "; the interpreter was lost on the way, and what they left with it",
            (false, true) => "; it was stopped there",
            (false, false) => "",
        };
        self.talk
            .output
            .note(&format!("{ran} of {all} ran again{stopped}"));
        self.tell(&listed(cells, &done.not_restored))
    }

    /// Says which names were there and are not.
    ///
    /// # Errors
    /// When the interpreter cannot be asked, or it cannot be printed.
    pub(super) async fn report_gone(&mut self, before: Vec<String>) -> Result<()> {
        let python = self.talk.python()?;
        let Ok(now) = python.global_names().await else {
            return Ok(());
        };
        let gone: Vec<String> = before.into_iter().filter(|it| !now.contains(it)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let shown = gone.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>();
        let more = match gone.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.tell(&format!(
            "  not there any more: {}{more}\n",
            shown.join(", ")
        ))
    }
}

/// Returns `3 Python cells`, and the verbs that go with it.
fn of_cells(count: usize) -> (String, &'static str) {
    let verb = if count == 1 { "is" } else { "are" };
    (counted(count, "Python cell"), verb)
}

fn numbers(rest: &str) -> Result<Vec<u32>> {
    let parse = |word: &str| {
        word.parse().map_err(|_| {
            let message = format!("`{word}` is no number of a cell");
            CliError::new(Exit::Usage, message).hint("`/restore` without one runs them all again")
        })
    };
    rest.split_whitespace().map(parse).collect()
}

fn listed(cells: &[KeptCell], missed: &[NotRestored]) -> String {
    let mut text = String::new();
    if missed.is_empty() {
        return text;
    }
    text.push_str("not restored:\n");
    for missed in missed.iter().take(LISTED_MAX) {
        let number = missed.number;
        let cell = cells.iter().find(|it| it.cell.number == number);
        let code = cell.map_or("", |it| it.cell.code.trim());
        let line = first_line(code, LINE_CHARS_MAX);
        let why = first_line(&missed.why.to_string(), WHY_CHARS_MAX);
        let _ = writeln!(text, "  {number}  {line}\n     {why}");
    }
    let more = missed.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    if missed.iter().any(|it| it.why.can_be_forced()) {
        text.push_str("`/restore NUMBER` runs one of them all the same.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::Seq;
    use rondo_python::Why;

    #[test]
    fn what_was_not_restored_is_listed_by_number_and_first_line() {
        let cell = |number: u32, code: &str| KeptCell {
            seq: Seq(number.into()),
            cell: RecordedCell {
                number,
                code: code.to_owned(),
                changed: None,
                ending: None,
                has_read_input: false,
                timeout: None,
            },
        };
        let cells = [cell(1, "x = 1"), cell(2, "for n in x:\n    send(n)")];
        assert_eq!(listed(&cells, &[]), "");
        let missed = |why| [NotRestored { number: 2, why }];
        let text = listed(&cells, &missed(Why::NotReached));
        let expected =
            "not restored:\n  2  for n in x:…\n     not run: this was stopped before it\n";
        assert_eq!(text, expected);
        let text = listed(&cells, &missed(Why::EndNotRecorded));
        assert!(text.ends_with("`/restore NUMBER` runs one of them all the same.\n"));
        let many = vec![missed(Why::NotReached)[0].clone(); LISTED_MAX + 3];
        assert!(listed(&cells, &many).ends_with("  and 3 more\n"));
    }

    #[test]
    fn cells_are_named_by_numbers() {
        assert!(numbers("").unwrap().is_empty());
        assert_eq!(numbers(" 3 12").unwrap(), [3, 12]);
        assert!(numbers("x").is_err());
    }
}
