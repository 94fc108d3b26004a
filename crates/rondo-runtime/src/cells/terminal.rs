//! Terminal output of a kept shell, for a host that shows it.

use super::KeptShell;
use rondo_exec::shell::Keyboard;
use std::sync::PoisonError;
use tokio::sync::mpsc::{self, OwnedPermit, Receiver, Sender};

/// The bound on events that wait for the watcher; the command waits beyond.
pub const TERMINAL_EVENTS_MAX: usize = 64;

/// Event on a kept shell's terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    /// A command runs, and this is the way to its terminal's keyboard.
    Began(Keyboard),
    /// Output as a terminal gets it, escape sequences, invalid bytes and secrets included; at most 16 KiB.
    Output(Vec<u8>),
    /// The command is over, or was left to itself. Unread input comes back.
    Ended(Vec<u8>),
}

impl KeptShell {
    /// Returns the terminal's output from the next command on. An earlier watcher gets no more.
    ///
    /// The events must be taken: a command that writes waits for it.
    pub fn watch_terminal(&self) -> Receiver<TerminalEvent> {
        let (watcher, events) = mpsc::channel(TERMINAL_EVENTS_MAX);
        let mut current = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(watcher);
        events
    }

    /// Tells the watcher that a command runs. None if there is none.
    pub(crate) async fn watched(&self, keyboard: Keyboard) -> Option<WatchedTerminal> {
        let watcher = {
            let current = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
            current.clone()
        }?;
        // Its place is kept from the beginning on, so that the end is reported whatever happens.
        let end = watcher.clone().reserve_owned().await.ok()?;
        watcher.send(TerminalEvent::Began(keyboard)).await.ok()?;
        Some(WatchedTerminal {
            watcher,
            end: Some(end),
            unread: Vec::new(),
        })
    }
}

/// A command whose terminal is watched. Its end is reported when this is dropped.
pub(crate) struct WatchedTerminal {
    watcher: Sender<TerminalEvent>,
    end: Option<OwnedPermit<TerminalEvent>>,
    /// Typed input that was not read.
    pub(crate) unread: Vec<u8>,
}

impl WatchedTerminal {
    pub(crate) async fn output(&self, bytes: &[u8]) {
        // The watcher may be gone.
        let _ = self
            .watcher
            .send(TerminalEvent::Output(bytes.to_vec()))
            .await;
    }
}

impl Drop for WatchedTerminal {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(TerminalEvent::Ended(std::mem::take(&mut self.unread)));
        }
    }
}
