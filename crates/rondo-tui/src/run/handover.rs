//! Lends the terminal to another program, or to the shell while the process is stopped.

use super::{Runner, SETTLE};
use crate::options::ExitOutput;
use crate::terminal::keyboard::Keyboard;
use crate::terminal::unix;
use crate::text::printed;
use rondo_runtime::error::Result;
use std::io::{self, Write as _};
use tokio::task::spawn_blocking;

impl Runner {
    /// Stops the process; what was not printed yet is in the scrollback meanwhile.
    pub(super) async fn suspend(&mut self) {
        if !self.writer.settle(SETTLE).await {
            return;
        }
        self.modes.leave();
        self.print_rest();
        unix::stop();
        self.come_back();
    }

    /// Runs a program that has the terminal for itself.
    pub(super) async fn lend<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Option<T> {
        if !self.writer.settle(SETTLE).await {
            return None;
        }
        self.modes.leave();
        // It must not read what is typed meanwhile.
        if let Some(keys) = self.keys.take() {
            keys.stop().await;
        }
        let worked = spawn_blocking(work).await;
        self.modes.clean();
        // Without it, it is as if the terminal were gone.
        self.keys = Keyboard::listen(Vec::new()).ok();
        self.come_back();
        match worked {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                self.app.error(&error.line(), error.hint.as_deref());
                None
            }
            Err(err) => {
                self.app.error(&err.to_string(), None);
                None
            }
        }
    }

    fn come_back(&mut self) {
        if let Err(err) = self.modes.enter() {
            tracing::info!(%err, "the terminal cannot be set again");
        }
        self.fit_terminal();
        self.has_title = false;
        self.show_place();
        self.painter.lose();
        self.asks_ground = true;
    }

    /// Prints what was not printed yet.
    pub(super) fn print_rest(&mut self) {
        let at_exit = self.app.options.at_exit;
        if at_exit == ExitOutput::None {
            return;
        }
        let width = usize::from(self.area.width);
        let rows = self.app.unprinted(width, at_exit == ExitOutput::Last);
        let mut out = io::stdout().lock();
        // The terminal is gone, so this cannot be shown.
        let _ = out.write_all(printed::lines(&rows).as_bytes());
        let _ = out.flush();
    }
}
