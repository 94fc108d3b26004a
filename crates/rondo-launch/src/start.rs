//! Starts supervisors, through a keeper if one is available.

use super::frames::{Frames, lossy, out_of_turn};
use super::handed::{self, SPEC_BYTES_MAX};
use super::keeper::{self, HandedCall, Keeper};
use super::protocol::{END, FrameKind, GO, Watcher};
use super::role::SUPERVISE_ARG;
use super::spares::{SpareConnection, SpareKind};
use super::start_error::StartError;
use super::unix::{descriptors, handover};
use super::watchers::{Guard, GuardId, KeptGuard, Processes, Watchers, woken_by};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a keeper may take until its fork reports; one that takes longer is given up.
const FORK_MAX: Duration = Duration::from_secs(5);
/// How long a keeper that was killed may take until nothing of it is left.
const KILLED_MAX: Duration = Duration::from_secs(2);
/// How often a call is handed to a keeper before it is started without one.
const HAND_OVER_MAX: u32 = 2;

/// Process to supervise.
pub(super) struct Start<'a> {
    /// The program that supervises.
    pub(super) program: &'a Path,
    /// The name of the role.
    pub(super) role: &'static str,
    /// Key from which the mark of its processes is derived.
    pub(super) key: &'a str,
    /// The specification, as a line of JSON.
    pub(super) line: Vec<u8>,
    pub(super) variables: &'a [(OsString, OsString)],
    /// Descriptors of which the supervisor gets copies.
    pub(super) descriptors: &'a [BorrowedFd<'a>],
    /// For which calls a supervisor that waits can take this one; `None` if none does.
    pub(super) spares: Option<SpareKind>,
    /// Set if every path in the specification is absolute: a keeper has no directory of its own.
    pub(super) is_absolute: bool,
}

/// A supervisor that is ready.
#[derive(Debug)]
pub(super) struct ReadySupervisor {
    pub(super) watchers: Watchers,
    /// Commands to the supervisor.
    pub(super) control: File,
    pub(super) frames: Frames,
    /// Set once it was told to continue.
    pub(super) is_told: bool,
    /// How it is handed another call after this one; `None` if it takes none.
    pub(super) way: Option<SpareConnection>,
}

/// Future that interrupts the start of a supervisor.
pub(super) type Cancelled<'a> = Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// First message of a supervisor that a keeper was asked for.
enum FirstReply {
    Said(io::Result<(FrameKind, Vec<u8>)>),
    /// There is none and there will be none.
    Nothing,
    /// No message in time; it may still come.
    Late,
}

/// The way to a supervisor, which is told to end when nobody has taken this who may tell it.
struct Control {
    file: Option<File>,
    is_told: bool,
}

impl Control {
    fn new(file: File) -> Self {
        Self {
            file: Some(file),
            is_told: false,
        }
    }

    /// Sends it something. If it is gone, that is noticed elsewhere.
    fn tell(&mut self, order: u8) {
        if let Some(file) = &mut self.file {
            let _ = file.write_all(&[order]);
        }
    }

    fn go(&mut self) {
        self.is_told = true;
        self.tell(GO);
    }

    fn take(mut self) -> io::Result<File> {
        self.file.take().ok_or(io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.is_told {
            self.tell(END);
        }
    }
}

/// Returns a specification as a line of JSON.
pub(super) fn line_of(spec: &impl Serialize) -> Result<Vec<u8>, StartError> {
    let mut line = serde_json::to_vec(spec).map_err(|err| StartError::Lost(err.into()))?;
    line.push(b'\n');
    match line.len() > SPEC_BYTES_MAX {
        true => Err(StartError::TooLong),
        false => Ok(line),
    }
}

impl Start<'_> {
    /// Starts a supervisor and returns when it says that it is ready. It waits for a word to continue.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor whose pipes are closed ends by itself.
    pub(super) async fn start(&self) -> Result<ReadySupervisor, StartError> {
        self.start_by(&mut None).await
    }

    /// Starts a supervisor that continues at once, if it need not be started again, unless `cancelled` comes first.
    ///
    /// # Errors
    /// [`StartError::Cancelled`] if it has not gone on and will not.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor that has gone on is asked to end.
    pub(super) async fn start_at_once(
        &self,
        cancelled: Cancelled<'_>,
    ) -> Result<ReadySupervisor, StartError> {
        self.start_by(&mut Some(cancelled)).await
    }

    async fn start_by(
        &self,
        cancelled: &mut Option<Cancelled<'_>>,
    ) -> Result<ReadySupervisor, StartError> {
        if let Some(memory) = self.to_hand_over() {
            let spare = self.spares.as_ref().and_then(|it| it.hand_over(&memory));
            if let Some(spare) = spare {
                let keeper = Arc::clone(&spare.keeper);
                if let Some(started) = self.start_handed(spare, cancelled).await {
                    keeper.spares.note_use();
                    return started;
                }
            }
            for _ in 0..HAND_OVER_MAX {
                let Ok(handed) = keeper::hand_over(self.program, &memory, self.descriptors) else {
                    break;
                };
                if let Some(started) = self.start_handed(handed, cancelled).await {
                    return started;
                }
            }
        }
        match cancelled {
            Some(cancelled) => tokio::select! {
                started = self.start_anew() => started,
                () = cancelled.as_mut() => Err(StartError::Cancelled),
            },
            None => self.start_anew().await,
        }
    }

    /// Returns the sealed memory with which a keeper is handed this; nothing if that is not possible.
    fn to_hand_over(&self) -> Option<OwnedFd> {
        let bytes = handed::encode(self.role, &self.line, self.variables);
        handover::seal(&bytes.filter(|_| self.is_absolute)?).ok()
    }

    /// Waits for a supervisor that a keeper was asked for; nothing if there is none and will be none.
    async fn start_handed(
        &self,
        handed: HandedCall,
        cancelled: &mut Option<Cancelled<'_>>,
    ) -> Option<Result<ReadySupervisor, StartError>> {
        let HandedCall {
            control,
            frames,
            life,
            guard,
            keeper,
            way,
        } = handed;
        let mut control = Control::new(control);
        if cancelled.is_some() {
            // It says that it is ready before it reads this. So nothing was begun if it does not report.
            control.go();
        }
        let (mut guard, mut frames) = match (KeptGuard::new(life, guard), Frames::pipe(frames)) {
            (Ok(guard), Ok(frames)) => (guard, frames),
            (Err(err), _) | (_, Err(err)) => return Some(Err(StartError::Lost(err))),
        };
        let waited = match cancelled {
            Some(cancelled) => tokio::select! {
                biased;
                first = first_word(&mut guard, &mut frames, &keeper) => Some(first),
                () = cancelled.as_mut() => None,
            },
            None => Some(first_word(&mut guard, &mut frames, &keeper).await),
        };
        let is_cancelled = waited.is_none();
        let first = match waited {
            Some(first) => first,
            None => {
                control.tell(END);
                // One that is ready later finds that it must end, and that its report is not read.
                if !frames.has_more() {
                    return Some(Err(StartError::Cancelled));
                }
                first_word(&mut guard, &mut frames, &keeper).await
            }
        };
        if guard.has_begun() {
            keeper.has_forked();
        }
        let nothing = is_cancelled.then_some(Err(StartError::Cancelled));
        match first {
            // No process holds the other end: nothing was begun.
            FirstReply::Said(Err(err)) if err.kind() == io::ErrorKind::UnexpectedEof => nothing,
            FirstReply::Said(first) => {
                let ready = self.ready(Guard::Kept(guard), control, frames, first);
                Some(ready.map(|it| ReadySupervisor { way, ..it }))
            }
            FirstReply::Nothing => nothing,
            FirstReply::Late => Some(Err(StartError::Lost(io::ErrorKind::TimedOut.into()))),
        }
    }

    async fn start_anew(&self) -> Result<ReadySupervisor, StartError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(StartError::Spawn)?;
        ours.set_nonblocking(true).map_err(StartError::Spawn)?;
        if !self.descriptors.is_empty() {
            descriptors::send(&ours, self.descriptors).map_err(StartError::Spawn)?;
        }
        let mut command = Command::new(self.program);
        command.arg(SUPERVISE_ARG);
        if !self.role.is_empty() {
            command.arg(self.role);
        }
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let spawned = command.spawn();
        // It holds the other end.
        drop(command);
        let mut child = spawned.map_err(StartError::Spawn)?;
        let Some(stdout) = child.stdout.take() else {
            return Err(StartError::Spawn(io::ErrorKind::BrokenPipe.into()));
        };
        let processes = Processes {
            guard: child.id().map_or(GuardId::None, GuardId::Child),
            watcher: None,
        };
        let mut control = UnixStream::from_std(ours).map_err(StartError::Lost)?;
        let handing = control.write_all(&self.line);
        processes.woken(handing).await.map_err(StartError::Lost)?;
        let control = control.into_std().map_err(StartError::Lost)?;
        control.set_nonblocking(false).map_err(StartError::Lost)?;
        let control = Control::new(File::from(OwnedFd::from(control)));
        let frames = stdout.into_owned_fd().and_then(Frames::pipe);
        let mut frames = frames.map_err(StartError::Lost)?;
        let first = processes.woken(frames.next()).await;
        self.ready(Guard::Child(child), control, frames, first)
    }

    /// Reads the first message of a supervisor.
    fn ready(
        &self,
        guard: Guard,
        control: Control,
        frames: Frames,
        first: io::Result<(FrameKind, Vec<u8>)>,
    ) -> Result<ReadySupervisor, StartError> {
        match first.map_err(StartError::Lost)? {
            (FrameKind::Ready, watcher) => {
                let watcher: Watcher =
                    serde_json::from_slice(&watcher).map_err(|err| StartError::Lost(err.into()))?;
                tracing::debug!(supervisor = watcher.pid, "a supervisor is ready");
                let watchers = Watchers {
                    guard,
                    watcher: Some(watcher),
                    mark: watcher.mark(self.key),
                };
                let is_told = control.is_told;
                Ok(ReadySupervisor {
                    watchers,
                    control: control.take().map_err(StartError::Lost)?,
                    frames,
                    is_told,
                    way: None,
                })
            }
            (FrameKind::Failed, reason) => Err(StartError::Refused(lossy(&reason))),
            _ => Err(StartError::Lost(out_of_turn())),
        }
    }
}

/// Waits for what a supervisor says that a keeper was asked for, and wakes who may have been stopped.
async fn first_word(
    guard: &mut KeptGuard,
    frames: &mut Frames,
    keeper: &Arc<Keeper>,
) -> FirstReply {
    let reading = frames.next();
    tokio::pin!(reading);
    let first = timeout(FORK_MAX, &mut reading);
    match woken_by(|| keeper.wake(), first).await {
        Ok(first) => FirstReply::Said(first),
        Err(_) if !guard.has_begun() => {
            keeper.retire();
            match timeout(KILLED_MAX, guard.begun()).await {
                Ok(Ok(false)) => FirstReply::Nothing,
                _ => FirstReply::Late,
            }
        }
        Err(_) => {
            let processes = guard.processes();
            FirstReply::Said(processes.woken(&mut reading).await)
        }
    }
}
