//! Resources that a host lends to sessions: a shell that is kept, and a live Python session.

use super::handle::SessionHandle;
use super::python_terminal::PythonTerminal;
use crate::cells::{InterpreterRecords, KeptShell};
use crate::python;
use crate::settings::Settings;
use crate::terminal::TerminalContext;
use rondo_core::ports::Seq;
use rondo_python::{CellLimits, LiveOutput, Session as PythonSession, SessionError};
use rondo_types::SessionId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A live Python session that a host lends to sessions, one at a time.
pub struct LentPython {
    python: Arc<PythonSession>,
    presence: Mutex<InterpreterRecords>,
    terminal: Option<Arc<PythonTerminal>>,
}

impl fmt::Debug for LentPython {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LentPython")
    }
}

impl LentPython {
    /// Takes a live session.
    #[must_use]
    pub fn new(python: Arc<PythonSession>) -> Self {
        Self {
            python,
            presence: Mutex::default(),
            terminal: None,
        }
    }

    /// A live session in the directory of these settings, whose interpreter is started by its first cell.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let settings = python::session_settings(settings, &[], &settings.directory);
        Self::new(Arc::new(PythonSession::new(settings)))
    }

    /// The same, with cells that read what is typed at a terminal.
    #[must_use]
    pub fn at_terminal(settings: &Settings, terminal: Arc<PythonTerminal>) -> Self {
        let mut settings = python::session_settings(settings, &[], &settings.directory);
        settings.has_terminal = true;
        Self::new(Arc::new(PythonSession::new(settings))).with_terminal(terminal)
    }

    /// Lets cells read what is typed at a terminal. The live session's settings must say that it has one.
    #[must_use]
    pub fn with_terminal(self, terminal: Arc<PythonTerminal>) -> Self {
        Self {
            terminal: Some(terminal),
            ..self
        }
    }

    /// Sets the records whose code ran in it until now.
    #[must_use]
    pub fn with_presence(self, presence: InterpreterRecords) -> Self {
        Self {
            presence: Mutex::new(presence),
            ..self
        }
    }

    /// Takes the records whose code ran in it, for a host that keeps them by itself from now on.
    #[must_use]
    pub fn take_presence(&self) -> InterpreterRecords {
        std::mem::take(&mut *self.presence())
    }

    /// Runs a cell, at the terminal if there is one.
    pub(super) async fn run(
        &self,
        code: &str,
        output: LiveOutput,
        until: CellLimits,
    ) -> std::result::Result<rondo_python::CellEnd, SessionError> {
        let Some(terminal) = &self.terminal else {
            return self.python.run_cell(code, output, until).await;
        };
        let (terminal, _taken) = terminal.of_cell();
        let cell = self
            .python
            .run_cell_at_terminal(code, output, until, terminal);
        cell.await
    }

    /// Returns the live session.
    #[must_use]
    pub fn session(&self) -> &Arc<PythonSession> {
        &self.python
    }

    /// Returns whether an interpreter was lost since the last time.
    pub fn sync(&self) -> bool {
        self.presence().sync(self.python.interpreters_started())
    }

    /// Records that the code of a session's records from one place to another ran in it.
    pub(super) fn ran(&self, session: &SessionId, first: Seq, last: Seq) {
        self.presence().add(session, first, last);
    }

    /// Returns the records whose code ran in it, for a host that notes its own cells.
    pub fn presence(&self) -> MutexGuard<'_, InterpreterRecords> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resources lent to each session.
#[derive(Default)]
pub(super) struct Loans(Mutex<HashMap<SessionId, LentParts>>);

#[derive(Default)]
struct LentParts {
    python: Option<Arc<LentPython>>,
    shell: Option<Arc<KeptShell>>,
    terminal: Option<TerminalContext>,
}

impl Loans {
    /// Changes the loans of a session. A session without any is removed.
    fn change<T>(
        &self,
        session: &SessionId,
        change: impl FnOnce(&mut HashMap<SessionId, LentParts>) -> T,
    ) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(session.clone()).or_default();
        let changed = change(&mut all);
        all.retain(|_, lent| {
            lent.python.is_some() || lent.shell.is_some() || lent.terminal.is_some()
        });
        changed
    }

    pub(super) fn python(&self, session: &SessionId) -> Option<Arc<LentPython>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(session)?.python.clone()
    }

    pub(super) fn terminal(&self, session: &SessionId) -> TerminalContext {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let terminal = all.get(session).and_then(|it| it.terminal.clone());
        terminal.unwrap_or_default()
    }

    pub(super) fn shell(&self, session: &SessionId) -> Option<Arc<KeptShell>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(session)?.shell.clone()
    }
}

impl SessionHandle {
    /// Lends a live Python session, which is taken from the session that it is lent to until now: a host moves it
    /// so. Agents that work with tools may look into it, and cells run there. The host keeps it, and it outlives the
    /// session's handles. A turn or cell that runs elsewhere finishes where it began.
    pub fn lend_python(&self, python: &Arc<LentPython>) {
        self.loans().change(self.id(), |all| {
            for lent in all.values_mut() {
                lent.python.take_if(|it| Arc::ptr_eq(it, python));
            }
            let lent = all.entry(self.id().clone()).or_default();
            lent.python = Some(Arc::clone(python));
        });
    }

    /// Returns the live Python session that is lent to this session.
    #[must_use]
    pub fn python(&self) -> Option<Arc<LentPython>> {
        self.loans().python(self.id())
    }

    /// Takes back the live Python session.
    pub fn take_python(&self) -> Option<Arc<LentPython>> {
        let take = |all: &mut HashMap<SessionId, LentParts>| all.get_mut(self.id())?.python.take();
        self.loans().change(self.id(), take)
    }

    /// Lends a shell, as [`lend_python`](Self::lend_python) does a live Python session.
    pub fn lend_shell(&self, shell: &Arc<KeptShell>) {
        self.loans().change(self.id(), |all| {
            for lent in all.values_mut() {
                lent.shell.take_if(|it| Arc::ptr_eq(it, shell));
            }
            let lent = all.entry(self.id().clone()).or_default();
            lent.shell = Some(Arc::clone(shell));
        });
    }

    /// Takes back the shell.
    pub fn take_shell(&self) -> Option<Arc<KeptShell>> {
        let take = |all: &mut HashMap<SessionId, LentParts>| all.get_mut(self.id())?.shell.take();
        self.loans().change(self.id(), take)
    }

    /// Sets the commands and the screen of the terminal at which the session is used, as they are now. Its next turn
    /// shows them to the model if its profile has `terminal_context`.
    pub fn set_terminal(&self, terminal: TerminalContext) {
        self.loans().change(self.id(), |all| {
            all.entry(self.id().clone()).or_default().terminal = Some(terminal);
        });
    }

    fn loans(&self) -> &Loans {
        &self.entry.service.loans
    }
}
