//! Running a session's Python cells again in the live session that is lent to it.

use super::cells::not_lent;
use super::handle::SessionHandle;
use super::lent::LentPython;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::sessions::{Cells, KeptCell};
use rondo_core::ports::RecordBody;
use rondo_core::redact::Secrets;
use rondo_python::{RecordedCell, Restoration, RestoreOptions};
use rondo_types::units::counted;
use std::convert::Infallible;

/// The cells of a session that ran, by whether that was in the interpreter that there is.
#[derive(Debug, Default)]
pub struct SortedCells {
    /// In this one.
    pub here: Vec<KeptCell>,
    /// In an earlier one.
    pub elsewhere: Vec<KeptCell>,
}

impl SessionHandle {
    /// Returns the session's Python cells that ran, by whether that was in the interpreter that is lent to it.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn sorted_cells(&self) -> Result<SortedCells> {
        if self.info()?.is_none() {
            return Ok(SortedCells::default());
        }
        let cells = Cells::read(self.store(), self.id())?;
        if cells.left_out > 0 {
            let note = format!("{} cells are too many to check", cells.left_out);
            self.entry.service.runtime.notices().note(&note);
        }
        let lent = self.python();
        let presence = lent.as_ref().map(|it| {
            it.sync();
            it.presence()
        });
        let is_here = |it: &KeptCell| {
            let presence = presence.as_ref();
            presence.is_some_and(|known| known.holds(self.id(), it.seq, cells.lost_at))
        };
        let ran = cells.kept.iter().filter(|it| it.may_have_run()).cloned();
        let (here, elsewhere) = ran.partition(is_here);
        Ok(SortedCells { here, elsewhere })
    }

    /// Runs cells of the session again in the live Python session that is lent to it, and records that. With `force`, also
    /// those that are left out otherwise, such as interrupted ones. [`cancel`](Self::cancel) skips the rest; two seconds after
    /// the first time, it ends the interpreter.
    ///
    /// # Errors
    /// When no live session is lent, it cannot be started, or the session cannot be taken.
    ///
    /// # Cancel safety
    /// Not cancel safe: the cell that runs continues, and how far they came is not recorded.
    pub async fn repeat_cells(
        &self,
        cells: &[KeptCell],
        force: bool,
        secrets: Secrets,
    ) -> Result<Restoration> {
        let lent = self
            .python()
            .ok_or_else(|| not_lent("live Python session"))?;
        let failed = |err| SetupError::caused(SetupErrorKind::Other, err);
        lent.session().ensure_started().await.map_err(failed)?;
        lent.sync();
        let cell = self
            .begin_repeating(cells.iter().map(|it| it.seq).collect())
            .await?;
        let what = counted(cells.len(), "Python cell");
        self.entry.service.runtime.notices().note(&format!(
            "running {what} again, with what they do to files, the network and processes; Ctrl-C stops"
        ));
        let options = RestoreOptions {
            force,
            secrets,
            cancel: cell.given_up(),
            ..RestoreOptions::default()
        };
        let recorded: Vec<RecordedCell> = cells.iter().map(|it| it.cell.clone()).collect();
        let stopping = async {
            cell.interrupted().await;
            options.stop.cancel();
            std::future::pending::<Infallible>().await
        };
        let done = tokio::select! {
            done = lent.session().restore(&recorded, &options) => done.map_err(failed)?,
            never = stopping => match never {},
        };
        self.note_repeated(&lent, cells, &done);
        let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
        let body = RecordBody::CellsRepeated {
            repeated: count(done.repeated.len()),
            not_restored: count(done.not_restored.len()),
        };
        cell.end(body).await?;
        Ok(done)
    }

    /// Records which cells are in the interpreter now.
    fn note_repeated(&self, lent: &LentPython, cells: &[KeptCell], done: &Restoration) {
        lent.sync();
        let mut presence = lent.presence();
        if done.is_lost {
            return presence.forget();
        }
        let ran = cells
            .iter()
            .filter(|it| done.repeated.contains(&it.cell.number));
        presence.repeat(self.id(), ran.map(|it| it.seq));
    }
}
