//! The journal of all sessions: opened, and shared by clones.

use crate::commit_thread::{self, CommitThread};
use crate::directory::sync_above;
use crate::error::JournalError;
use crate::file_system::FileSystem;
use crate::journal_file::{self, JournalFile};
use crate::lock::{self, MemoryLocks, SessionLock};
use crate::reserve;
use crate::schema::{self, Log};
use rondo_types::SessionId;
use rusqlite::Connection;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The journal's file in its directory.
pub(crate) const FILE_NAME: &str = "journal.db";
/// The directory of the sessions' locks.
pub(crate) const LOCKS_DIR: &str = "locks";

/// Failures that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Loss of power: each commit waits for the disk. One that returned is not lost.
    #[default]
    Full,
    /// The end of the process, however it ends; loss of power may take the latest commits.
    Normal,
}

/// How a journal is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Failures that a commit survives.
    pub durability: Durability,
    /// Pages of the write-ahead log at which it is copied into the file; 0 means never, for tests.
    pub checkpoint_pages: u32,
    /// How long a statement waits for another process that has the file locked.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            checkpoint_pages: 1000,
            busy_timeout: Duration::from_secs(10),
        }
    }
}

/// The journal of any number of sessions, in one SQLite file.
///
/// Clones share one writer thread and one reader connection. The directory is made with mode 0700
/// and the files in it with 0600.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Location,
    writer: CommitThread,
    reader: Mutex<Connection>,
    /// Counts the changes of mailboxes.
    mail_changes: watch::Sender<u64>,
    /// Counts the changes of the outbox.
    outbox_changes: watch::Sender<u64>,
    /// Locks of sessions that hold back a budget here, and have their records elsewhere.
    budget_locks: Mutex<HashMap<SessionId, SessionLock>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let locks = self.budget_locks.get_mut();
        let locks = locks.unwrap_or_else(PoisonError::into_inner);
        if let Location::Dir(dir) = &self.place {
            let sessions = locks.keys();
            sessions.for_each(|session| lock::forget(&dir.join(LOCKS_DIR), session));
        }
    }
}

/// Location of a journal.
#[derive(Debug)]
enum Location {
    Dir(PathBuf),
    /// In the memory of this process, with the locks of its sessions.
    Memory(MemoryLocks),
}

impl Store {
    /// Makes a journal in the memory of this process: it is what one in a directory is, but that no other process
    /// sees it, and that it is gone with its last clone. It holds at most about 1 GiB.
    ///
    /// # Errors
    /// When SQLite or the system has no room for it.
    pub fn in_memory() -> Result<Self, JournalError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // By this name, the two connections of the journal find each other, and no others find them.
        let name = format!("/rondo-{}", MADE.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(format!("file:{name}?vfs=memdb"));
        let options = Options {
            durability: Durability::Normal,
            ..Options::default()
        };
        let connection = schema::open_writer(&path, &options, Log::Ahead)?;
        let reader = schema::open_reader(&path, options.busy_timeout)?;
        let writer = commit_thread::start(connection, JournalFile::in_memory());
        let writer = writer.map_err(JournalError::io(path))?;
        Ok(Self::at(
            Location::Memory(MemoryLocks::default()),
            writer,
            reader,
        ))
    }

    /// Returns whether it is in the memory of this process.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.shared.place, Location::Memory(_))
    }

    /// Opens the journal in a directory, both made if they are missing.
    ///
    /// Blocks for the disk, as every function of this type that is not `async`.
    ///
    /// # Errors
    /// When the directory cannot be used or lies on a network file system, or the file is no
    /// journal, is damaged as a whole, or was written by a later version.
    pub fn open(dir: &Path, options: Options) -> Result<Self, JournalError> {
        let opened = Self::open_to_write(dir, options);
        let path = dir.join(FILE_NAME);
        match opened {
            Err(error) if path.is_file() && (error.is_read_only() || !may_write(dir)) => {
                Err(JournalError::ReadOnly { path })
            }
            opened => opened,
        }
    }

    /// Opens the journal as [`Store::open`] does; if the disk is full, room that was kept for that
    /// is given away, so that sessions can be removed.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_to_remove(dir: &Path, options: Options) -> Result<Self, JournalError> {
        match Self::open(dir, options) {
            Err(error) if error.is_full() && reserve::release(dir) => Self::open(dir, options),
            opened => opened,
        }
    }

    /// Opens the journal to read from it, also if it is read-only or the disk is full; what writes
    /// is refused then.
    ///
    /// # Errors
    /// As [`Store::open`], but for these.
    pub fn open_to_read(dir: &Path, options: Options) -> Result<Self, JournalError> {
        let failed = match Self::open(dir, options) {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let path = dir.join(FILE_NAME);
        if !(failed.is_read_only() || failed.is_full()) || !path.is_file() {
            return Err(failed);
        }
        match schema::open_read_only(&path, options.busy_timeout) {
            Ok(reader) => Ok(Self::of(dir, CommitThread::refusing(path), reader)),
            Err(_) if failed.is_full() => Self::open_to_remove(dir, options),
            Err(error) => Err(error),
        }
    }

    fn of(dir: &Path, writer: CommitThread, reader: Connection) -> Self {
        Self::at(Location::Dir(dir.to_owned()), writer, reader)
    }

    fn at(place: Location, writer: CommitThread, reader: Connection) -> Self {
        Self {
            shared: Arc::new(Shared {
                place,
                writer,
                reader: Mutex::new(reader),
                mail_changes: watch::Sender::default(),
                outbox_changes: watch::Sender::default(),
                budget_locks: Mutex::default(),
            }),
        }
    }

    fn open_to_write(dir: &Path, options: Options) -> Result<Self, JournalError> {
        let locks = dir.join(LOCKS_DIR);
        for dir in [dir, &locks] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(JournalError::io(dir))?;
        }
        keep_private(dir)?;
        let file_system = FileSystem::of(dir)?;
        if let FileSystem::Network(kind) = file_system {
            let path = dir.to_owned();
            return Err(JournalError::NetworkFileSystem { path, kind });
        }
        let path = dir.join(FILE_NAME);
        if !path.exists() {
            // Before the file is there: a process that ends in between leaves this to the next.
            sync_above(dir).map_err(JournalError::io(dir))?;
        }
        journal_file::refuse_others(&path, &locks)?;
        private_file(&path)?;
        let connection = schema::open_writer(&path, &options, log_of(&file_system))?;
        let reader = schema::open_reader(&path, options.busy_timeout)?;
        let file = JournalFile::of(&path)?;
        let writer = commit_thread::start(connection, file).map_err(JournalError::io(path))?;
        reserve::make(dir);
        Ok(Self::of(dir, writer, reader))
    }

    /// Returns the type of the file system that the journal lies on, if it is not known whether locks hold there: such a
    /// journal has a rollback journal and no log, which would need memory that processes share.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn unknown_file_system(&self) -> Result<Option<String>, JournalError> {
        let Location::Dir(dir) = &self.shared.place else {
            return Ok(None);
        };
        Ok(match FileSystem::of(dir)? {
            FileSystem::Unknown(kind) => Some(kind),
            FileSystem::Local | FileSystem::Network(_) => None,
        })
    }

    /// Returns the SQLite file; the name alone if the journal is in memory.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.shared.place {
            Location::Dir(dir) => dir.join(FILE_NAME),
            Location::Memory(_) => FILE_NAME.into(),
        }
    }

    /// Returns the directory of the locks of sessions, in which a file is closed when a process stops working on its session;
    /// none if the journal is in memory.
    #[must_use]
    pub fn locks(&self) -> Option<PathBuf> {
        match &self.shared.place {
            Location::Dir(dir) => Some(dir.join(LOCKS_DIR)),
            Location::Memory(_) => None,
        }
    }

    /// Returns how often these clones have written what had to wait for the disk, which it did with
    /// [`Durability::Full`]. Writes at the same time share one wait; the copying of the log into the file
    /// is not counted.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.writer().syncs()
    }

    /// Returns a number that changes with each commit to the file, of this process or another: SQLite's
    /// `data_version`, as the reading connection sees it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn version(&self) -> Result<u64, JournalError> {
        let version = self
            .reader()
            .query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))?;
        Ok(version.unsigned_abs())
    }

    /// Takes the lock of a session without waiting.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another owner has it.
    pub(crate) fn lock(&self, session: &SessionId) -> Result<SessionLock, JournalError> {
        match &self.shared.place {
            Location::Dir(dir) => lock::lock(&dir.join(LOCKS_DIR), session),
            Location::Memory(locks) => locks.lock(session),
        }
    }

    /// Gives up the lock that [`Store::lock_for_budget`] took.
    pub(crate) fn unlock_for_budget(&self, session: &SessionId) {
        let locks = self.shared.budget_locks.lock();
        let mut locks = locks.unwrap_or_else(PoisonError::into_inner);
        if locks.contains_key(session) {
            self.forget_lock(session);
            locks.remove(session);
        }
    }

    /// Takes the lock of a session until what it held back is settled, unless this process or another one has it.
    pub(crate) fn lock_for_budget(&self, session: &SessionId) {
        let locks = self.shared.budget_locks.lock();
        let mut locks = locks.unwrap_or_else(PoisonError::into_inner);
        if !locks.contains_key(session)
            && let Ok(lock) = self.lock(session)
        {
            locks.insert(session.clone(), lock);
        }
    }

    /// Returns whether the session has an owner right now.
    pub(crate) fn is_held(&self, session: &SessionId) -> bool {
        match &self.shared.place {
            Location::Dir(dir) => lock::is_held(&dir.join(LOCKS_DIR), session),
            Location::Memory(locks) => locks.is_held(session),
        }
    }

    /// Removes the lock of a session that is gone; its owner calls this.
    pub(crate) fn forget_lock(&self, session: &SessionId) {
        if let Location::Dir(dir) = &self.shared.place {
            lock::forget(&dir.join(LOCKS_DIR), session);
        }
    }

    /// Keeps room on the disk for removing sessions.
    pub(crate) fn make_reserve(&self) {
        if let Location::Dir(dir) = &self.shared.place {
            reserve::make(dir);
        }
    }

    /// Frees the reserved room.
    pub(crate) fn release_reserve(&self) {
        if let Location::Dir(dir) = &self.shared.place {
            reserve::release(dir);
        }
    }

    pub(crate) fn writer(&self) -> &CommitThread {
        &self.shared.writer
    }

    pub(crate) fn mail_changes(&self) -> &watch::Sender<u64> {
        &self.shared.mail_changes
    }

    /// Wakes the sender of the outbox.
    pub(crate) fn tell_outbox(&self) {
        self.outbox_changes()
            .send_modify(|it| *it = it.wrapping_add(1));
    }

    pub(crate) fn outbox_changes(&self) -> &watch::Sender<u64> {
        &self.shared.outbox_changes
    }

    pub(crate) fn reader(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves a connection that is still whole.
        self.shared
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// SQLite does not say why it cannot make its files beside the journal.
fn may_write(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Removes the permissions of others. A file that the user may not write stays so: the journal is read-only.
fn keep_private(path: &Path) -> Result<(), JournalError> {
    let mode = fs::metadata(path)
        .map_err(JournalError::io(path))?
        .permissions();
    if mode.mode() & 0o077 == 0 {
        return Ok(());
    }
    let private = Permissions::from_mode(mode.mode() & 0o700);
    fs::set_permissions(path, private).map_err(JournalError::io(path))
}

/// SQLite gives its log and its index the mode of the database, so only this file is made here. One that is there is not
/// opened: closing any descriptor of it would give up the locks that SQLite holds for other connections of this process.
fn private_file(path: &Path) -> Result<(), JournalError> {
    let made = OpenOptions::new()
        .create_new(true)
        .append(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(JournalError::io(path)(error))
        }
        _ => keep_private(path),
    }
}

fn log_of(file_system: &FileSystem) -> Log {
    match file_system {
        FileSystem::Local => Log::Ahead,
        FileSystem::Unknown(_) | FileSystem::Network(_) => Log::Rollback,
    }
}
