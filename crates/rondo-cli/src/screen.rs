//! Shares the terminal between the view of a turn and a question to the user, and holds the line that is typed
//! below the view.

use rondo_types::QuestionId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a question waits for the view to step aside; a view that hangs on a stalled output must
/// not hold it up forever.
const ASIDE_TIMEOUT: Duration = Duration::from_millis(500);

/// The bound on lines that the view has yet to show.
const LINES_MAX: usize = 64;

/// A line that is being typed: the texts before and behind its caret.
pub(crate) type Typed = (String, String);

/// Lets the view, which draws on a thread of its own, step aside before a question is printed.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    aside: Arc<watch::Sender<bool>>,
    typed: Arc<watch::Sender<Typed>>,
    lines: Arc<Mutex<Vec<String>>>,
    /// Questions that a running call asks: no event tells the view of them.
    held: Arc<AtomicUsize>,
    /// The question that is on the terminal without an answer given there.
    open: Arc<Mutex<Option<QuestionId>>>,
}

/// Keeps the view aside until it is dropped.
#[derive(Debug)]
pub(crate) struct Held(Screen);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
        self.0.typed.send_modify(|_| ());
    }
}

impl Screen {
    /// Gives the terminal to the view.
    pub(crate) fn new() -> Self {
        Self {
            aside: Arc::new(watch::Sender::new(false)),
            typed: Arc::default(),
            lines: Arc::default(),
            held: Arc::default(),
            open: Arc::default(),
        }
    }

    /// Sets whether the view stands aside.
    pub(crate) fn set_aside(&self, aside: bool) {
        self.aside.send_replace(aside);
    }

    /// Records which question is on the terminal; none once it was answered there.
    pub(crate) fn set_open(&self, question: Option<QuestionId>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = question;
    }

    /// Returns whether a question was on the terminal until now without an answer given there.
    pub(crate) fn take_open(&self, question: &QuestionId) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.take_if(|open| open == question).is_some()
    }

    /// Makes the view step aside for a question without an event, and waits for that, within a bound.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn hold(&self) -> Held {
        self.held.fetch_add(1, Ordering::Relaxed);
        let held = Held(self.clone());
        self.typed.send_modify(|_| ());
        self.aside().await;
        held
    }

    /// Returns whether the view is to stand aside.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// Sets the line that is being typed, by the texts before and behind its caret.
    pub(crate) fn set_typed(&self, before: &str, after: &str) {
        self.typed
            .send_replace((before.to_owned(), after.to_owned()));
    }

    /// Returns whether a line is being typed.
    pub(crate) fn is_typing(&self) -> bool {
        let typed = self.typed.borrow();
        !(typed.0.is_empty() && typed.1.is_empty())
    }

    /// Asks the view to show a line of its own soon; beyond a bound, it is not shown.
    pub(crate) fn show_line(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < LINES_MAX {
            lines.push(line);
        }
        drop(lines);
        self.typed.send_modify(|_| ());
    }

    /// Takes the lines that the view is to show.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut lines)
    }

    /// Returns a receiver of each change of the line that is being typed.
    pub(crate) fn typed(&self) -> watch::Receiver<Typed> {
        self.typed.subscribe()
    }

    /// Waits until the view stands aside, within a bound.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn aside(&self) {
        let mut changes = self.aside.subscribe();
        let _ = timeout(ASIDE_TIMEOUT, changes.wait_for(|aside| *aside)).await;
    }
}
