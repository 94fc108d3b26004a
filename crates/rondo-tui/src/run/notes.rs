//! Notes of the runtime while the screen is open.

use rondo_runtime::Notices;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Maximum number of notes that wait for display; the oldest ones are dropped.
const NOTES_MAX: usize = 256;

/// Collects notes for the screen. Until it is open, they go to what shows them before.
pub struct Notes {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    notes: VecDeque<String>,
    /// Earlier notes.
    said: VecDeque<String>,
    /// The progress of a download.
    progress: Option<String>,
    /// Shows notes until the screen is open.
    before: Option<Arc<dyn Notices>>,
}

impl Notes {
    /// Builds a collector that hands notes on until the screen is open.
    #[must_use]
    pub fn new(before: Arc<dyn Notices>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                notes: VecDeque::new(),
                said: VecDeque::new(),
                progress: None,
                before: Some(before),
            }),
            changed: Notify::new(),
        })
    }

    /// Keeps notes for the screen from now on.
    pub fn collect(&self) {
        self.state().before = None;
    }

    /// Returns the current receiver of notes, if that is not the screen.
    fn before(&self) -> Option<Arc<dyn Notices>> {
        self.state().before.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Vec<String> {
        self.state().notes.drain(..).collect()
    }

    /// Returns the progress of a download, if there is one.
    pub(super) fn latest_progress(&self) -> Option<String> {
        self.state().progress.clone()
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Notices for Notes {
    fn note(&self, text: &str) {
        if let Some(before) = self.before() {
            self.state().said.push_back(text.to_owned());
            return before.note(text);
        }
        let mut state = self.state();
        // Each turn reads the settings again, and would say the same of them.
        if state.said.iter().any(|it| it == text) {
            return;
        }
        if state.said.len() >= NOTES_MAX {
            state.said.pop_front();
        }
        state.said.push_back(text.to_owned());
        if state.notes.len() >= NOTES_MAX {
            state.notes.pop_front();
        }
        state.notes.push_back(text.to_owned());
        drop(state);
        self.changed.notify_one();
    }

    fn can_ask(&self) -> bool {
        self.before().is_some_and(|it| it.can_ask())
    }

    fn progress(&self, text: Option<&str>) {
        if let Some(before) = self.before() {
            return before.progress(text);
        }
        self.state().progress = text.map(str::to_owned);
        self.changed.notify_one();
    }
}
