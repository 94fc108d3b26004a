//! What the terminal sends, read by a task of its own.

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use std::io;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

/// Events that wait for the loop. What is typed beyond waits in the terminal.
const EVENTS_MAX: usize = 1024;

/// Reads keys, pastes and sizes until it is dropped.
pub(crate) struct Keyboard {
    events: Receiver<io::Result<Event>>,
    reading: JoinHandle<()>,
}

impl Keyboard {
    /// Reads from now on.
    pub(crate) fn listen() -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let reading = tokio::spawn(async move {
            let mut stream = EventStream::new();
            while let Some(event) = stream.next().await {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        Self { events, reading }
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

    /// Stops reading, and returns when nothing reads any more.
    pub(crate) async fn stop(self) {
        self.reading.abort();
        // It was cancelled, which is what is waited for.
        let _ = self.reading.await;
    }
}
