use rondo_core::history::{History, OpenTurn};
use rondo_core::ports::Record;
use rondo_types::{Transcript, TurnId};

/// A turn whose end is not recorded.
pub(super) struct CutOff {
    pub(super) turn: TurnId,
    /// Its place in the session, from 1.
    pub(super) number: u32,
    /// What was said before it.
    pub(super) before: Transcript,
    /// Its own records.
    pub(super) records: Vec<Record>,
}

impl CutOff {
    /// Takes the records of the turn that a history ends within.
    pub(super) fn new(history: &History, open: OpenTurn, records: Vec<Record>) -> Self {
        Self {
            turn: open.turn,
            number: open.number,
            before: history.before_open_turn(),
            records,
        }
    }
}
