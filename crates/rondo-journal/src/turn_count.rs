//! Counts the turns of a session as records are appended.

use crate::error::JournalError;
use crate::read::{self, SessionRow};
use rondo_core::ports::{Entry, RecordBody, Seq};
use rusqlite::Connection;
use std::ops::ControlFlow;

/// Facts about a session's turns for a list, without reading its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TurnCount {
    pub(crate) turns: u32,
    /// Set if the last turn has no end.
    pub(crate) open: bool,
}

impl TurnCount {
    /// Counts a session's records up to and with one.
    pub(crate) fn up_to(
        connection: &Connection,
        session: &SessionRow,
        last: Seq,
    ) -> Result<Self, JournalError> {
        let mut tally = Self::default();
        let mut take = |entry: Entry| {
            tally.note_entry(&entry);
            ControlFlow::Continue(())
        };
        read::read_range(connection, session, (Seq(1), last), &mut take)?;
        Ok(tally)
    }

    pub(crate) fn note_entry(&mut self, entry: &Entry) {
        self.note_kind(&entry.kind());
    }

    pub(crate) fn note(&mut self, body: &RecordBody) {
        match body {
            RecordBody::TurnStarted { .. } => self.note_kind("turn_started"),
            RecordBody::Final { .. } => self.note_kind("final"),
            _ => {}
        }
    }

    fn note_kind(&mut self, kind: &str) {
        match kind {
            "turn_started" => {
                self.turns = self.turns.saturating_add(1);
                self.open = true;
            }
            "final" => self.open = false,
            _ => {}
        }
    }
}
