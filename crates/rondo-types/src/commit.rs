//! What becomes durable together with records.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a row of a mailbox. Rows that arrive later have higher numbers, and no number is ever used twice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MailId(pub u64);

impl fmt::Display for MailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What becomes durable in the same transaction as the records of an append. The default is nothing.
///
/// What a session sends to the outside, and its timers, will join it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// Rows of the session's mailbox that are done with these records, and are removed. One that is gone already,
    /// or belongs to another session, is passed over.
    pub ack: Vec<MailId>,
}

impl Commit {
    /// Removes one row.
    #[must_use]
    pub fn of(mail: MailId) -> Self {
        Self { ack: vec![mail] }
    }
}
