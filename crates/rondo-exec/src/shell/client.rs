//! The shell as its user has it: lines go in, streams of what happens come out.

use super::error::ShellError;
use super::protocol::{LINE_BYTES_MAX, ToSupervisor};
use super::settings::ShellSettings;
use super::slot::{Slot, SlotState, settle};
use super::stream::{CommandStream, ShellEvent};
use rondo_core::redact::Secrets;
use rondo_launch::PtySize;
use rondo_policy::Variables;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

/// The user's shell, kept between commands.
///
/// Starts in the background, and again with the first line after its end. Dropping it ends the shell
/// and its jobs, but not what was disowned or left the terminal's session.
#[derive(Debug)]
pub struct Shell {
    common: Arc<SlotState>,
    slot: Arc<tokio::sync::Mutex<Slot>>,
    starting: JoinHandle<()>,
}

impl Shell {
    /// The longest line, in bytes.
    pub const LINE_BYTES_MAX: usize = LINE_BYTES_MAX;

    /// Starts the shell in the background, on the current Tokio runtime.
    #[must_use]
    pub fn start(settings: ShellSettings) -> Self {
        let common = Arc::new(SlotState::new(settings));
        let slot = Arc::new(tokio::sync::Mutex::new(Slot::default()));
        let starting = tokio::spawn(start_in_background(
            Arc::clone(&common),
            Arc::clone(&slot).try_lock_owned().ok(),
        ));
        Self {
            common,
            slot,
            starting,
        }
    }

    /// Keeps other secrets out of the copies of what commands print, from the next command on.
    pub fn set_secrets(&self, secrets: Secrets) {
        self.common.shared(|shared| shared.secrets = secrets);
    }

    /// Hands a line to the shell, as soon as that is ready, and follows it.
    ///
    /// The line may hold several lines. A shell that has ended is started again, which the first
    /// event says. A command whose stream was dropped before its end is interrupted and waited for.
    ///
    /// # Errors
    /// When the line is not usable, another one runs, or the shell cannot be started.
    ///
    /// # Cancel safety
    /// Cancel safe: the line is handed over last.
    pub async fn run(&self, line: &str) -> Result<CommandStream, ShellError> {
        if line.len() > Self::LINE_BYTES_MAX {
            return Err(ShellError::TooLong);
        }
        if line.contains('\0') {
            return Err(ShellError::Nul);
        }
        if self.common.shared(|shared| shared.is_busy) {
            return Err(ShellError::Busy);
        }
        let mut slot = Arc::clone(&self.slot).lock_owned().await;
        if let Some(failure) = slot.failure.take() {
            return Err(failure);
        }
        settle(&mut slot).await;
        let mut first = None;
        if slot
            .session
            .as_mut()
            .is_none_or(|session| !session.is_alive())
        {
            slot.session = None;
            let is_new = slot.starts > 0;
            self.common.start(&mut slot).await?;
            first = is_new.then_some(ShellEvent::Restarted);
        }
        self.hand_over(slot, line, first).await
    }

    async fn hand_over(
        &self,
        mut slot: OwnedMutexGuard<Slot>,
        line: &str,
        first: Option<ShellEvent>,
    ) -> Result<CommandStream, ShellError> {
        let Some(session) = slot.session.as_mut() else {
            return Err(ShellError::Busy);
        };
        let seq = session.hand_over(line).await?;
        let orders = session.orders();
        let common = Arc::clone(&self.common);
        Ok(CommandStream::new(common, slot, seq, first, orders))
    }

    /// Returns the exported variables of the shell, as of its last prompt; none before the first one.
    #[must_use]
    pub fn environment(&self) -> Option<Variables> {
        self.common.settings.workdir.environment()
    }

    /// Waits until the start files are done, well or not, and until no command runs.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn settled(&self) {
        drop(self.slot.lock().await);
    }

    /// Waits for what jobs write while no command runs, as the terminal gets it; at most 16 KiB at once.
    /// Returns none if there is no shell, or none any more: the next command starts one. A caller that does
    /// not wait gets it all with the next command.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn between_commands(&self) -> Option<Vec<u8>> {
        self.slot.lock().await.next_output().await
    }

    /// Gives the shell's terminal another size, now and when it is started again.
    pub fn resize(&self, size: PtySize) {
        let orders = self.common.shared(|shared| {
            shared.size = size;
            shared.orders.clone()
        });
        if let Some(orders) = orders {
            // Full only while the shell does not read; the next size comes with the next command.
            let _ = orders.try_send(ToSupervisor::Resize(size).encode());
        }
    }

    /// Returns whether the shell has come to its first prompt and has not been found ended.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let slot = self.slot.try_lock();
        slot.map_or(self.common.shared(|shared| shared.is_busy), |slot| {
            slot.session.is_some()
        })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.starting.abort();
        self.common.shared(|shared| {
            shared.orders = None;
            shared.writer = None;
        });
    }
}

async fn start_in_background(common: Arc<SlotState>, slot: Option<OwnedMutexGuard<Slot>>) {
    if let Some(mut slot) = slot {
        let started = common.start(&mut slot).await;
        slot.failure = started.err();
    }
}
