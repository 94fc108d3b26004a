use crate::entry::Entry;
use rondo_core::ports::RecordBody;

/// What a list says of a session's turns without reading its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) turns: u32,
    /// Whether the last turn has no end.
    pub(crate) open: bool,
}

impl Tally {
    /// Counts entries from the first on.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            tally.note_kind(&entry.kind());
        }
        tally
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
