use crate::repl::mode::Mode;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the parts of the line editor, which it owns one by one, know together.
#[derive(Debug, Clone)]
pub(in crate::repl) struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    mode: Mode,
    /// The line as it was painted last.
    line: String,
    /// Keys came since then.
    is_stale: bool,
    directory: PathBuf,
}

impl Shared {
    /// Begins in a mode.
    pub(in crate::repl) fn new(mode: Mode) -> Self {
        Self(Arc::new(Mutex::new(State {
            mode,
            line: String::new(),
            is_stale: false,
            directory: PathBuf::new(),
        })))
    }

    /// Returns the mode.
    pub(in crate::repl) fn mode(&self) -> Mode {
        self.state().mode
    }

    /// Changes the mode.
    pub(in crate::repl) fn set_mode(&self, mode: Mode) {
        self.state().mode = mode;
    }

    /// Says where paths begin.
    pub(in crate::repl) fn set_directory(&self, directory: PathBuf) {
        self.state().directory = directory;
    }

    /// Returns where paths begin.
    pub(super) fn directory(&self) -> PathBuf {
        self.state().directory.clone()
    }

    /// Notes the line as it is painted.
    pub(super) fn painted(&self, line: &str) {
        let mut state = self.state();
        line.clone_into(&mut state.line);
        state.is_stale = false;
    }

    /// Notes a key whose effect has not been painted yet.
    pub(super) fn key_came(&self) {
        self.state().is_stale = true;
    }

    /// Returns whether the line is known to be empty.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state();
        state.line.is_empty() && !state.is_stale
    }

    /// Takes the line as it was painted last.
    pub(in crate::repl) fn take_line(&self) -> String {
        std::mem::take(&mut self.state().line)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
