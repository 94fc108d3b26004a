//! The port to a store of sessions: creates, owns (one owner at a time), reads, lists, forks and removes them.

mod memory;

pub use memory::MemoryStore;

use crate::history::History;
use crate::ports::{Journal, Record, RecordBody, Seq};
use async_trait::async_trait;
use rondo_types::{SessionId, TimeMs};
use std::error::Error;
use std::sync::Arc;

/// Bytes of a session's id.
pub const ID_BYTES_MAX: usize = 128;
/// Characters of a title.
pub const TITLE_CHARS_MAX: usize = 120;

/// A session that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, of 1 to [`ID_BYTES_MAX`] bytes without control characters.
    pub id: SessionId,
    /// When it begins.
    pub at: TimeMs,
    /// What it is about; where it is empty, the beginning of the first message is taken, if that is
    /// among the first records.
    pub title: String,
    /// The directory it works in; empty where it has none.
    pub directory: String,
}

impl NewSession {
    /// Describes a session by its id alone.
    #[must_use]
    pub fn new(id: SessionId, at: TimeMs) -> Self {
        Self {
            id,
            at,
            title: String::new(),
            directory: String::new(),
        }
    }

    /// Returns what is shown of it: where no title was given, its first message.
    #[must_use]
    pub fn shown_title(&self, first: &[Record]) -> String {
        let said = first.iter().find_map(|record| match &record.body {
            RecordBody::UserMessage { message } => Some(message.text()),
            _ => None,
        });
        match self.title.is_empty() {
            true => title(&said.unwrap_or_default()),
            false => title(&self.title),
        }
    }
}

/// Makes one line of a text, of at most [`TITLE_CHARS_MAX`] characters.
#[must_use]
pub fn title(text: &str) -> String {
    let words = text.split_whitespace().take(TITLE_CHARS_MAX);
    let line = words.collect::<Vec<_>>().join(" ");
    line.chars().take(TITLE_CHARS_MAX).collect()
}

/// Refuses ids that no list could show, and no file be named by; the error says why.
///
/// # Errors
/// When it is empty, too long, or has a control character in it.
pub fn check_id(session: &SessionId) -> Result<(), &'static str> {
    match session.as_str() {
        "" => Err("it is empty"),
        id if id.len() > ID_BYTES_MAX => Err("it is longer than 128 bytes"),
        id if id.chars().any(char::is_control) => Err("it has a control character in it"),
        _ => Ok(()),
    }
}

/// What is known of a session from its row alone; that it waits for an answer is read from its last records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// When it began.
    pub created: TimeMs,
    /// When it was last written.
    pub updated: TimeMs,
    /// The place of its last record.
    pub head: Seq,
    /// The session it is a fork of, and the last record that both share.
    pub parent: Option<(SessionId, Seq)>,
    /// What it is about: usually the beginning of its first message. May be empty.
    pub title: String,
    /// The directory it works in; empty where it has none.
    pub directory: String,
    /// How many turns it has.
    pub turns: u32,
    /// Where its last turn stands.
    pub state: SessionState,
    /// Whether its records, or those that it is a fork of, came from a file: who wrote them is not known.
    pub imported: bool,
    /// Whether what came after its last record is lost: a repair cut it off, or an import was cut
    /// short. It is false again once something was said in it.
    pub lost_end: bool,
}

/// Where a session's last turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Its end is recorded, or there is none.
    Done,
    /// A process works on it.
    Running,
    /// Its end is not recorded, and no process works on it.
    CutOff,
    /// It waits for answers, and no process works on it.
    Parked,
}

/// Holds any number of sessions. Several processes may hold the same store; a session has one owner at a time, and
/// all can read it.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Begins a session and owns it until what it returns is dropped. It is there for others from its first records
    /// on; one that never gets any leaves nothing behind.
    ///
    /// # Errors
    /// When there is one of that id, it is being begun elsewhere, or the storage fails.
    async fn begin(&self, new: NewSession) -> Result<Arc<dyn Journal>, SessionStoreError>;

    /// Takes ownership of an existing session until the returned value is dropped. Earlier owners can append no more.
    ///
    /// # Errors
    /// When another process owns it, there is none of that id, or the storage fails.
    async fn take(&self, session: &SessionId) -> Result<Arc<dyn Journal>, SessionStoreError>;

    /// Follows a session's records to its transcript.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged or missing, or the storage fails.
    async fn history(&self, session: &SessionId) -> Result<History, SessionStoreError>;

    /// Reads records from `from` on, at most `limit`, those before a fork included. What a later version wrote and
    /// this one cannot read is left out and counts.
    ///
    /// # Errors
    /// As [`SessionStore::history`].
    async fn read(
        &self,
        session: &SessionId,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Record)>, SessionStoreError>;

    /// Lists sessions, the one that was written last first, at most `limit`.
    ///
    /// # Errors
    /// When the storage fails.
    async fn list(&self, limit: usize) -> Result<Vec<SessionInfo>, SessionStoreError>;

    /// Returns what is known of one session.
    ///
    /// # Errors
    /// When there is no such session, or the storage fails.
    async fn info(&self, session: &SessionId) -> Result<SessionInfo, SessionStoreError>;

    /// Says what a session is about, as [`title`] shows it.
    ///
    /// # Errors
    /// As [`SessionStore::info`].
    async fn rename(&self, session: &SessionId, title: &str) -> Result<(), SessionStoreError>;

    /// Makes a session that shares another's records up to and with `at`. Its next record is `at` + 1; the parent
    /// goes on by itself.
    ///
    /// # Errors
    /// When the parent or the record is not there, the new id is taken or cannot be one, or the storage fails.
    async fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), SessionStoreError>;

    /// Removes a session, what only it holds, and its mail.
    ///
    /// # Errors
    /// When there is no such session, it is owned, forks of it are there, or the storage fails.
    async fn remove(&self, session: &SessionId) -> Result<(), SessionStoreError>;

    /// Removes the sessions that were last written before `since`, except those that are owned and those that have
    /// forks which stay; returns which.
    ///
    /// # Errors
    /// When the storage fails.
    async fn retain(&self, since: TimeMs) -> Result<Vec<SessionId>, SessionStoreError>;
}

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SessionStoreError {
    /// Another owner has the session.
    #[error("session `{session}` is in use by {}", holder(*pid))]
    InUse {
        /// The session.
        session: SessionId,
        /// The owner's process, where that is known.
        pid: Option<u32>,
    },
    /// There is no such session.
    #[error("there is no session `{session}`")]
    Unknown {
        /// What was asked for.
        session: String,
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
        /// The beginning of what was asked for.
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
        /// What was asked for.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// Records are damaged; other sessions go on.
    #[error("session `{session}` is damaged at record {seq}: {reason}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The first record that is wrong.
        seq: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The storage has no room.
    #[error("the store is full")]
    Full,
    /// The storage failed.
    #[error("failed to use the store")]
    Storage(#[source] Box<dyn Error + Send + Sync>),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}
