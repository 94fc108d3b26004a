//! What an actor knows of the rows of its mailbox.

use rondo_core::ports::{Mail, MailBody, MailId};
use rondo_types::{Answer, Message};
use sha2::{Digest as _, Sha256};

/// A row that was seen.
pub(super) struct KnownRow {
    pub(super) id: MailId,
    /// The digest of what it says, since a message that waits may have megabytes; none where it is no message.
    said: Option<[u8; 32]>,
    /// What it answers; none where it is no answer.
    pub(super) answer: Option<Box<Answer>>,
}

impl KnownRow {
    pub(super) fn of(row: &Mail) -> Self {
        let (said, answer) = match &row.body {
            MailBody::Message { message, .. } => (Some(digest(message)), None),
            MailBody::Answer { answer } => (None, Some(Box::new(answer.clone()))),
            MailBody::Cancel => (None, None),
        };
        Self {
            id: row.id,
            said,
            answer,
        }
    }

    pub(super) fn is_message(&self) -> bool {
        self.said.is_some()
    }

    /// Returns whether the row is a message that says something else now.
    pub(super) fn differs(&self, row: &Mail) -> bool {
        match &row.body {
            MailBody::Message { message, .. } => self.said != Some(digest(message)),
            MailBody::Answer { .. } | MailBody::Cancel => false,
        }
    }
}

fn digest(message: &Message) -> [u8; 32] {
    // Any message can be written.
    let json = serde_json::to_vec(message).unwrap_or_default();
    Sha256::digest(json).into()
}
