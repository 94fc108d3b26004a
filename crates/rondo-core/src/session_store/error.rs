//! Why storage could not do what it was asked.

use rondo_types::SessionId;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// An engine's own error, whose text is shown.
type Cause = Box<dyn Error + Send + Sync>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another owner has the session.
    #[error("session `{session}` is in use by {}", holder(*pid))]
    InUse {
        /// The session.
        session: SessionId,
        /// The owner's process, if it is known.
        pid: Option<u32>,
    },
    /// There is no such session.
    #[error("there is no session `{session}`")]
    Unknown {
        /// Name that was given.
        session: String,
    },
    /// A prefix fits several sessions.
    #[error("`{prefix}` is ambiguous: it matches {}", candidates.join(", "))]
    Ambiguous {
        /// Prefix that was given.
        prefix: String,
        /// Some that fit.
        candidates: Vec<String>,
    },
    /// A session of that id is there already.
    #[error("session `{session}` already exists")]
    Exists {
        /// The session.
        session: SessionId,
    },
    /// A session cannot have that id.
    #[error("{id:?} cannot be a session's id: {reason}")]
    BadId {
        /// The requested beginning of the id.
        id: String,
        /// Why not.
        reason: String,
    },
    /// Other sessions are forks of this one.
    #[error("session `{session}` is the parent of {}", children.join(", "))]
    HasForks {
        /// The session.
        session: SessionId,
        /// Some of the forks.
        children: Vec<String>,
    },
    /// The session has no such record.
    #[error("session `{session}` has no record {seq}, its last is {last}")]
    NoSuchRecord {
        /// The session.
        session: SessionId,
        /// Record that was requested.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// Records are damaged; other sessions are not affected.
    #[error("session `{session}` is damaged at record {seq}: {reason}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The first record that is wrong.
        seq: u64,
        /// Description of the damage.
        reason: String,
    },
    /// An exported file cannot be read.
    #[error("line {line} of the file is not a session record: {reason}")]
    BadExport {
        /// From 1.
        line: usize,
        /// Problem with the line.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("failed to use `{}`", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The storage can be read, and not written.
    #[error(transparent)]
    ReadOnly(Cause),
    /// The storage as a whole is damaged; an engine may be able to save what can be read.
    #[error(transparent)]
    Malformed(Cause),
    /// The storage has no room.
    #[error(transparent)]
    Full(Cause),
    /// The storage failed.
    #[error(transparent)]
    Storage(Cause),
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        None => "another process".to_owned(),
        Some(pid) if pid == std::process::id() => format!("this process ({pid})"),
        Some(pid) => format!("process {pid}"),
    }
}
