//! A turn whose end is not recorded, as a session finds it.

use rondo_core::history::{History, OpenTurn};
use rondo_core::ports::Record;
use rondo_types::{Transcript, TurnId};

/// A turn whose end is not recorded.
pub(crate) struct CutOff {
    pub(crate) turn: TurnId,
    /// Its place in the session, from 1.
    pub(crate) number: u32,
    /// What was said before it.
    pub(crate) before: Transcript,
    /// Its own records.
    pub(crate) records: Vec<Record>,
    /// Whether they came from a file and nobody said that they may be gone on from.
    pub(crate) needs_consent: bool,
}

impl CutOff {
    /// Takes the records of the turn that a history ends within.
    pub(crate) fn new(history: &History, open: OpenTurn, records: Vec<Record>) -> Self {
        Self {
            turn: open.turn,
            number: open.number,
            before: history.before_open_turn(),
            records,
            needs_consent: false,
        }
    }
}
