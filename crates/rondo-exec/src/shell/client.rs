use super::program::ShellProgram;
use super::protocol::{FromSupervisor, Spec, ToSupervisor};
use super::session::{Session, Writer};
use super::stream::{CommandStream, ShellEvent};
use crate::supervisor::{PtySize, StartError, SupervisorCommand};
use rondo_core::redact::Secrets;
use rondo_policy::Workdir;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::task::JoinHandle;

/// How long a command that nobody follows any more has to end once it was interrupted.
const ABANDONED_MAX: Duration = Duration::from_secs(5);
/// How often it is interrupted.
const INTERRUPT_EVERY: Duration = Duration::from_millis(500);

/// A shell to keep.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// What is started as supervisor.
    pub supervisor: SupervisorCommand,
    /// The shell.
    pub program: ShellProgram,
    /// Where the shell starts, and what follows it: set after each command.
    pub workdir: Workdir,
    /// Where its pipes are kept while it lives; must exist, and should be the user's alone.
    pub state_dir: PathBuf,
    /// Variables that are added to the environment of this process, or taken from it (`None`).
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// The size of its terminal.
    pub size: PtySize,
    /// The bound on the copy of a command's output, in bytes: its beginning and its end.
    pub captured_bytes_max: usize,
    /// What that copy holds nothing of, until [`Shell::set_secrets`] says otherwise.
    pub secrets: Secrets,
    /// How long its start files may take.
    pub start_timeout: Duration,
}

impl ShellSettings {
    /// The default of [`Self::captured_bytes_max`].
    pub const CAPTURED_BYTES: usize = 50_000;
    /// The default of [`Self::start_timeout`].
    pub const START_TIMEOUT: Duration = Duration::from_secs(15);

    /// Returns the defaults for a shell that starts in `workdir`.
    #[must_use]
    pub fn new(
        supervisor: SupervisorCommand,
        program: ShellProgram,
        workdir: Workdir,
        state_dir: PathBuf,
    ) -> Self {
        Self {
            supervisor,
            program,
            workdir,
            state_dir,
            environment: Vec::new(),
            size: PtySize::default(),
            captured_bytes_max: Self::CAPTURED_BYTES,
            secrets: Secrets::default(),
            start_timeout: Self::START_TIMEOUT,
        }
    }
}

/// Why a line was not run, or how it was lost.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The shell cannot be started.
    #[error("the shell cannot be started")]
    Start(#[from] StartError),
    /// The shell ended before its first prompt; what it wrote.
    #[error("the shell ended before its first prompt")]
    EndedEarly(String),
    /// The start files took too long; what they wrote.
    #[error("the shell did not come to its first prompt")]
    NotReady(String),
    /// Another line runs.
    #[error("the shell runs another command")]
    Busy,
    /// The line is too long.
    #[error("the line is longer than {max} bytes", max = Shell::LINE_BYTES_MAX)]
    TooLong,
    /// No shell can run a line with a NUL character.
    #[error("the line contains a NUL character")]
    Nul,
    /// The supervisor died, and the shell with it.
    #[error("the shell was lost")]
    Lost(#[source] io::Error),
}

/// The user's shell, kept between commands.
///
/// Starts in the background, and anew with the first line after its end. Dropping it ends the shell
/// and its jobs, but not what was disowned or left the terminal's session.
#[derive(Debug)]
pub struct Shell {
    common: Arc<Common>,
    slot: Arc<tokio::sync::Mutex<Slot>>,
    starting: JoinHandle<()>,
}

#[derive(Debug)]
pub(super) struct Common {
    pub(super) settings: ShellSettings,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_busy: bool,
    size: PtySize,
    orders: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<Writer>,
    secrets: Secrets,
}

/// What one command at a time has to itself.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) session: Option<Session>,
    failure: Option<ShellError>,
    /// How many shells there were.
    starts: u64,
    /// A command whose stream was dropped.
    pub(super) abandoned: Option<u64>,
}

impl Slot {
    async fn next_output(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.session.as_mut()?.next().await {
                Ok(FromSupervisor::Output(bytes)) => return Some(bytes),
                Ok(FromSupervisor::Prompt(at_prompt)) if self.abandoned == Some(at_prompt.seq) => {
                    self.abandoned = None;
                }
                Ok(FromSupervisor::Prompt(_)) => {}
                Ok(FromSupervisor::Exited(_) | FromSupervisor::Failed(_)) | Err(_) => {
                    self.session = None
                }
            }
        }
    }
}

impl Common {
    fn shared<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        self.shared(|shared| shared.is_busy = is_busy);
    }

    pub(super) fn secrets(&self) -> Secrets {
        self.shared(|shared| shared.secrets.clone())
    }

    fn spec(&self) -> Spec {
        let settings = &self.settings;
        Spec {
            program: settings.program.path().to_path_buf(),
            family: settings.program.family(),
            directory: nearest(&settings.workdir.directory()),
            state_dir: settings.state_dir.clone(),
            size: self.shared(|shared| shared.size),
        }
    }

    async fn start(&self, slot: &mut Slot) -> Result<(), ShellError> {
        let spec = self.spec();
        let (session, writer) = Session::start(&self.settings, &spec).await?;
        let orders = session.orders();
        self.shared(|shared| {
            shared.orders = Some(orders);
            shared.writer = Some(writer);
        });
        slot.starts += 1;
        session.report_to(&self.settings.workdir);
        slot.session = Some(session);
        Ok(())
    }
}

/// The directory may be gone.
fn nearest(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|dir| dir.is_dir());
    there.map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

impl Shell {
    /// The longest line, in bytes.
    pub const LINE_BYTES_MAX: usize = 2 << 20;

    /// Starts the shell in the background, on the current Tokio runtime.
    #[must_use]
    pub fn start(settings: ShellSettings) -> Self {
        let (size, secrets) = (settings.size, settings.secrets.clone());
        let common = Arc::new(Common {
            settings,
            shared: Mutex::new(Shared {
                size,
                secrets,
                ..Shared::default()
            }),
        });
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
    /// The line may hold several lines. A shell that has ended is started anew, which the first
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

    /// Waits until the start files are done, well or not, and until no command runs.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn settled(&self) {
        drop(self.slot.lock().await);
    }

    /// Waits for what jobs write while no command runs, as the terminal gets it; at most 16 KiB at once.
    /// Returns none where there is no shell, or none any more: the next command starts one. Whoever does
    /// not wait gets it all with the next command.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn between_commands(&self) -> Option<Vec<u8>> {
        self.slot.lock().await.next_output().await
    }

    /// Gives the shell's terminal another size, now and when it is started anew.
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

async fn start_in_background(common: Arc<Common>, slot: Option<OwnedMutexGuard<Slot>>) {
    if let Some(mut slot) = slot {
        let started = common.start(&mut slot).await;
        slot.failure = started.err();
    }
}

/// Ends a command that nobody follows any more; its shell is given up where that does not end it.
async fn settle(slot: &mut Slot) {
    let (Some(seq), Some(session)) = (slot.abandoned.take(), slot.session.as_mut()) else {
        return;
    };
    let orders = session.orders();
    let interrupt = async {
        loop {
            // Again and again, as people do: between two programs of a command it hits neither.
            let _ = orders.try_send(ToSupervisor::Interrupt.encode());
            tokio::time::sleep(INTERRUPT_EVERY).await;
        }
    };
    let is_there = tokio::select! {
        is_there = session.wait_for(seq) => is_there,
        () = tokio::time::sleep(ABANDONED_MAX) => false,
        () = interrupt => false,
    };
    if !is_there {
        slot.session = None;
    }
}
