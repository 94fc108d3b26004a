//! The shell of the screen, and the way between its terminal and the pane.

use super::{AT_ONCE_MAX, FRAME, KeptSessions, Runner};
use rondo_policy::Workdir;
use rondo_runtime::cells::{KeptShell, Keyboard, PtySize, TerminalEvent};
use rondo_runtime::error::Result;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Inputs that wait for a program that does not read.
const INPUTS_MAX: usize = 256;

/// The shell, once it was started.
#[derive(Default)]
pub(super) struct ShellLink(Option<ShellRun>);

struct ShellRun {
    shell: Arc<KeptShell>,
    events: Receiver<TerminalEvent>,
    /// The way to the command that runs.
    keyboard: Option<Keyboard>,
    typing: Sender<(Keyboard, Vec<u8>)>,
    size: Option<PtySize>,
}

impl ShellLink {
    /// Waits for what happens in the shell's terminal; forever if there is none.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> TerminalEvent {
        let event = match &mut self.0 {
            Some(running) => running.events.recv().await,
            None => None,
        };
        match event {
            Some(event) => event,
            None => pending().await,
        }
    }

    fn at_once(&mut self) -> Option<TerminalEvent> {
        self.0.as_mut()?.events.try_recv().ok()
    }

    /// Types bytes for the program that runs. Returns whether they will come to it.
    pub(super) fn input(&self, bytes: Vec<u8>) -> bool {
        let Some(running) = &self.0 else {
            return false;
        };
        let Some(keyboard) = running.keyboard.clone() else {
            return false;
        };
        bytes.is_empty() || running.typing.try_send((keyboard, bytes)).is_ok()
    }

    fn resize(&mut self, size: PtySize) {
        if let Some(running) = self.0.as_mut().filter(|it| it.size != Some(size)) {
            running.shell.shell.resize(size);
            running.size = Some(size);
        }
    }
}

impl Runner {
    /// Starts the shell, if it was not.
    pub(super) fn start_shell(&mut self) -> Result<()> {
        if self.shell.0.is_some() {
            return Ok(());
        }
        let workdir = Workdir::new(self.settings.directory.clone());
        let shell = Arc::new(KeptShell::start(&self.settings, workdir)?);
        self.link_shell(shell);
        Ok(())
    }

    /// Continues in the shell and interpreter of a person's earlier cells.
    pub(super) fn go_on_in(&mut self, kept: KeptSessions) {
        if let Some(shell) = kept.shell {
            self.link_shell(shell);
        }
        if let Some(python) = kept.python {
            self.link_python(&python);
        }
    }

    fn link_shell(&mut self, shell: Arc<KeptShell>) {
        self.session.lend_shell(&shell);
        let (typing, mut typed) = mpsc::channel::<(Keyboard, Vec<u8>)>(INPUTS_MAX);
        tokio::spawn(async move {
            while let Some((keyboard, bytes)) = typed.recv().await {
                keyboard.input(&bytes).await;
            }
        });
        self.shell = ShellLink(Some(ShellRun {
            events: shell.watch_terminal(),
            shell,
            keyboard: None,
            typing,
            size: None,
        }));
    }

    /// Takes an event of the shell's terminal, and those that came with it.
    pub(super) fn shell_events(&mut self, first: TerminalEvent) {
        let began = self.clock.now();
        let mut next = Some(first);
        while let Some(event) = next.take() {
            self.shell_event(event);
            if self.clock.now().since(began) < FRAME {
                next = self.shell.at_once();
            }
        }
        self.is_stale = true;
    }

    /// Takes the events of the shell's terminal so far: they show whether a command's output is text.
    pub(super) fn catch_up_with_shell(&mut self) {
        for _ in 0..AT_ONCE_MAX {
            let Some(event) = self.shell.at_once() else {
                return;
            };
            self.shell_event(event);
        }
    }

    fn shell_event(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::Began(keyboard) => {
                self.set_keyboard(Some(keyboard));
                self.app.shell_began();
            }
            TerminalEvent::Output(bytes) => {
                let replies = self.app.shell_wrote(&bytes);
                // A program that reads nothing gets no reply.
                let _ = self.shell.input(replies);
            }
            TerminalEvent::Ended(unread) => {
                self.set_keyboard(None);
                self.app.shell_ended(&unread);
            }
        }
    }

    fn set_keyboard(&mut self, keyboard: Option<Keyboard>) {
        if let Some(running) = &mut self.shell.0 {
            running.keyboard = keyboard;
        }
    }

    /// Types what a person pressed.
    pub(super) fn type_into_shell(&mut self, bytes: Vec<u8>) {
        if !self.shell.input(bytes) {
            self.app.flash("the program reads no keys at the moment");
        }
    }

    /// Gives the shell's terminal the size that the pane has now.
    pub(super) fn fit_shell(&mut self) {
        if let Some(size) = self.app.shell_size() {
            self.shell.resize(size);
        }
    }
}
