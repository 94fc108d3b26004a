//! Events between the start and the end of a line.

use super::error::ShellError;
use super::protocol::{Exit, FromSupervisor, ShellAtPrompt, ToSupervisor};
use super::slot::{Slot, SlotState};
use super::whole_screen::WholeScreen;
use super::{report, session};
use rondo_launch::{Capture, PtySize};
use rondo_policy::Variables;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{OwnedMutexGuard, mpsc};

/// Event of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEvent {
    /// The shell had ended; this one is new, and what was set in the old one is gone. Always first.
    Restarted,
    /// Output as the terminal gets it, escape sequences and invalid bytes included; at most 16 KiB.
    Output(Vec<u8>),
    /// The end of the command; nothing follows.
    Ended(Box<CommandEnd>),
}

/// How a command ended, and where it left the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// The exit code as the shell has it: 128 and the signal's number if one ended the command.
    pub exit_code: i32,
    /// Set if the shell itself ended; the next line starts another.
    pub shell_end: Option<ShellEnd>,
    /// Current directory of the shell; the start directory of the next one if it ended.
    pub directory: PathBuf,
    /// Exported variables; `None` before the first prompt of a shell, and past 2 MiB.
    pub environment: Option<Variables>,
    /// The output as text: without escape sequences, and of more than
    /// [`super::ShellSettings::captured_bytes_max`] its beginning and its end. It holds none of
    /// [`super::ShellSettings::secrets`].
    pub captured: String,
    /// How many bytes of the output `captured` lacks.
    pub omitted_bytes: u64,
    /// Set if it used the whole screen, as editors and pagers do; `captured` has nothing of what was drawn there.
    pub used_whole_screen: bool,
    /// Typed input that was not read: the beginning of the user's next line.
    pub unread_input: Vec<u8>,
}

/// The end of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEnd {
    /// The signal that ended it, such as `SIGKILL`.
    pub signal: Option<String>,
}

/// A command that runs.
///
/// Must be read to its end for the command to continue. Dropped before, it interrupts the command.
#[derive(Debug)]
pub struct CommandStream {
    common: Arc<SlotState>,
    slot: OwnedMutexGuard<Slot>,
    seq: u64,
    first: Option<ShellEvent>,
    capture: Option<Capture>,
    whole_screen: WholeScreen,
    orders: mpsc::Sender<Vec<u8>>,
}

/// The way to a running command for what the user does. Copies may outlive the command; then
/// they have no effect.
#[derive(Debug, Clone)]
pub struct Keyboard {
    orders: mpsc::Sender<Vec<u8>>,
}

impl Keyboard {
    /// The longest piece of input that is sent at once, in bytes.
    const PIECE_BYTES_MAX: usize = 4 << 10;

    /// Types bytes for the program in the foreground; a control character does what it does on the
    /// user's own terminal. Output that comes when no command runs is dropped.
    ///
    /// # Cancel safety
    /// Cancel safe, but of a long input only the first part may have been typed.
    pub async fn input(&self, bytes: &[u8]) {
        for piece in bytes.chunks(Self::PIECE_BYTES_MAX) {
            self.send(&ToSupervisor::Input(piece.to_vec())).await;
        }
    }

    /// Gives the terminal another size.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn resize(&self, size: PtySize) {
        self.send(&ToSupervisor::Resize(size)).await;
    }

    /// Does what Ctrl-C does: forgets the input that was not read yet, and types the terminal's
    /// interrupt character.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn interrupt(&self) {
        self.send(&ToSupervisor::Interrupt).await;
    }

    async fn send(&self, order: &ToSupervisor) {
        // Without a supervisor there is no command either.
        let _ = self.orders.send(order.encode()).await;
    }
}

impl CommandStream {
    pub(super) fn new(
        common: Arc<SlotState>,
        mut slot: OwnedMutexGuard<Slot>,
        seq: u64,
        first: Option<ShellEvent>,
        orders: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        common.set_busy(true);
        slot.abandoned = Some(seq);
        let bound = common.settings.captured_bytes_max;
        let capture = Capture::in_memory(bound).without(&common.secrets());
        Self {
            capture: Some(capture),
            whole_screen: WholeScreen::default(),
            common,
            slot,
            seq,
            first,
            orders,
        }
    }

    /// Returns the way to the command for what the user types.
    #[must_use]
    pub fn keyboard(&self) -> Keyboard {
        Keyboard {
            orders: self.orders.clone(),
        }
    }

    /// Waits for what happens next; `None` after the end.
    ///
    /// Output from before the command, of start files or of jobs, comes first and is not
    /// captured.
    ///
    /// # Errors
    /// When the supervisor died. The next line starts another shell.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<ShellEvent>, ShellError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.capture.is_none() {
            return Ok(None);
        }
        match self.read().await {
            Ok(event) => Ok(Some(event)),
            Err(err) => {
                self.capture = None;
                self.settle(true);
                Err(err)
            }
        }
    }

    /// Reads to the end and returns it; output is captured only.
    ///
    /// # Errors
    /// As [`Self::next`].
    ///
    /// # Cancel safety
    /// Dropped before the end, it interrupts the command.
    pub async fn finish(mut self) -> Result<CommandEnd, ShellError> {
        loop {
            match self.next().await? {
                Some(ShellEvent::Ended(end)) => return Ok(*end),
                Some(ShellEvent::Restarted | ShellEvent::Output(_)) => {}
                None => return Err(lost()),
            }
        }
    }

    async fn read(&mut self) -> Result<ShellEvent, ShellError> {
        let session = self.slot.session.as_mut().ok_or_else(lost)?;
        if !session.greeting.is_empty() {
            return Ok(ShellEvent::Output(mem::take(&mut session.greeting)));
        }
        loop {
            match session.next().await? {
                FromSupervisor::Output(bytes) => {
                    if let Some(capture) = self.capture.as_mut() {
                        capture.push(&self.whole_screen.push(&bytes));
                    }
                    return Ok(ShellEvent::Output(bytes));
                }
                FromSupervisor::Prompt(at_prompt) if at_prompt.seq == self.seq => {
                    return Ok(self.ended(*at_prompt));
                }
                FromSupervisor::Prompt(_) => {}
                FromSupervisor::Exited(exit) => return Ok(self.shell_ended(exit)),
                FromSupervisor::Failed(_) => return Err(lost()),
            }
        }
    }

    fn ended(&mut self, at_prompt: ShellAtPrompt) -> ShellEvent {
        if let Some(report) = report::parse(&at_prompt.report) {
            session::set(&self.common.settings.workdir, &report);
        }
        self.end(at_prompt.status, None, at_prompt.unread)
    }

    fn shell_ended(&mut self, exit: Exit) -> ShellEvent {
        let shell_end = ShellEnd {
            signal: exit.signal,
        };
        self.end(exit.code, Some(shell_end), Vec::new())
    }

    fn end(
        &mut self,
        exit_code: i32,
        shell_end: Option<ShellEnd>,
        unread_input: Vec<u8>,
    ) -> ShellEvent {
        let rest = self.whole_screen.finish();
        let captured = self.capture.take().map(|mut capture| {
            capture.push(&rest);
            capture.finish()
        });
        let (captured, omitted_bytes) =
            captured.map_or_else(Default::default, |it| (it.text, it.omitted_bytes));
        let workdir = &self.common.settings.workdir;
        let end = CommandEnd {
            exit_code,
            directory: workdir.directory(),
            environment: workdir.environment(),
            captured,
            omitted_bytes,
            used_whole_screen: self.whole_screen.was_used(),
            unread_input,
            shell_end,
        };
        self.settle(end.shell_end.is_some());
        ShellEvent::Ended(Box::new(end))
    }

    fn settle(&mut self, is_shell_over: bool) {
        self.common.set_busy(false);
        self.slot.abandoned = None;
        if is_shell_over {
            self.slot.session = None;
        }
    }
}

impl Drop for CommandStream {
    fn drop(&mut self) {
        if self.capture.is_some() {
            self.common.set_busy(false);
            let _ = self.orders.try_send(ToSupervisor::Interrupt.encode());
        }
    }
}

fn lost() -> ShellError {
    ShellError::Lost(std::io::ErrorKind::UnexpectedEof.into())
}
