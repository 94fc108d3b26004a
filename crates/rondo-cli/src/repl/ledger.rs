//! Tokens, cost and steps of a session's turns, collected while they run.

use crate::exit::Exit;
use crate::render::{FinishedTurn, View};
use crate::screen::Typed;
use rondo_runtime::view::Totals;
use rondo_types::TurnEvent;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The totals of a session, shared between the prompt and the view of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Books(Arc<Mutex<Totals>>);

impl Books {
    /// Opens the books.
    pub(super) fn open(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was counted.
    pub(super) fn clear(&self) {
        *self.open() = Totals::default();
    }
}

/// A view that keeps the books too.
pub(super) struct BookkeepingView<V> {
    inner: V,
    books: Books,
}

impl<V> BookkeepingView<V> {
    pub(super) fn new(inner: V, books: Books) -> Self {
        Self { inner, books }
    }
}

impl<V: View> View for BookkeepingView<V> {
    fn event(&mut self, event: TurnEvent) -> io::Result<()> {
        self.books.open().event(&event);
        self.inner.event(event)
    }

    fn tick(&mut self) {
        self.inner.tick();
    }

    fn changes(&self) -> Option<watch::Receiver<Typed>> {
        self.inner.changes()
    }

    fn finish(&mut self, ending: &FinishedTurn<'_>) -> io::Result<()> {
        self.inner.finish(ending)
    }

    fn park(&mut self, exit: Exit) -> io::Result<()> {
        self.inner.park(exit)
    }
}
