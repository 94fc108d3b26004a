//! Everything that a host stores, behind one port: sessions, mail, what is sent to the outside, notes of the host,
//! budgets, and the upkeep of all that. An engine implements [`Storage`]; hosts hold a [`Store`].

pub mod export;
mod export_reader;
pub mod walk;

pub use export_reader::{ExportReader, ExportedSession};

use crate::ports::{BudgetStore, Entry, HostStore, Mailbox, Outbox, Record, Seq};
use crate::session_store::{SessionInfo, SessionStore, StoreError};
use rondo_types::{SessionId, TimeMs};
use std::fmt;
use std::io::{BufRead, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// The storage of a host. Clones are the same storage.
pub type Store = Arc<dyn Storage>;

/// The complete port to an engine.
///
/// The functions that are not asynchronous block for the storage, as those of [`SessionStore`] do. A host learns of
/// commits of its own process by [`Mailbox::changed`] and [`Outbox::outbox_changed`], and of commits of any process
/// by [`Storage::version`].
pub trait Storage:
    SessionStore + Mailbox + Outbox + HostStore + BudgetStore + Maintenance + fmt::Debug
{
    /// Returns a number that changes with each commit, of this process or another.
    ///
    /// # Errors
    /// When the storage fails.
    fn version(&self) -> Result<u64, StoreError>;

    /// Returns the file that everything is in; `None` if the engine has none.
    fn path(&self) -> Option<PathBuf>;

    /// Returns the directory of the locks of sessions, in which a file is closed when a process stops working on its
    /// session; `None` if the engine has none.
    fn locks(&self) -> Option<PathBuf>;

    /// Returns whether everything is in the memory of this process, and gone with it.
    fn is_in_memory(&self) -> bool;

    /// Returns the type of the file system that the storage lies on, if it is not known whether locks hold there.
    ///
    /// # Errors
    /// When the storage fails.
    fn unknown_file_system(&self) -> Result<Option<String>, StoreError>;
}

impl dyn Storage {
    /// Passes records to `take` as [`SessionStore::visit`] does, until it fails.
    ///
    /// # Errors
    /// As [`SessionStore::visit`]; also the error of `take`.
    pub fn each<E: From<StoreError>>(
        &self,
        session: &SessionId,
        from: Seq,
        mut take: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        until_failed(|failed| self.visit(session, from, &mut |entry| broken(take(entry), failed)))
    }

    /// Passes checked records to `take` as [`SessionStore::visit_checked`] does, until it fails.
    ///
    /// # Errors
    /// As [`SessionStore::visit_checked`]; also the error of `take`.
    pub fn records<E: From<StoreError>>(
        &self,
        session: &SessionId,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        until_failed(|failed| {
            self.visit_checked(session, &mut |record| broken(take(record), failed))
        })
    }
}

/// Returns the error that `visit` put aside, or else its own.
fn until_failed<E: From<StoreError>>(
    visit: impl FnOnce(&mut Option<E>) -> Result<(), StoreError>,
) -> Result<(), E> {
    let mut failed = None;
    visit(&mut failed)?;
    failed.map_or(Ok(()), Err)
}

/// Puts an error aside and breaks.
fn broken<E>(taken: Result<(), E>, failed: &mut Option<E>) -> ControlFlow<()> {
    match taken {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// The upkeep of a store: checks, repairs, copies in and out, and room.
pub trait Maintenance: Send + Sync {
    /// Checks every record of a session: its place, its hash, its body.
    ///
    /// # Errors
    /// When there is no such session or the storage fails. Damage is not an error here.
    fn check(&self, session: &SessionId) -> Result<Report, StoreError>;

    /// Checks a session, restores what can be restored, and cuts off everything from the first record on that stays
    /// damaged, in the forks that share it too.
    ///
    /// # Errors
    /// As [`Maintenance::check`]; also when the session or a fork that would be cut is in use, or the damage is in
    /// records that it shares with its parent.
    fn repair(&self, session: &SessionId) -> Result<Report, StoreError>;

    /// Writes a session as lines of JSON, and returns the number of records. Nothing is written if one is damaged.
    ///
    /// # Errors
    /// When there is no such session, it is damaged, or reading or writing fails.
    fn export(&self, session: &SessionId, out: &mut dyn Write) -> Result<u64, StoreError>;

    /// Reads an exported session, under its own id or another. It is marked as imported, and so are its forks.
    ///
    /// # Errors
    /// When a line is not a record or does not follow the one before it, the id is taken or cannot be one, or reading or
    /// writing fails; then nothing is imported.
    fn import(
        &self,
        input: &mut dyn BufRead,
        id: Option<&SessionId>,
    ) -> Result<Imported, StoreError>;

    /// Returns the sessions that may be removed, the oldest first.
    ///
    /// # Errors
    /// When the storage fails.
    fn surplus(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns the room of removed sessions to the disk, and whether that was possible: on a full disk, what is left
    /// stays reserved for later records.
    ///
    /// # Errors
    /// When the storage fails.
    fn vacuum(&self) -> Result<bool, StoreError>;

    /// Checks the storage as a whole and returns what is wrong with it; `None` if nothing is.
    ///
    /// # Errors
    /// When the storage fails.
    fn malformed(&self) -> Result<Option<String>, StoreError>;
}

/// Something that is wrong with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The first record that is wrong.
    pub seq: Seq,
    /// Description of the damage.
    pub reason: String,
}

/// Findings of a check of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The session.
    pub session: SessionId,
    /// Records that are sound, from the first on.
    pub sound: u64,
    /// First defect, if any; nothing behind it was checked.
    pub defect: Option<Defect>,
    /// How many records a repair restored: those in which one bit was changed.
    pub mended: u32,
    /// Removed records, from the first damaged one on, in this session and in its forks.
    pub cut: Vec<CutRecords>,
}

/// Records that a repair cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutRecords {
    /// The session that lost them: the one that was repaired, or a fork of it.
    pub session: SessionId,
    /// File with the removed records; `None` if there were none or the store is in memory.
    pub saved: Option<PathBuf>,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The session.
    pub session: SessionId,
    /// Number of records.
    pub records: u64,
    /// Set if its end is missing: the last line was cut short and left out, or there are fewer records than the file
    /// announces.
    pub torn: bool,
    /// How many records the file announces; `None` for files of earlier versions.
    pub announced: Option<u64>,
    /// The directory that it worked in, as the file says. The session works in none until
    /// [`SessionStore::set_directory`]: its author is unknown.
    pub directory: String,
}

/// Sessions that a store need not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Sessions that were last written before this.
    pub before: Option<TimeMs>,
    /// The oldest sessions, until the bodies of all records are no more than this.
    pub keep_bytes: Option<u64>,
}

/// Readable part of a malformed store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedStore {
    /// The file as it was.
    pub kept: PathBuf,
    /// Sessions whose names could not be read, under new ones.
    pub renamed: Vec<SessionId>,
}
