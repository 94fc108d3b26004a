//! The port to a store of sessions: creates, owns (one owner at a time), reads, lists, forks and removes them.

mod error;

pub use error::StoreError;

use crate::history::History;
use crate::ports::{Entry, Journal, Record, RecordBody, Seq};
use rondo_types::{SessionId, StopReason, TimeMs};
use std::ops::ControlFlow;
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
    /// Title; if empty, the beginning of the first message is used, if that is
    /// among the first records.
    pub title: String,
    /// The directory it works in; empty if it has none.
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

    /// Returns the title for display: if no title was given, its first message.
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

/// Facts about a session from its row alone; open questions are read from its last records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// When it began.
    pub created: TimeMs,
    /// When it was last written.
    pub updated: TimeMs,
    /// The place of its last record.
    pub head: Seq,
    /// The session it is a fork of, and the last record that both share.
    pub parent: Option<(SessionId, Seq)>,
    /// Title: usually the beginning of its first message. May be empty.
    pub title: String,
    /// The directory it works in; empty if it has none.
    pub directory: String,
    /// How many turns it has.
    pub turns: u32,
    /// State of its last turn.
    pub state: SessionState,
    /// Set if its records, or those that it is a fork of, came from a file, whose author is not known.
    pub imported: bool,
    /// Set if the records after its last one are lost: a repair cut them off, or an import was cut
    /// short. It is false again once something was said in it.
    pub lost_end: bool,
}

/// State of a session's last turn.
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

/// Beginning of one of a session's latest turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateTurn {
    /// The turn's number in its session, from 1.
    pub number: u32,
    /// Its first record.
    pub first: Seq,
}

/// Holds any number of sessions. Several processes may hold the same store; a session has one owner at a time, and
/// all can read it.
///
/// The functions block for the storage: asynchronous code calls them on a thread that may block, such as one of
/// tokio's `spawn_blocking`. What a session's owner does many times in a turn, its [`Journal`], is asynchronous.
pub trait SessionStore: Send + Sync {
    /// Begins a session and owns it until the returned value is dropped. Others see it from its first records on; a
    /// session that never gets any leaves nothing behind.
    ///
    /// # Errors
    /// When there is one of that id, it is being begun elsewhere, or the storage fails.
    fn begin(&self, new: NewSession) -> Result<Arc<dyn Journal>, StoreError>;

    /// Takes ownership of an existing session until the returned value is dropped. Earlier owners can append no more.
    ///
    /// # Errors
    /// When another process owns it, it does not exist, or the storage fails.
    fn take(&self, session: &SessionId) -> Result<Arc<dyn Journal>, StoreError>;

    /// Follows a session's records to its transcript.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged or missing, or the storage fails.
    fn history(&self, session: &SessionId) -> Result<History, StoreError>;

    /// Reads records from `from` on, at most `limit`, those before a fork included. Their hashes are not checked.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the storage fails.
    fn read(&self, session: &SessionId, from: Seq, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// Passes the records from `from` on that are there now to `take`, in their order, until it breaks. The number of
    /// records in memory is bounded. Their hashes are not checked.
    ///
    /// # Errors
    /// As [`SessionStore::read`], after the records before the one that cannot be read.
    fn visit(
        &self,
        session: &SessionId,
        from: Seq,
        take: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Passes all records to `take`, in their order, until it breaks; each is checked against those before it.
    /// Records of a later version that this one cannot read are left out. The number of records in memory is bounded.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the storage fails. The records passed before are sound.
    fn visit_checked(
        &self,
        session: &SessionId,
        take: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Lists sessions, the one that was written last first, at most `limit`, without those that calls of others
    /// started.
    ///
    /// # Errors
    /// When the storage fails.
    fn sessions(&self, limit: usize) -> Result<Vec<SessionInfo>, StoreError>;

    /// Lists the sessions that calls of a session started, in the order of the calls, at most `limit`.
    ///
    /// # Errors
    /// When the storage fails.
    fn children(&self, parent: &SessionId, limit: usize) -> Result<Vec<SessionInfo>, StoreError>;

    /// Lists sessions whose last turn has no end and is not parked, and that no process works on, without those that
    /// calls of others started.
    ///
    /// # Errors
    /// When the storage fails.
    fn cut_off(&self) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns the session that was written last of those that work in a directory, except imported ones.
    ///
    /// # Errors
    /// When the storage fails.
    fn latest_in(&self, directory: &str) -> Result<Option<SessionInfo>, StoreError>;

    /// Returns the description of one session.
    ///
    /// # Errors
    /// When there is no such session, or the storage fails.
    fn session(&self, session: &SessionId) -> Result<SessionInfo, StoreError>;

    /// Finds a session by its id, by a prefix that fits only one, or by `latest`, which never names an imported one.
    ///
    /// # Errors
    /// When none fits, several do, or the storage fails.
    fn resolve(&self, text: &str) -> Result<SessionId, StoreError>;

    /// Returns whether a process works on a session right now, including one that has no records yet.
    fn is_in_use(&self, session: &SessionId) -> bool;

    /// Returns the place of the session's last record; `None` if there is no such session.
    ///
    /// # Errors
    /// When the storage fails.
    fn last_record(&self, session: &SessionId) -> Result<Option<Seq>, StoreError>;

    /// Returns how the session's last turn ended; `None` if it has not, or if more records followed its end than are
    /// searched.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the storage fails.
    fn last_end(&self, session: &SessionId) -> Result<Option<StopReason>, StoreError>;

    /// Returns the beginning of one of the latest turns: the first turn that lies entirely within the session's last
    /// records, about `records` of them, with no compaction in or after it. `None` if there is none.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the storage fails.
    fn late_turn(&self, session: &SessionId, records: u64) -> Result<Option<LateTurn>, StoreError>;

    /// Sets the title of a session, as [`title`] shows it.
    ///
    /// # Errors
    /// When there is no such session, or the storage fails.
    fn set_title(&self, session: &SessionId, title: &str) -> Result<(), StoreError>;

    /// Sets the directory that a session works in.
    ///
    /// # Errors
    /// When there is no such session, or the storage fails.
    fn set_directory(&self, session: &SessionId, directory: &str) -> Result<(), StoreError>;

    /// Makes a session that shares another's records up to and with `at`. Its next record is `at` + 1; the parent
    /// continues by itself.
    ///
    /// # Errors
    /// When the parent or the record is not there, the new id is taken or cannot be one, or the storage fails.
    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), StoreError>;

    /// Removes a session, what only it holds, its mail, and the sessions that its calls started.
    ///
    /// # Errors
    /// When there is no such session, it is owned, forks of it are there, or the storage fails.
    fn remove(&self, session: &SessionId) -> Result<(), StoreError>;
}
