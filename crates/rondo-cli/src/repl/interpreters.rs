//! Keeps the Python interpreters of sessions. When the prompt switches to another session, the interpreter of
//! the former one is kept until the prompt returns to it.

use super::talk::LineSession;
use crate::error::Result;
use rondo_runtime::service::LentPython;
use rondo_types::SessionId;
use std::sync::Arc;

/// Interpreters that wait for their sessions; the one that has waited longest ends for another.
const PARKED_MAX: usize = 4;

/// An interpreter whose session is not at the prompt.
pub(super) struct IdleInterpreter {
    session: SessionId,
    python: Arc<LentPython>,
}

impl IdleInterpreter {
    pub(super) fn python(&self) -> &Arc<LentPython> {
        &self.python
    }
}

impl LineSession {
    /// Has the session at the prompt keep its interpreter, where cells of it ran there, and has the next
    /// one begin with another. An interpreter in which nothing of it ran stays for the next session.
    ///
    /// # Errors
    /// When there is no interpreter.
    pub(super) fn park_python(&mut self) -> Result<()> {
        self.hand_over();
        let ran = self
            .handle
            .sorted_cells()
            .is_ok_and(|it| !it.here.is_empty());
        if !ran {
            return Ok(());
        }
        let session = self.handle.id().clone();
        if let Some(python) = self.python.take() {
            self.parked.retain(|it| it.session != session);
            if self.parked.len() >= PARKED_MAX {
                self.parked.remove(0);
            }
            self.parked.push(IdleInterpreter { session, python });
        }
        self.python().map(drop)
    }

    /// Has a session go on in the interpreter that waited for it, if one did.
    pub(super) fn unpark_python(&mut self, session: &SessionId) {
        let waiting = self.parked.iter().position(|it| it.session == *session);
        if let Some(at) = waiting {
            let parked = self.parked.remove(at);
            self.use_python(parked.python);
        }
    }
}
