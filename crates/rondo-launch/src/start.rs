//! Starts supervisors, through a keeper where one can be had.

use super::frames::{Frames, lossy, out_of_turn};
use super::handed;
use super::keeper::{self, Handed};
use super::protocol::{FrameKind, SPEC_BYTES_MAX, Watcher};
use super::role::SUPERVISE_ARG;
use super::spares::SpareKind;
use super::start_error::StartError;
use super::unix::{descriptors, handover};
use super::watchers::{Guard, GuardId, KeptGuard, Processes, Watchers, woken_by};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a keeper may take until its fork is heard of; one that takes longer is given up.
const FORK_MAX: Duration = Duration::from_secs(5);
/// How long a keeper that was killed may take until nothing of it is left.
const KILLED_MAX: Duration = Duration::from_secs(2);
/// How often a call is handed to a keeper before it is started without one.
const HAND_OVER_MAX: u32 = 2;

/// What is to be supervised.
pub(super) struct Start<'a> {
    /// The program that supervises.
    pub(super) program: &'a Path,
    /// The name of the role.
    pub(super) role: &'static str,
    /// What its processes are known by is made of this.
    pub(super) key: &'a str,
    /// The specification, as a line of JSON.
    pub(super) line: Vec<u8>,
    pub(super) variables: &'a [(OsString, OsString)],
    /// What the supervisor gets copies of.
    pub(super) descriptors: &'a [BorrowedFd<'a>],
    /// For which calls a supervisor that waits can take this one; none where none does.
    pub(super) spares: Option<SpareKind>,
    /// Whether every path in the specification is absolute: a keeper has no directory of its own.
    pub(super) is_absolute: bool,
}

/// A supervisor that is ready.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) watchers: Watchers,
    /// Where it is told what to do.
    pub(super) control: File,
    pub(super) frames: Frames,
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
    /// Starts a supervisor and returns when it says that it is ready.
    ///
    /// # Cancel safety
    /// Cancel safe: a supervisor whose pipes are closed ends by itself.
    pub(super) async fn start(&self) -> Result<Ready, StartError> {
        if let Some(memory) = self.to_hand_over() {
            let spare = self.spares.as_ref().and_then(|it| it.hand_over(&memory));
            if let Some(spare) = spare {
                let keeper = Arc::clone(&spare.keeper);
                if let Some(started) = self.start_handed(spare).await {
                    keeper.spares.note_use();
                    return started;
                }
            }
            for _ in 0..HAND_OVER_MAX {
                let Ok(handed) = keeper::hand_over(self.program, &memory, self.descriptors) else {
                    break;
                };
                if let Some(started) = self.start_handed(handed).await {
                    return started;
                }
            }
        }
        self.start_anew().await
    }

    /// Returns what a keeper is handed this with; nothing where it cannot be.
    fn to_hand_over(&self) -> Option<OwnedFd> {
        let bytes = handed::encode(self.role, &self.line, self.variables);
        handover::seal(&bytes.filter(|_| self.is_absolute)?).ok()
    }

    /// Waits for a supervisor that a keeper was asked for; nothing where there is none and will be none.
    async fn start_handed(&self, handed: Handed) -> Option<Result<Ready, StartError>> {
        let Handed {
            control,
            frames,
            life,
            keeper,
        } = handed;
        let (mut guard, mut frames) = match (KeptGuard::new(life), Frames::pipe(frames)) {
            (Ok(guard), Ok(frames)) => (guard, frames),
            (Err(err), _) | (_, Err(err)) => return Some(Err(StartError::Lost(err))),
        };
        let first = {
            let reading = frames.next();
            tokio::pin!(reading);
            let first = timeout(FORK_MAX, &mut reading);
            match woken_by(|| keeper.wake(), first).await {
                Ok(first) => first,
                Err(_) if !guard.has_begun() => {
                    keeper.retire();
                    return match timeout(KILLED_MAX, guard.begun()).await {
                        Ok(Ok(false)) => None,
                        _ => Some(Err(StartError::Lost(io::ErrorKind::TimedOut.into()))),
                    };
                }
                Err(_) => {
                    let processes = guard.processes();
                    processes.woken(&mut reading).await
                }
            }
        };
        if guard.has_begun() {
            keeper.has_forked();
        }
        match first {
            // No process holds the other end: nothing was begun.
            Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => None,
            first => Some(self.ready(Guard::Kept(guard), control, frames, first)),
        }
    }

    async fn start_anew(&self) -> Result<Ready, StartError> {
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
        let control = File::from(OwnedFd::from(control));
        let frames = stdout.into_owned_fd().and_then(Frames::pipe);
        let mut frames = frames.map_err(StartError::Lost)?;
        let first = processes.woken(frames.next()).await;
        self.ready(Guard::Child(child), control, frames, first)
    }

    /// Takes what a supervisor says first.
    fn ready(
        &self,
        guard: Guard,
        control: File,
        frames: Frames,
        first: io::Result<(FrameKind, Vec<u8>)>,
    ) -> Result<Ready, StartError> {
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
                Ok(Ready {
                    watchers,
                    control,
                    frames,
                })
            }
            (FrameKind::Failed, reason) => Err(StartError::Refused(lossy(&reason))),
            (FrameKind::Output | FrameKind::Started | FrameKind::Done, _) => {
                Err(StartError::Lost(out_of_turn()))
            }
        }
    }
}
