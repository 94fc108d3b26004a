//! Records the user's Python cells, and knows which of them ran in the current interpreter.

use super::talk::AgentChat;
use crate::error::Result;
use rondo_core::ports::Seq;
use rondo_python::{CellEnd, SessionError};
use rondo_runtime::cells;
use std::time::Duration;

impl AgentChat {
    /// Records that a cell is about to run, and returns the record's place when it is durable. The
    /// first one begins the session. None where nothing is kept.
    ///
    /// # Errors
    /// When it cannot be recorded; then the cell must not run.
    pub(super) async fn cell_starts(&mut self, code: &str) -> Result<Option<Seq>> {
        let secrets = self.all_secrets();
        Ok(self.session.cell_starts(code, &secrets).await?)
    }

    /// Records how a cell ended, and whether the interpreter took the place of a lost one.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(super) async fn cell_ended(
        &mut self,
        started: Seq,
        ended: &std::result::Result<CellEnd, SessionError>,
        is_new: bool,
        took: Duration,
    ) -> Result<()> {
        let body = cells::cell_finished(ended, is_new, took, &self.all_secrets());
        let has_run = ended.is_ok();
        let Some(conversation) = self.current() else {
            return Ok(());
        };
        let session = conversation.session.clone();
        let recorded = conversation.record(body).await;
        if let Err(SessionError::Lost(_)) = ended {
            self.presence.forget();
        }
        if has_run {
            let last = *recorded.as_ref().unwrap_or(&started);
            self.presence.add(&session, started, last);
        }
        recorded?;
        Ok(())
    }

    /// Notes which interpreter there is now, and returns whether one was lost since the last time.
    pub(super) fn sync_presence(&mut self) -> bool {
        let started = self.python.as_ref().map(|it| it.interpreters_started());
        self.presence.sync(started.unwrap_or_default())
    }
}
