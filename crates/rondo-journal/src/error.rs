//! Why a store could not do what it was asked. A turn whose records cannot be written is ended by the driver
//! in `rondo-core` (`RecordBatch::flush`).

use rondo_core::session_store::StoreError;
use rondo_core::storage::Defect;
use rondo_types::SessionId;
use rusqlite::ErrorCode;
use std::io;
use std::path::PathBuf;

/// Why this engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An error that every engine may report.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file was written by a later version.
    #[error("the journal `{}` has version {found}, this program knows {known} and older", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// File locks cannot be trusted where the journal lies.
    #[error("the journal `{}` is on a network file system ({kind}), where file locks are unreliable", path.display())]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// The file in the journal's place is not a journal.
    #[error("`{}` is not a journal: {reason}", path.display())]
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
    /// The latest records are in the log beside the journal, whose index is missing and cannot be
    /// made, since nothing can be written.
    #[error("the journal `{0}` cannot be read: `{0}-shm` is missing, without which its log `{0}-wal` cannot be", path.display())]
    NoLogIndex {
        /// The file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("the journal's database failed")]
    Database(#[from] rusqlite::Error),
    /// The writer ended, after the disk failed to keep what was written or with the program.
    #[error("the journal accepts no more records since a write failed")]
    Closed,
}

impl JournalError {
    /// `true` if the disk had no room for the data, or for the files that SQLite writes beside it.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Store(StoreError::Io { source, .. }) => {
                source.kind() == io::ErrorKind::StorageFull
            }
            // SQLite's only error about the index of its log is that it could not be made.
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

    /// `true` if the journal exists and this process may not write it.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Store(StoreError::Io { source, .. }) => matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ),
            Self::Database(error) => error.sqlite_error_code() == Some(ErrorCode::ReadOnly),
            Self::ReadOnly { .. } => true,
            _ => false,
        }
    }

    /// Returns the error for a damaged session.
    pub(crate) fn damaged(session: &SessionId, defect: Defect) -> Self {
        Self::Store(StoreError::Damaged {
            session: session.clone(),
            seq: defect.seq.0,
            reason: defect.reason,
        })
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Store(StoreError::Io { path, source })
    }
}
