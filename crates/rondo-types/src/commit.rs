//! Effects that become durable together with records.

use crate::{HostRow, OutboxEntry};
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

/// Effects that become durable in the same transaction as the records of an append. None by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// Rows of the session's mailbox that are done with these records, and are removed. One that is gone already,
    /// or belongs to another session, is passed over.
    pub ack: Vec<MailId>,
    /// Rows that are done in the same way if they have not been edited since they were read with these revisions. One that was
    /// edited stays, so that no edit is lost.
    pub ack_unedited: Vec<(MailId, u64)>,
    /// Messages to deliver to the outside. A message whose key is already stored is skipped.
    pub outbox: Vec<OutboxEntry>,
    /// Rows of the host, stored beside its sessions.
    pub rows: Vec<HostRow>,
}

impl Commit {
    /// Removes one row of the mailbox.
    #[must_use]
    pub fn of(mail: MailId) -> Self {
        Self {
            ack: vec![mail],
            ..Self::default()
        }
    }

    /// Removes one row of the mailbox unless it was edited since it was read with this revision.
    #[must_use]
    pub fn of_unedited(mail: MailId, revision: u64) -> Self {
        Self {
            ack_unedited: vec![(mail, revision)],
            ..Self::default()
        }
    }

    /// Sends one message.
    #[must_use]
    pub fn sending(entry: OutboxEntry) -> Self {
        Self {
            outbox: vec![entry],
            ..Self::default()
        }
    }

    /// Returns whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let acks_none = self.ack.is_empty() && self.ack_unedited.is_empty();
        acks_none && self.outbox.is_empty() && self.rows.is_empty()
    }

    /// Adds the parts of another one.
    pub fn take(&mut self, other: Self) {
        self.ack.extend(other.ack);
        self.ack_unedited.extend(other.ack_unedited);
        self.outbox.extend(other.outbox);
        self.rows.extend(other.rows);
    }
}
