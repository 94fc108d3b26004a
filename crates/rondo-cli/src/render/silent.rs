//! A view that shows nothing.

use super::view::{FinishedTurn, View};
use crate::exit::Exit;
use rondo_types::TurnEvent;
use std::io;

/// Shows nothing, for a turn whose end the command reports itself.
pub(crate) struct SilentView;

impl View for SilentView {
    fn event(&mut self, _: TurnEvent) -> io::Result<()> {
        Ok(())
    }

    fn tick(&mut self) {}

    fn finish(&mut self, _: &FinishedTurn<'_>) -> io::Result<()> {
        Ok(())
    }

    fn park(&mut self, _: Exit) -> io::Result<()> {
        Ok(())
    }
}
