//! The ports to a host's messages to the outside, and to its rows beside its sessions. Both become durable
//! together with a session's records ([`Commit`]), or with mail ([`HostCommit`]).

use super::mailbox::{MailboxError, NewMail};
use async_trait::async_trait;
use rondo_types::{HostRow, OutboxEntry, OutboxId, SessionId, TimeMs};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Messages that are remembered after they were sent, dropped or given up, the newest ones: one under the key of
/// another of these is passed over.
pub const SENT_REMEMBERED: usize = 10_000;
/// Rows that [`Outbox::due`] and [`Outbox::unsent`] return at the most.
pub const OPEN_ROWS_MAX: usize = 1000;

/// Changes that a host makes durable at once: whole or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostCommit {
    /// Names the event from outside that led to it: if that was committed before, nothing is done. The latest 100,000
    /// are remembered.
    pub event: Option<String>,
    /// Is submitted to sessions.
    pub mail: Vec<NewMail>,
    /// Is taken back from sessions, by its keys.
    pub withdrawn: Vec<(SessionId, String)>,
    /// Is sent to the outside.
    pub outbox: Vec<OutboxEntry>,
    /// Is noted.
    pub rows: Vec<HostRow>,
}

impl HostCommit {
    /// The events that are remembered, the newest ones.
    pub const EVENTS_REMEMBERED: usize = 100_000;
}

/// The port to a host's rows beside its sessions.
#[async_trait]
pub trait HostStore: Send + Sync {
    /// Makes something durable, and returns `false` if its event was committed before.
    ///
    /// # Errors
    /// When a part of it is refused, or it cannot be made durable; then nothing of it is done. After
    /// [`MailboxError::Unknown`] it may be: with an event it can be committed again.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be done.
    async fn commit(&self, commit: HostCommit) -> Result<bool, MailboxError>;

    /// Returns the value of a row.
    ///
    /// # Errors
    /// When the storage fails.
    async fn row(&self, table: &str, key: &str) -> Result<Option<String>, MailboxError>;

    /// Returns the rows of a table in order of their keys, from the one after `after` on, at most so many.
    ///
    /// # Errors
    /// When the storage fails.
    async fn rows(
        &self,
        table: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, MailboxError>;
}

/// How a message is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxState {
    /// It waits to be sent.
    Waiting,
    /// It is being sent, or was when a process ended: it may be there.
    Sending,
    /// It is there.
    Sent,
    /// It was given up.
    Failed,
    /// A person dropped it.
    Dropped,
}

impl OutboxState {
    /// Returns its word, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }

    /// Returns the state of that word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let all = [
            Self::Waiting,
            Self::Sending,
            Self::Sent,
            Self::Failed,
            Self::Dropped,
        ];
        all.into_iter().find(|it| it.word() == word)
    }

    /// Returns whether it is still to be sent.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Sending)
    }
}

/// A message in the outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutboxRow {
    /// Number of the row.
    pub id: OutboxId,
    /// Message to send. Text and details are empty once it was sent or dropped.
    #[serde(flatten)]
    pub entry: OutboxEntry,
    /// How it is getting on.
    pub state: OutboxState,
    /// How often it was begun to be sent.
    pub attempts: u32,
    /// How often it was sent again although it may have been there.
    pub doubts: u32,
    /// When it was queued.
    pub at: TimeMs,
    /// Earliest time of sending.
    pub not_before: TimeMs,
    /// Latest failure, without secrets.
    pub error: Option<String>,
    /// The channel's id of the sent message.
    pub receipt: Option<String>,
}

/// Outcome of an attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// It is there, under this name.
    Sent(String),
    /// It was not sent.
    NotSent {
        /// When to try again.
        not_before: TimeMs,
        /// Reason of the failure.
        error: String,
    },
    /// It may be there.
    Unclear {
        /// When to try again.
        not_before: TimeMs,
        /// Reason of the failure.
        error: String,
    },
    /// It can never be sent.
    GivenUp {
        /// Reason of the failure.
        error: String,
    },
}

/// How many messages are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OutboxCounts {
    /// To be sent or being sent.
    pub open: u64,
    /// Given up, among those remembered.
    pub failed: u64,
    /// Times that a message was sent again although it may have been there, among those remembered.
    pub doubts: u64,
}

/// The port to the messages to the outside. Rows come in by [`Commit::outbox`](rondo_types::Commit::outbox) and
/// [`HostCommit::outbox`].
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Returns the messages that a channel must send now: of each chat the oldest open message, if its time has come.
    /// In order of arrival, at most `limit`.
    ///
    /// # Errors
    /// When the storage fails.
    async fn due(
        &self,
        channel: &str,
        now: TimeMs,
        limit: usize,
    ) -> Result<Vec<OutboxRow>, MailboxError>;

    /// Returns when the next message of a channel is due; none if none is open.
    ///
    /// # Errors
    /// When the storage fails.
    async fn next_due(&self, channel: &str) -> Result<Option<TimeMs>, MailboxError>;

    /// Records that a message is being sent: once this returned, a crash leaves it [`Sending`](OutboxState::Sending).
    /// Returns `false` if it is not open any more.
    ///
    /// # Errors
    /// When that cannot be made durable; then it must not be sent.
    async fn begin_sending(&self, id: OutboxId) -> Result<bool, MailboxError>;

    /// Notes the result of the attempt.
    ///
    /// # Errors
    /// When that cannot be made durable: it stays [`Sending`](OutboxState::Sending) then.
    async fn end_sending(&self, id: OutboxId, attempt: Attempt) -> Result<(), MailboxError>;

    /// Moves the open messages of a chat to another one.
    ///
    /// # Errors
    /// When that cannot be made durable.
    async fn move_chat(&self, channel: &str, from: &str, to: &str) -> Result<(), MailboxError>;

    /// Returns messages that are not sent, the oldest first: those that are open and those that were given up. At most
    /// [`OPEN_ROWS_MAX`].
    ///
    /// # Errors
    /// When the storage fails.
    async fn unsent(&self) -> Result<Vec<OutboxRow>, MailboxError>;

    /// Sends a message now that waits or was given up. Returns `false` if there is none.
    ///
    /// # Errors
    /// When that cannot be made durable.
    async fn retry(&self, id: OutboxId) -> Result<bool, MailboxError>;

    /// Drops a message that waits or was given up. Returns `false` if there is none.
    ///
    /// # Errors
    /// When that cannot be made durable.
    async fn drop_row(&self, id: OutboxId) -> Result<bool, MailboxError>;

    /// Counts.
    ///
    /// # Errors
    /// When the storage fails.
    async fn counts(&self) -> Result<OutboxCounts, MailboxError>;

    /// Returns how many messages of a chat are open.
    ///
    /// # Errors
    /// When the storage fails.
    async fn open_in_chat(&self, channel: &str, chat: &str) -> Result<u64, MailboxError>;

    /// Returns a counter that changes with each change made through this value and its clones, as
    /// [`Mailbox::changed`](super::Mailbox::changed).
    fn outbox_changed(&self) -> watch::Receiver<u64>;
}
