//! Who has the terminal: the view, or a question.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a question waits for the view to step aside; a view that hangs on a stalled output must
/// not hold it up for ever.
const ASIDE_TIMEOUT: Duration = Duration::from_millis(500);

/// Lets the view, which draws on a thread of its own, step aside before a question is printed.
#[derive(Debug, Clone)]
pub(crate) struct Screen(Arc<watch::Sender<bool>>);

impl Screen {
    /// Gives the terminal to the view.
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Says whether the view stands aside.
    pub(crate) fn set_aside(&self, aside: bool) {
        self.0.send_replace(aside);
    }

    /// Waits until the view stands aside, within a bound.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn aside(&self) {
        let mut changes = self.0.subscribe();
        let _ = timeout(ASIDE_TIMEOUT, changes.wait_for(|aside| *aside)).await;
    }
}
