//! Why a store could not do what it was asked. A turn whose records cannot be written is ended by the driver
//! in `rondo-core` (`RecordBatch::flush`).

use rondo_core::storage::Defect;
use rondo_types::SessionId;
use rusqlite::ErrorCode;
use std::io;
use std::path::PathBuf;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process works on the session.
    #[error("session `{session}` is in use by {}", holder(*pid))]
    InUse {
        /// The session.
        session: SessionId,
        /// The process, where it says so.
        pid: Option<u32>,
    },
    /// There is no such session.
    #[error("there is no session `{session}`")]
    Unknown {
        /// What was asked for.
        session: String,
    },
    /// A prefix fits several sessions.
    #[error("`{prefix}` may be any of {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Some that fit.
        candidates: Vec<String>,
    },
    /// A session of that id is there already.
    #[error("there is a session `{session}` already")]
    Exists {
        /// The session.
        session: SessionId,
    },
    /// A session cannot have that id.
    #[error("{id:?} cannot be a session's id: {reason}")]
    BadId {
        /// What was asked for.
        id: String,
        /// Why not.
        reason: String,
    },
    /// Other sessions are forks of this one and read its records.
    #[error("session `{session}` is the parent of {}", children.join(", "))]
    HasForks {
        /// The session.
        session: SessionId,
        /// The forks.
        children: Vec<String>,
    },
    /// The session has no such record.
    #[error("session `{session}` has no record {seq}, its last is {last}")]
    NoSuchRecord {
        /// The session.
        session: SessionId,
        /// What was asked for.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// Records are damaged: the session is set aside, others go on.
    #[error("session `{session}` is damaged at record {seq}: {reason}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The first record that is wrong.
        seq: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// An exported file cannot be read.
    #[error("line {line} of the file is no record of a session: {reason}")]
    BadExport {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written by a later version.
    #[error("the journal `{}` has version {found}, this program knows {known} and older", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// File locks cannot be trusted where the journal lies.
    #[error("the journal `{}` lies on a network file system ({kind}), where locks do not hold", path.display())]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// What lies in the journal's place is none.
    #[error("`{}` is no journal: {reason}", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The journal can be read, and not written.
    #[error("the journal `{}` is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// What was written last is in the log beside the journal, whose index is not there and cannot be
    /// made, since nothing can be written.
    #[error("the journal `{0}` cannot be read: `{0}-shm` is missing, without which its log `{0}-wal` cannot be", path.display())]
    NoLogIndex {
        /// The file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("the journal's database failed")]
    Database(#[from] rusqlite::Error),
    /// The disk failed.
    #[error("failed to use `{}`", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer ended, after the disk failed to keep what was written or with the program.
    #[error("the journal no longer takes records since a write failed")]
    Closed,
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl StoreError {
    /// Whether the disk had no room for what was to be written, or for what SQLite writes beside it.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            // SQLite tells of the index of its log only that it could not be made.
            Self::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen)
            ),
            _ => false,
        }
    }

    /// Returns whether SQLite calls the file malformed, or none of its own: [`Store::salvage`](crate::Store::salvage)
    /// saves what can be read.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        )
    }

    /// Whether the journal is there and this process may not write it.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ),
            Self::Database(error) => error.sqlite_error_code() == Some(ErrorCode::ReadOnly),
            Self::ReadOnly { .. } => true,
            _ => false,
        }
    }

    /// Says that a session is damaged.
    pub(crate) fn damaged(session: &SessionId, defect: Defect) -> Self {
        Self::Damaged {
            session: session.clone(),
            seq: defect.seq.0,
            reason: defect.reason,
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
