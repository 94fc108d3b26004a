//! The spare supervisors of this process, from the agent's side.

use super::keeper::{self, HandedCall, Keeper};
use super::protocol::CallSpec;
use super::spare::{CALL_DESCRIPTORS, DESCRIPTORS};
use super::unix::{descriptors, handover};
use super::watchers::KeptGuard;
use rondo_sandbox::Enforcement;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Spares of a program at once: that of the commands which only look, and that of the others.
const SPARES_MAX: usize = 2;
/// How many of a keeper may be lost, one after another, before it is asked for no more.
const LOST_MAX: u32 = 8;

/// For which calls a spare is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpareKind {
    program: PathBuf,
    /// The sandbox, as JSON.
    sandbox: Vec<u8>,
}

impl SpareKind {
    /// Returns that of a call; `None` if each such call needs something of its own before it is there.
    pub(super) fn of(program: &Path, spec: &CallSpec) -> Option<Self> {
        let has_own = spec
            .sandbox
            .as_ref()
            .is_some_and(|it| it.proxy.is_some() || it.enforcement != Enforcement::Full);
        let sandbox = serde_json::to_vec(&spec.sandbox).ok();
        Some(Self {
            program: program.to_owned(),
            sandbox: sandbox.filter(|_| !has_own)?,
        })
    }

    /// Takes the spare for this, and hands it its call; nothing if there is none.
    pub(super) fn hand_over(&self, memory: &OwnedFd) -> Option<HandedCall> {
        let mut spares = spares();
        let at = spares.iter().position(|it| it.kind == *self)?;
        let spare = spares.remove(at);
        spare.keeper.spares.note_loss();
        spare.hand_over(memory).ok()
    }

    /// Lets a keeper fork a spare for the next such call, unless one waits: once such a call was made, and lately such
    /// another. Of a gateway's chats, each of which has its own sandbox, the next call is mostly another's.
    pub(super) fn prepare(&self) {
        let mut spares = spares();
        let keeper = keeper::present(&self.program);
        spares.retain(Spare::is_of_a_present_keeper);
        let Some(keeper) = keeper.filter(|it| it.spares.is_worth_one(self)) else {
            return;
        };
        if spares.iter().any(|it| it.kind == *self) {
            return;
        }
        match Spare::new(self, keeper) {
            Ok(spare) => add(&mut spares, spare),
            Err(err) => tracing::debug!(%err, "no spare supervisor could be had"),
        }
    }
}

/// Adds one; of those of its program, the oldest goes if there are too many.
fn add(spares: &mut Vec<Spare>, spare: Spare) {
    let mut of_program = spares
        .iter()
        .filter(|it| it.kind.program == spare.kind.program);
    let oldest = of_program.next().map(|it| it.kind.clone());
    if of_program.count() + 1 >= SPARES_MAX {
        // It ends with its socket.
        spares.retain(|it| Some(&it.kind) != oldest.as_ref());
    }
    spares.push(spare);
}

/// The way to a supervisor that was a spare, and will be one again.
#[derive(Debug)]
pub(super) struct SpareConnection {
    kind: SpareKind,
    calls: UnixStream,
    keeper: Arc<Keeper>,
}

impl SpareConnection {
    /// Gives the supervisor the next call, which waits for one, in the place of another one that may be gone by now.
    pub(super) fn put_back(self, guard: KeptGuard) {
        let Self {
            kind,
            calls,
            keeper,
        } = self;
        let Ok((life, guard)) = guard.into_parts() else {
            return;
        };
        let mut spares = spares();
        spares.retain(Spare::is_of_a_present_keeper);
        let is_worth_one = keeper.spares.is_worth_one(&kind);
        let spare = Spare {
            kind,
            calls,
            life,
            guard,
            keeper,
        };
        if is_worth_one && spare.is_of_a_present_keeper() {
            spares.retain(|it| it.kind != spare.kind);
            add(&mut spares, spare);
        }
    }
}

/// Conditions for a keeper's spares.
#[derive(Debug, Default)]
pub(super) struct SpareUse {
    /// How many were lost since one was of use.
    lost: AtomicU32,
    /// Of which kinds the latest calls were.
    recent: Mutex<Vec<SpareKind>>,
}

impl SpareUse {
    /// Records that a spare is handed a call: it is lost until it is known to have begun.
    fn note_loss(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a spare has begun a call.
    pub(super) fn note_use(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Notes a call, and returns whether to prepare a spare for the next of its kind.
    fn is_worth_one(&self, kind: &SpareKind) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let before = recent.iter().position(|it| it == kind);
        match before {
            Some(at) => drop(recent.remove(at)),
            None if recent.len() >= SPARES_MAX => drop(recent.remove(0)),
            None => {}
        }
        recent.push(kind.clone());
        before.is_some() && self.lost.load(Ordering::Relaxed) < LOST_MAX
    }
}

/// A supervisor that waits for its call.
struct Spare {
    kind: SpareKind,
    calls: UnixStream,
    life: UnixStream,
    /// Stands for its guard, once that has reported.
    guard: Option<Arc<OwnedFd>>,
    keeper: Arc<Keeper>,
}

/// Those of this process, the one that was asked for last behind the others.
static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

fn spares() -> MutexGuard<'static, Vec<Spare>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spare {
    fn new(kind: &SpareKind, keeper: Arc<Keeper>) -> io::Result<Self> {
        let memory = handover::seal(&kind.sandbox)?;
        let (calls, theirs) = UnixStream::pair()?;
        let (life, of_guard) = keeper::life()?;
        let own: [BorrowedFd<'_>; DESCRIPTORS] = [memory.as_fd(), theirs.as_fd(), of_guard.as_fd()];
        keeper.send(&own)?;
        Ok(Self {
            kind: kind.clone(),
            calls,
            life,
            guard: None,
            keeper,
        })
    }

    fn is_of_a_present_keeper(&self) -> bool {
        let keeper = keeper::present(&self.kind.program);
        keeper.is_some_and(|it| Arc::ptr_eq(&it, &self.keeper))
    }

    fn hand_over(self, memory: &OwnedFd) -> io::Result<HandedCall> {
        let (told, control) = io::pipe()?;
        let (frames, said) = io::pipe()?;
        let own: [BorrowedFd<'_>; CALL_DESCRIPTORS] = [memory.as_fd(), told.as_fd(), said.as_fd()];
        descriptors::send(&self.calls, &own)?;
        Ok(HandedCall {
            control: File::from(OwnedFd::from(control)),
            frames: frames.into(),
            life: self.life,
            guard: self.guard,
            keeper: Arc::clone(&self.keeper),
            way: Some(SpareConnection {
                kind: self.kind,
                calls: self.calls,
                keeper: self.keeper,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_worth_it_for_what_is_called_again_and_as_long_as_not_all_are_lost() {
        let kind = |name: &str| SpareKind {
            program: PathBuf::from("/program"),
            sandbox: name.as_bytes().to_vec(),
        };
        let of_keeper = SpareUse::default();
        let calls = ["a", "a", "b", "a", "b", "c", "a", "b", "c", "c"];
        let worth: Vec<bool> = calls
            .iter()
            .map(|it| of_keeper.is_worth_one(&kind(it)))
            .collect();
        let (yes, no) = (true, false);
        assert_eq!(worth, [no, yes, no, yes, yes, no, no, no, no, yes]);
        for _ in 0..LOST_MAX {
            assert!(of_keeper.is_worth_one(&kind("c")));
            of_keeper.note_loss();
        }
        assert!(!of_keeper.is_worth_one(&kind("c")));
        of_keeper.note_use();
        assert!(of_keeper.is_worth_one(&kind("c")));
    }
}
