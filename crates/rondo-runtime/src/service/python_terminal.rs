//! The terminal of a live Python session's cells, for a host that shows them.

use rondo_launch::PtySize;
use rondo_python::{CellTerminal, TerminalSize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// The bound on pieces of input that wait for a cell that does not read.
pub const PYTHON_KEYS_MAX: usize = 256;

/// Terminal of a person who runs cells: typed input is read by the running cell.
#[derive(Debug)]
pub struct PythonTerminal {
    keys: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    size: watch::Sender<TerminalSize>,
}

impl Default for PythonTerminal {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            size: watch::Sender::new(size_of(PtySize::default())),
        }
    }
}

impl PythonTerminal {
    /// Types bytes for the cell that runs. Returns whether they will come to it.
    pub fn input(&self, bytes: Vec<u8>) -> bool {
        let keys = self.keys().clone();
        keys.is_some_and(|it| it.try_send(bytes).is_ok())
    }

    /// Gives it another size, which is passed to the cell that runs.
    pub fn resize(&self, size: PtySize) {
        self.size.send_if_modified(|current| {
            let before = std::mem::replace(current, size_of(size));
            before != *current
        });
    }

    /// Returns it as a cell has it, until the second is dropped.
    pub(super) fn of_cell(self: &Arc<Self>) -> (CellTerminal, TerminalLoan) {
        let (typed, keys) = mpsc::channel(PYTHON_KEYS_MAX);
        *self.keys() = Some(typed);
        let terminal = CellTerminal {
            keys,
            size: self.size.subscribe(),
            interrupted: Arc::default(),
        };
        (terminal, TerminalLoan(Arc::clone(self)))
    }

    fn keys(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<u8>>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A terminal that a cell has. Nothing is typed for it once this is dropped.
pub(super) struct TerminalLoan(Arc<PythonTerminal>);

impl Drop for TerminalLoan {
    fn drop(&mut self) {
        *self.0.keys() = None;
    }
}

fn size_of(size: PtySize) -> TerminalSize {
    TerminalSize {
        rows: size.rows,
        columns: size.columns,
    }
}
