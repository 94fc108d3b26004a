//! The port to the mail of sessions: messages, answers and cancellations, which wait here until the
//! session's owner takes them. Any process may submit; what waits outlives all of them if the engine is durable.

use crate::session::{Answer, Delivery, QUEUED_MAX};
use async_trait::async_trait;
use rondo_types::{MailId, Message, SessionId, TimeMs};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Messages that may wait in one session.
pub const MESSAGES_MAX: usize = QUEUED_MAX;
/// Answers and cancellations that may wait in one session, beside its messages: a session whose queue is full can
/// still be answered and stopped.
pub const CONTROLS_MAX: usize = 64;
/// Bytes of one body, as JSON.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of all bodies that wait in one session, as JSON.
pub const WAITING_BYTES_MAX: usize = 64 << 20;
/// Bytes of a key, and of an actor's name.
pub const NAME_BYTES_MAX: usize = 256;
/// Keys of a session that are remembered after what they named was taken or taken back, the newest ones: what is
/// submitted again under one of them is a duplicate.
pub const KEYS_REMEMBERED: usize = 512;

/// A submission to a session.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMail {
    /// The session; it need not exist yet.
    pub session: SessionId,
    /// The idempotency key of the submission within its session, chosen by the submitter: submitted again under the
    /// same key after a crash or a lost reply, it counts once. Of 1 to [`NAME_BYTES_MAX`] bytes.
    pub key: String,
    /// The user or program that submits it, of at most [`NAME_BYTES_MAX`] bytes.
    pub actor: String,
    /// The time of the submission, by the submitter's clock.
    pub at_ms: TimeMs,
    /// The message, answer or cancellation.
    pub body: MailBody,
}

impl NewMail {
    /// Checks the bounds on the key, the actor and the body, and returns the body as JSON. Engines call this before
    /// they store it.
    ///
    /// # Errors
    /// When the key is empty, or the key, the actor or the body is too long.
    pub fn checked_body(&self) -> Result<String, MailboxError> {
        if self.key.is_empty() {
            return Err(MailboxError::NoKey);
        }
        at_most("key", self.key.len(), NAME_BYTES_MAX)?;
        at_most("actor", self.actor.len(), NAME_BYTES_MAX)?;
        self.body.to_json()
    }
}

fn at_most(what: &'static str, bytes: usize, max: usize) -> Result<(), MailboxError> {
    match bytes > max {
        true => Err(MailboxError::TooLong { what, bytes, max }),
        false => Ok(()),
    }
}

/// Submission that waits in a session's mailbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    /// Its row, for [`Commit::ack`](rondo_types::Commit::ack).
    pub id: MailId,
    /// The session.
    pub session: SessionId,
    /// Its name within the session.
    pub key: String,
    /// The user or program that submitted it.
    pub actor: String,
    /// The time of the submission, by the clock of the process that submitted it.
    pub at_ms: TimeMs,
    /// How often its message was edited.
    pub revision: u64,
    /// The message, answer or cancellation.
    pub body: MailBody,
}

/// Content of a submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mail", rename_all = "snake_case")]
pub enum MailBody {
    /// A message of the user.
    Message {
        /// The message.
        message: Message,
        /// Treatment while a turn runs.
        delivery: Delivery,
    },
    /// An answer to what a parked turn asked.
    Answer {
        /// The answer.
        answer: Answer,
    },
    /// Stop the turn that runs, is parked or was cut off.
    Cancel,
}

impl MailBody {
    /// The words of [`MailBody::kind`].
    pub const KINDS: [&'static str; 3] = ["message", "answer", "cancel"];

    /// Returns its tag in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Answer { .. } => "answer",
            Self::Cancel => "cancel",
        }
    }

    /// Returns whether it is a message of the user.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(self, Self::Message { .. })
    }

    /// Returns its JSON, of at most [`BODY_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// When it is longer.
    pub fn to_json(&self) -> Result<String, MailboxError> {
        let json = serde_json::to_string(self).map_err(|err| MailboxError::Io(err.into()))?;
        at_most("body", json.len(), BODY_BYTES_MAX)?;
        Ok(json)
    }
}

/// The result of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Accepted(MailId),
    /// It was submitted before, under this number, and waits, was taken, or was taken back; nothing changed. What
    /// it says is not compared.
    Duplicate(MailId),
}

impl Pushed {
    /// Returns the row.
    #[must_use]
    pub fn id(self) -> MailId {
        match self {
            Self::Accepted(id) | Self::Duplicate(id) => id,
        }
    }
}

/// How much waits in a session's mailbox. Decides, the same for all engines, whether another submission fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MailboxLoad {
    /// Messages.
    pub messages: usize,
    /// Answers and cancellations.
    pub controls: usize,
    /// Bytes of all their bodies, as JSON.
    pub bytes: usize,
}

impl MailboxLoad {
    /// Refuses what does not fit any more.
    ///
    /// # Errors
    /// When as much waits as may.
    pub fn check_room(&self, is_message: bool, bytes: usize) -> Result<(), MailboxError> {
        let (count, max) = match is_message {
            true => (self.messages, MESSAGES_MAX),
            false => (self.controls, CONTROLS_MAX),
        };
        if count >= max {
            return Err(MailboxError::TooMany { max });
        }
        self.check_bytes(bytes)
    }

    /// Refuses a body that does not fit any more.
    ///
    /// # Errors
    /// When the bodies would be too long together.
    pub fn check_bytes(&self, bytes: usize) -> Result<(), MailboxError> {
        match self.bytes.saturating_add(bytes) > WAITING_BYTES_MAX {
            true => Err(MailboxError::TooMuch {
                max: WAITING_BYTES_MAX,
            }),
            false => Ok(()),
        }
    }
}

/// The port to the messages, answers and cancellations that wait for sessions: submitted, and not yet taken by their
/// owners.
///
/// The owner lists a session's mail, does what it says, and hands the rows to
/// [`Journal::append`](super::Journal::append) with the records of it, which removes them in the same
/// transaction: after a crash either both are there or neither. Several processes may hold the same mailbox.
#[async_trait]
pub trait Mailbox: Send + Sync {
    /// Submits something, and returns once that is durable.
    ///
    /// # Errors
    /// When it is too long, too much waits already, or it cannot be made durable. After
    /// [`MailboxError::Unknown`] it may be submitted again under the same key.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped submission may or may not wait.
    async fn push(&self, mail: NewMail) -> Result<Pushed, MailboxError>;

    /// Returns the waiting messages of a session, in order of arrival. Those that a later version submitted, and this
    /// one cannot read, stay where they are and are left out.
    ///
    /// # Errors
    /// When a row is damaged, or the storage fails.
    async fn list(&self, session: &SessionId) -> Result<Vec<Mail>, MailboxError>;

    /// Returns the number of the row that was submitted last and still waits in a session; `None` if none waits.
    ///
    /// # Errors
    /// When the storage fails.
    async fn newest(&self, session: &SessionId) -> Result<Option<MailId>, MailboxError>;

    /// Returns the result of [`Mailbox::list`]; blocks for the storage.
    ///
    /// # Errors
    /// As [`Mailbox::list`].
    fn mail(&self, session: &SessionId) -> Result<Vec<Mail>, MailboxError>;

    /// Returns the waiting message of a session under a key, if there is one that this version can read.
    ///
    /// # Errors
    /// As [`Mailbox::list`].
    async fn get(&self, session: &SessionId, key: &str) -> Result<Option<Mail>, MailboxError>;

    /// Returns how often what waits under a key was edited, without reading what it says; `None` if nothing waits there.
    ///
    /// # Errors
    /// When the storage fails.
    async fn revision(&self, session: &SessionId, key: &str) -> Result<Option<u64>, MailboxError>;

    /// Changes what a message says; it keeps its place and its key. Returns `false` if no message waits under
    /// that key.
    ///
    /// An owner that read the message before and records its beginning after is not stopped by this. A message edited
    /// meanwhile stays and begins a turn of its own, if the owner removes the row by
    /// [`Commit::ack_unedited`](rondo_types::Commit::ack_unedited).
    ///
    /// # Errors
    /// As [`Mailbox::push`].
    async fn edit(
        &self,
        session: &SessionId,
        key: &str,
        message: Message,
    ) -> Result<bool, MailboxError>;

    /// Takes back what waits under a key. Returns `false` if nothing does; the same limits hold as for
    /// [`Mailbox::edit`].
    ///
    /// # Errors
    /// When that cannot be made durable.
    async fn withdraw(&self, session: &SessionId, key: &str) -> Result<bool, MailboxError>;

    /// Removes all that waits in a session, and the keys that were remembered; returns how much waited. Removing a
    /// session does the same; this is for one that was never begun.
    ///
    /// # Errors
    /// When that cannot be made durable.
    async fn discard(&self, session: &SessionId) -> Result<usize, MailboxError>;

    /// Returns the sessions in which something waits that this version can read, the one whose mail is oldest first.
    ///
    /// # Errors
    /// When the storage fails.
    async fn waiting(&self) -> Result<Vec<SessionId>, MailboxError>;

    /// Returns a counter that changes with each change made through this value and its clones. Several changes may
    /// be one step of the counter, and it may change without a change of the mailbox.
    ///
    /// Changes made by other processes do not count. To see those, call [`Mailbox::waiting`] or [`Mailbox::list`]
    /// from time to time.
    fn changed(&self) -> watch::Receiver<u64>;
}

/// Why a mailbox could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// As many wait as may.
    #[error("{max} submissions are already waiting in the session: submit it again later")]
    TooMany {
        /// The bound.
        max: usize,
    },
    /// As many bytes wait as may.
    #[error(
        "the waiting submissions of the session would exceed {max} bytes: submit it again later"
    )]
    TooMuch {
        /// The bound.
        max: usize,
    },
    /// A part of it is too long.
    #[error("the {what} has {bytes} bytes, at most {max} are taken")]
    TooLong {
        /// `key`, `actor` or `body`.
        what: &'static str,
        /// How many bytes it has.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// It has no key.
    #[error("the key is empty: it names the submission, so that one that is repeated counts once")]
    NoKey,
    /// A row cannot be read.
    #[error("`{key}` in the mailbox of session `{session}` is damaged: {reason}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The row's key.
        key: String,
        /// Description of the damage.
        reason: String,
    },
    /// The storage has no room.
    #[error("the disk is full: nothing was submitted")]
    Full,
    /// The change may or may not be durable.
    #[error("it is not known whether the mailbox was changed")]
    Unknown(#[source] std::io::Error),
    /// The storage failed.
    #[error("failed to use the mailbox")]
    Io(#[source] std::io::Error),
}
