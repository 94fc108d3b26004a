//! Cells that ran in an earlier interpreter, and running them again.

use super::Repl;
use crate::error::Result;
use crate::screen::Screen;
use crate::slash::restore::report;
use rondo_runtime::sessions::KeptCell;
use rondo_types::units::counted;
use std::convert::Infallible;

/// Names that are listed as gone.
const NAMES_MAX: usize = 20;

impl Repl {
    /// Says that cells of the session are not in the interpreter, where that is so.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn tell_cells(&mut self) -> Result<()> {
        self.talk.hand_over();
        if self.talk.is_ephemeral() {
            return Ok(());
        }
        let count = self.talk.handle.sorted_cells()?.elsewhere.len();
        if count > 0 {
            let (cells, are) = (
                counted(count, "Python cell"),
                if count == 1 { "is" } else { "are" },
            );
            self.talk.output.note(&format!(
                "{cells} of the session {are} not in this interpreter: `/restore` runs them again"
            ));
        }
        Ok(())
    }

    /// Does what runs cells in the interpreter. Ctrl-C stops it; a second one, two seconds after the first, ends the
    /// interpreter.
    ///
    /// # Errors
    /// When it fails, or the terminal is gone.
    pub(super) async fn stoppable<T>(
        &mut self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut keyboard = self.talk.keyboard(Screen::new())?;
        let session = self.talk.handle.clone();
        let stopping = async {
            loop {
                keyboard.stopped().await;
                // Without the mailbox, the cells end by themselves.
                let _ = session.cancel().await;
            }
        };
        let done = tokio::select! {
            done = work => done,
            never = stopping => {
                let never: Infallible = never;
                match never {}
            }
        };
        let typed = keyboard.take_typed();
        drop(keyboard);
        self.typed_ahead(&typed);
        done
    }

    /// Runs cells again in the interpreter that there is, and says what came of it.
    ///
    /// # Errors
    /// When they cannot be run, or that cannot be recorded.
    pub(super) async fn run_again(&mut self, cells: &[KeptCell]) -> Result<()> {
        self.talk.python()?;
        self.talk.hand_over();
        let (session, secrets) = (self.talk.handle.clone(), self.talk.all_secrets());
        let work = async { Ok(session.repeat_cells(cells, false, secrets).await?) };
        let done = self.stoppable(work).await?;
        self.tell(&format!("{}\n", report(cells, &done)))
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
