//! The state that the editor's thread and the prompt's loop share.

use crate::repl::mode::Mode;
use rondo_core::redact::Secrets;
use rondo_python::{Completeness, Session};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

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
    python: Option<(Arc<Session>, Handle)>,
    secrets: Secrets,
}

impl Shared {
    /// Begins in a mode.
    pub(in crate::repl) fn new(mode: Mode) -> Self {
        Self(Arc::new(Mutex::new(State {
            mode,
            line: String::new(),
            is_stale: false,
            directory: PathBuf::new(),
            python: None,
            secrets: Secrets::default(),
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

    /// Says what is not to be kept.
    pub(in crate::repl) fn set_secrets(&self, secrets: Secrets) {
        self.state().secrets = secrets;
    }

    /// Returns what is not to be kept.
    pub(super) fn secrets(&self) -> Secrets {
        self.state().secrets.clone()
    }

    /// Says where paths begin.
    pub(in crate::repl) fn set_directory(&self, directory: PathBuf) {
        self.state().directory = directory;
    }

    /// Returns where paths begin.
    pub(super) fn directory(&self) -> PathBuf {
        self.state().directory.clone()
    }

    /// Says which Python session there is, and who drives it.
    pub(in crate::repl) fn set_python(&self, session: Arc<Session>, driver: Handle) {
        self.state().python = Some((session, driver));
    }

    /// Returns what a name or an attribute may become. Waits, on the editor's own thread.
    pub(super) fn python_names(&self, text: &str) -> Vec<String> {
        let python = self.state().python.clone();
        let Some((session, driver)) = python else {
            return Vec::new();
        };
        let names = driver.block_on(session.complete(text));
        names.unwrap_or_default()
    }

    /// Returns whether a cell needs more lines; one that cannot be judged does not.
    pub(super) fn is_cell_open(&self, code: &str) -> bool {
        let python = self.state().python.clone();
        python.is_some_and(|(session, driver)| {
            let told = driver.block_on(session.is_complete(code));
            told.is_ok_and(|it| it == Completeness::Incomplete)
        })
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
