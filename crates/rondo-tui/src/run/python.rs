//! The live Python session of the screen, and the way to its terminal.

use super::Runner;
use rondo_runtime::service::{LentPython, PythonTerminal};
use std::sync::Arc;

/// The live session's terminal, once it was lent.
#[derive(Default)]
pub(super) struct PythonLink(Option<Arc<PythonTerminal>>);

impl Runner {
    /// Lends a live session, if none was; its interpreter is started by its first cell.
    pub(super) fn start_python(&mut self) {
        if self.python.0.is_some() {
            return;
        }
        let terminal = Arc::<PythonTerminal>::default();
        let python = LentPython::at_terminal(&self.settings, Arc::clone(&terminal));
        self.session.lend_python(&Arc::new(python));
        self.python = PythonLink(Some(terminal));
    }

    /// Continues in a live session that there was before.
    pub(super) fn link_python(&mut self, before: &LentPython) {
        let terminal = Arc::<PythonTerminal>::default();
        let python = LentPython::new(Arc::clone(before.session()))
            .with_terminal(Arc::clone(&terminal))
            .with_presence(before.take_presence());
        self.session.lend_python(&Arc::new(python));
        self.python = PythonLink(Some(terminal));
    }

    /// Types what a person pressed for the cell that runs.
    pub(super) fn type_into_python(&mut self, bytes: Vec<u8>) {
        let is_typed = self.python.0.as_ref().is_some_and(|it| it.input(bytes));
        if !is_typed {
            self.app.flash("the cell reads no keys at the moment");
        }
    }

    /// Gives the live session's terminal the size that the pane has now.
    pub(super) fn fit_python(&self) {
        if let (Some(terminal), Some(size)) = (&self.python.0, self.app.shell_size()) {
            terminal.resize(size);
        }
    }
}
