//! What the terminal sends, read by a thread of its own.

use crossterm::event::{self, Event, EventStream};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Events that wait for the loop. What is typed beyond waits in the terminal.
const EVENTS_MAX: usize = 1024;
/// How long the thread waits at once, so that it hardly ever wakes where nothing is typed.
const WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads keys, pastes and sizes until it is dropped.
pub(crate) struct Keyboard {
    events: Receiver<io::Result<Event>>,
    is_over: Arc<AtomicBool>,
    /// Nothing is read from it, which would take a wait for each key: dropping it ends the thread's wait, for which
    /// crossterm has no other way.
    waker: Option<EventStream>,
}

impl Keyboard {
    /// Reads from now on.
    pub(crate) fn listen() -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let waker = Some(EventStream::new());
        let is_asked = Arc::clone(&is_over);
        // Without the thread, the sender is dropped: no event comes, as if the terminal were gone.
        let _ = thread::Builder::new().spawn(move || read(&sender, &is_asked));
        Self {
            events,
            is_over,
            waker,
        }
    }

    /// Waits for the next event; none where the terminal is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }

    /// Returns the next event, where it is there already.
    pub(crate) fn at_once(&mut self) -> Option<Event> {
        self.events.try_recv().ok()?.ok()
    }

    /// Stops reading, and returns when nothing reads any more. What was read and not taken is lost.
    pub(crate) async fn stop(mut self) {
        self.end();
        while self.events.recv().await.is_some() {}
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.waker = None;
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends what is read until it is over, or nobody takes it.
fn read(events: &Sender<io::Result<Event>>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let event = match event::poll(WAIT) {
            Ok(true) => event::read(),
            Ok(false) => continue,
            Err(err) => Err(err),
        };
        let has_failed = event.is_err();
        if events.blocking_send(event).is_err() || has_failed {
            return;
        }
    }
}
