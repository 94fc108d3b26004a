//! Records the user's Python cells, and knows which of them ran in the current interpreter.

use super::talk::LineSession;
use crate::error::Result;
use rondo_python::{CellEnd, SessionError};
use rondo_runtime::cells;
use rondo_runtime::service::HostCell;
use std::time::Duration;

impl LineSession {
    /// Records that a cell is about to run. The first one begins the session. Returns `None` if nothing is kept.
    ///
    /// # Errors
    /// When it cannot be recorded; then the cell must not run.
    pub(super) async fn cell_starts(&mut self, code: &str) -> Result<Option<HostCell>> {
        if self.is_ephemeral() {
            return Ok(None);
        }
        self.hand_over();
        let cell = self.handle.begin_cell(code, &self.all_secrets()).await?;
        Ok(Some(cell))
    }

    /// Records how a cell ended, and whether the interpreter took the place of a lost one.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(super) async fn cell_ended(
        &mut self,
        cell: HostCell,
        ended: &std::result::Result<CellEnd, SessionError>,
        is_new: bool,
        took: Duration,
    ) -> Result<()> {
        let body = cells::cell_finished(ended, is_new, took, &self.all_secrets());
        let started = cell.started();
        let recorded = cell.end(body).await;
        if let Some(python) = &self.python {
            let mut presence = python.presence();
            match ended {
                Err(SessionError::Lost(_)) => presence.forget(),
                Ok(_) => {
                    let last = *recorded.as_ref().unwrap_or(&started);
                    presence.add(self.handle.id(), started, last);
                }
                Err(_) => {}
            }
        }
        recorded?;
        Ok(())
    }

    /// Notes which interpreter there is now, and returns whether one was lost since the last time.
    pub(super) fn sync_presence(&mut self) -> bool {
        self.python.as_ref().is_some_and(|it| it.sync())
    }
}
