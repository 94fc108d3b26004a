//! The processes between an agent and its command.

use super::keeper::GUARD_ENDS;
use super::protocol::Watcher;
use super::recall::end_orphans;
use super::unix::{self, descriptors, handover};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

/// How long a supervisor may take until it is ready; a slow disk and a busy machine are within it.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often one that is not ready is woken meanwhile: it may have been stopped.
pub(super) const WAKE_EVERY: Duration = Duration::from_secs(1);
/// How long the guard of a supervisor that is gone, or ends, may take.
const GUARD_MAX: Duration = Duration::from_secs(5);
/// How long it takes unless it was stopped.
const GUARD_USUAL: Duration = Duration::from_millis(50);

/// The supervisor of a command, and its guard.
#[derive(Debug)]
pub(super) struct Watchers {
    pub(super) guard: Guard,
    /// The supervisor; none before it has said so.
    pub(super) watcher: Option<Watcher>,
    /// Mark of the command's processes.
    pub(super) mark: String,
}

/// The guard of a supervisor, as its agent knows it.
#[derive(Debug)]
pub(super) enum Guard {
    /// A child of ours.
    Child(Child),
    /// A keeper's.
    Kept(KeptGuard),
    /// An agent before us started it.
    NotOurs,
}

/// A guard that a keeper has forked.
#[derive(Debug)]
pub(super) struct KeptGuard {
    life: UnixStream,
    /// Stands for its process; `None` before it has reported.
    process: Option<Arc<OwnedFd>>,
}

impl KeptGuard {
    /// Takes its handle, once it has reported.
    pub(super) fn new(
        life: std::os::unix::net::UnixStream,
        process: Option<Arc<OwnedFd>>,
    ) -> io::Result<Self> {
        Ok(Self {
            life: UnixStream::from_std(life)?,
            process,
        })
    }

    /// Returns its socket, and the handle of its process.
    pub(super) fn into_parts(
        mut self,
    ) -> io::Result<(std::os::unix::net::UnixStream, Option<Arc<OwnedFd>>)> {
        self.has_begun();
        Ok((self.life.into_std()?, self.process))
    }

    /// Returns whether it has reported by now.
    pub(super) fn has_begun(&mut self) -> bool {
        if self.process.is_none()
            && let Ok(Some(descriptors)) = descriptors::receive(&self.life)
        {
            self.process = descriptors.into_iter().next().map(Arc::new);
        }
        self.process.is_some()
    }

    /// Returns the processes before the supervisor is known.
    pub(super) fn processes(&self) -> Processes {
        let process = self.process.as_ref();
        Processes {
            guard: process.map_or(GuardId::None, |it| GuardId::Kept(Arc::clone(it))),
            watcher: None,
        }
    }

    /// Waits until it has reported, or no process is left that could become it; returns whether it has.
    pub(super) async fn begun(&mut self) -> io::Result<bool> {
        self.life.readable().await?;
        Ok(self.has_begun())
    }

    /// Returns whether it said that it ends, or is gone.
    fn has_ended(&mut self) -> bool {
        if !self.has_begun() {
            // Only one that is gone without a word has not.
            return true;
        }
        let mut said = [0; 1];
        let read = self.life.try_read(&mut said);
        !read.is_err_and(|err| err.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits for its end; returns whether it ended by itself.
    async fn end(&mut self) -> bool {
        loop {
            match self.life.read_u8().await {
                Ok(GUARD_ENDS) => return true,
                // It has reported only now.
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Guard {
    fn id(&self) -> GuardId {
        match self {
            Self::Child(child) => child.id().map_or(GuardId::None, GuardId::Child),
            Self::Kept(kept) => kept.processes().guard,
            Self::NotOurs => GuardId::None,
        }
    }

    /// Returns whether it is known to have ended.
    pub(super) fn has_ended(&mut self) -> bool {
        match self {
            Self::Child(child) => !matches!(child.try_wait(), Ok(None)),
            Self::Kept(kept) => kept.has_ended(),
            Self::NotOurs => false,
        }
    }

    /// Waits for its end; returns whether it ended by itself, which it does only when nothing is left.
    async fn end(&mut self) -> bool {
        match self {
            Self::Child(child) => {
                let status = child.wait().await;
                status.is_ok_and(|status| status.code().is_some())
            }
            Self::Kept(kept) => kept.end().await,
            Self::NotOurs => false,
        }
    }
}

impl Watchers {
    /// Returns none at all.
    pub(super) fn gone() -> Self {
        Self {
            guard: Guard::NotOurs,
            watcher: None,
            mark: String::new(),
        }
    }

    pub(super) fn processes(&self) -> Processes {
        Processes {
            guard: self.guard.id(),
            watcher: self.watcher,
        }
    }

    /// Waits for the guard's end, which comes with the supervisor's unless it was stopped.
    pub(super) async fn wait(&mut self) {
        if matches!(self.guard, Guard::NotOurs)
            || timeout(GUARD_USUAL, self.guard.end()).await.is_ok()
        {
            return;
        }
        self.processes().wake();
        let _ = timeout(GUARD_MAX, self.guard.end()).await;
    }

    /// Ends what is left, once the supervisor was asked to.
    pub(super) async fn end_rest(mut self) {
        if let Ok(true) = timeout(GUARD_MAX, self.guard.end()).await {
            return;
        }
        self.processes().kill();
        end_orphans(self.mark).await;
    }
}

/// The processes between us and the command, by what they can be signalled with.
#[derive(Debug, Clone)]
pub(super) struct Processes {
    pub(super) guard: GuardId,
    pub(super) watcher: Option<Watcher>,
}

#[derive(Debug, Clone)]
pub(super) enum GuardId {
    /// A child of ours, whose id is its own as long as its end was not waited for.
    Child(u32),
    Kept(Arc<OwnedFd>),
    None,
}

impl Processes {
    pub(super) fn wake(&self) {
        self.each(unix::resume, handover::resume);
    }

    pub(super) fn kill(&self) {
        self.each(unix::kill, handover::kill);
    }

    /// Waits for a part of the start, waking who may have been stopped; kills them when it takes too
    /// long.
    pub(super) async fn woken<T>(
        &self,
        part: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let ended = woken_by(|| self.wake(), timeout(READY_MAX, part)).await;
        ended.unwrap_or_else(|_| {
            self.kill();
            Err(io::ErrorKind::TimedOut.into())
        })
    }

    /// The supervisor first: its guard ends what it leaves.
    fn each(&self, act: fn(u32), act_on: fn(&OwnedFd)) {
        if let Some(supervisor) = self.supervisor() {
            act(supervisor);
        }
        match &self.guard {
            GuardId::Child(guard) => act(*guard),
            GuardId::Kept(guard) => act_on(guard),
            GuardId::None => {}
        }
    }

    pub(super) fn supervisor(&self) -> Option<u32> {
        let alive = |it: &Watcher| unix::is_alive(it.pid, it.start_time);
        self.watcher.filter(alive).map(|it| it.pid)
    }
}

/// Waits, and wakes now and then.
pub(super) async fn woken_by<T>(wake: impl Fn(), part: impl Future<Output = T>) -> T {
    let waking = async {
        loop {
            sleep(WAKE_EVERY).await;
            wake();
        }
    };
    tokio::select! {
        ended = part => ended,
        never = waking => match never {},
    }
}
