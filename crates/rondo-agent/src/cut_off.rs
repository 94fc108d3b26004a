//! An interrupted turn, whose end is not recorded.

use rondo_core::history::{History, OpenTurn};
use rondo_core::ports::Record;
use rondo_types::{Transcript, TurnId};

/// An interrupted turn, whose end is not recorded.
pub(crate) struct CutOff {
    pub(crate) turn: TurnId,
    /// Its place in the session, from 1.
    pub(crate) number: u32,
    /// The messages before it.
    pub(crate) before: Transcript,
    /// Its own records.
    pub(crate) records: Vec<Record>,
    /// Set if the session was imported and the program has not yet agreed to resume it.
    pub(crate) needs_consent: bool,
}

impl CutOff {
    /// Builds it from the turn that a history ends with, and that turn's records.
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
