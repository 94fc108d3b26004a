//! The lock of a session: one process owns it, and another gets an error at once.
//!
//! Nothing here waits. A process that finds a session locked gets the owner's process id
//! ([`StoreError::InUse`]) and may try again.

use crate::error::JournalError;
use rondo_core::session_store::StoreError;
use rondo_types::SessionId;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Held while this process owns the session; the kernel frees it when the process ends, however
/// it ends.
#[derive(Debug)]
pub(crate) struct SessionLock {
    _held: LockGuard,
}

#[derive(Debug)]
enum LockGuard {
    File(#[expect(dead_code, reason = "is closed with this")] OwnedFd),
    Memory(#[expect(dead_code, reason = "is given back with this")] MemoryLock),
}

/// The locks of the sessions of a journal in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryLocks(Arc<Mutex<HashSet<SessionId>>>);

#[derive(Debug)]
struct MemoryLock {
    session: SessionId,
    all: Arc<Mutex<HashSet<SessionId>>>,
}

impl MemoryLocks {
    /// As [`lock`].
    pub(crate) fn lock(&self, session: &SessionId) -> Result<SessionLock, JournalError> {
        if !locked(&self.0).insert(session.clone()) {
            return Err(JournalError::Store(StoreError::InUse {
                session: session.clone(),
                pid: Some(std::process::id()),
            }));
        }
        let held = MemoryLock {
            session: session.clone(),
            all: Arc::clone(&self.0),
        };
        Ok(SessionLock {
            _held: LockGuard::Memory(held),
        })
    }

    /// As [`is_held`].
    pub(crate) fn is_held(&self, session: &SessionId) -> bool {
        locked(&self.0).contains(session)
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        locked(&self.all).remove(&self.session);
    }
}

fn locked(all: &Mutex<HashSet<SessionId>>) -> MutexGuard<'_, HashSet<SessionId>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the lock of a session without waiting.
///
/// # Errors
/// [`StoreError::InUse`], with the process id of the owner if that is known, when another process has it.
pub(crate) fn lock(dir: &Path, session: &SessionId) -> Result<SessionLock, JournalError> {
    let path = path(dir, session);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let failed = |error: Errno| JournalError::io(&path)(error.into());
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // On a full disk the lock file has no process id.
            let _ = note_holder(&file);
            Ok(SessionLock {
                _held: LockGuard::File(file),
            })
        }
        Err(Errno::WOULDBLOCK) => Err(JournalError::Store(StoreError::InUse {
            session: session.clone(),
            pid: read_holder(&file),
        })),
        Err(error) => Err(failed(error)),
    }
}

/// Returns whether some process owns the session right now.
pub(crate) fn is_held(dir: &Path, session: &SessionId) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let Ok(file) = rustix::fs::open(path(dir, session), flags, Mode::empty()) else {
        return false;
    };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Returns the error that names a session which some process owns right now; `None` if no session is owned.
pub(crate) fn held_by_any(dir: &Path) -> Option<JournalError> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| owner_of(&file.path())).next()
}

fn owner_of(path: &Path) -> Option<JournalError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    (locked == Err(Errno::WOULDBLOCK)).then(|| {
        JournalError::Store(StoreError::InUse {
            session: SessionId::new(path.file_stem().unwrap_or_default().to_string_lossy()),
            pid: read_holder(&file),
        })
    })
}

/// Removes the lock of a session that is gone; its owner calls this.
pub(crate) fn forget(dir: &Path, session: &SessionId) {
    // A file that stays costs nothing but its name.
    let _ = rustix::fs::unlink(path(dir, session));
}

/// Writes this process's id into the lock file, for the error of other processes. Whether the lock is held, the
/// kernel alone decides.
fn note_holder(file: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::ftruncate(file, 0)?;
    rustix::io::pwrite(file, format!("{}\n", std::process::id()).as_bytes(), 0)?;
    Ok(())
}

fn read_holder(file: &OwnedFd) -> Option<u32> {
    let mut bytes = [0; 16];
    let count = rustix::io::pread(file, &mut bytes, 0).ok()?;
    std::str::from_utf8(bytes.get(..count)?)
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn path(dir: &Path, session: &SessionId) -> PathBuf {
    dir.join(format!("{}.lock", file_name(session.as_str())))
}

/// Makes a file name of any id: what is not a plain character is written as its code.
fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}
