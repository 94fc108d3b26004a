//! The trait of all views of a turn.

use crate::exit::Exit;
use crate::screen::Typed;
use rondo_types::{AskReason, CallId, Outcome, TurnEvent};
use serde::Serialize;
use serde_json::Value;
use std::io;
use tokio::sync::watch;

/// One way to show a turn. It runs on a thread that may block.
pub(crate) trait View: Send {
    /// Shows one event; the `result` is kept for [`View::finish`].
    ///
    /// # Errors
    /// When standard output takes nothing any more.
    fn event(&mut self, event: TurnEvent) -> io::Result<()>;

    /// Shows the elapsed time.
    fn tick(&mut self);

    /// Returns what tells of changes that want to be drawn at once, if anything does.
    fn changes(&self) -> Option<watch::Receiver<Typed>> {
        None
    }

    /// Shows how the turn ended.
    ///
    /// # Errors
    /// When standard output takes nothing any more.
    fn finish(&mut self, ending: &FinishedTurn<'_>) -> io::Result<()>;

    /// Shows that the turn waits for answers, and how the process will end.
    ///
    /// # Errors
    /// When standard output takes nothing any more.
    fn park(&mut self, exit: Exit) -> io::Result<()>;
}

/// How a turn ended.
pub(crate) struct FinishedTurn<'a> {
    /// Outcome of the turn.
    pub(crate) outcome: &'a Outcome,
    /// How the process will end.
    pub(crate) exit: Exit,
    /// The calls that were denied because there was no user to ask.
    pub(crate) denied: &'a [DeniedCall],
}

/// A call that was denied because there was no user to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeniedCall {
    pub(crate) id: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// Why it needed approval, for the hint.
    #[serde(skip)]
    pub(crate) reasons: Vec<AskReason>,
}
