//! Rows of the mailbox that an actor knows.

use super::actor::Actor;
use rondo_core::ports::{Mail, MailBody, MailId, MailboxError};
use rondo_types::{Answer, Message};
use std::sync::Arc;

/// A row that was seen.
pub(super) struct KnownRow {
    pub(super) id: MailId,
    /// How often its message had been edited.
    pub(super) revision: u64,
    /// Answer in the row; `None` if it is not an answer.
    pub(super) answer: Option<Box<Answer>>,
    pub(super) is_message: bool,
}

impl KnownRow {
    pub(super) fn of(row: &Mail) -> Self {
        let answer = match &row.body {
            MailBody::Answer { answer } => Some(Box::new(answer.clone())),
            MailBody::Message { .. } | MailBody::Cancel => None,
        };
        Self {
            id: row.id,
            revision: row.revision,
            answer,
            is_message: row.body.is_message(),
        }
    }
}

/// What became of a row since it was read.
#[derive(PartialEq, Eq)]
enum Since {
    Unchanged,
    Edited,
    /// It is done, or was taken back.
    Gone,
}

impl Actor {
    /// Looks up what became of a message's row since it was read. One that is gone and no longer known is gone.
    async fn since_read(&mut self, key: &str) -> Result<Since, MailboxError> {
        let known = self.known.get(key).map(|it| it.revision);
        let now = self.entry.store().revision(&self.entry.id, key).await?;
        Ok(match now {
            None => Since::Gone,
            now if now == known => Since::Unchanged,
            Some(_) => Since::Edited,
        })
    }

    /// Returns what a message says that was seen, which is read again only if it was edited since; `None` if it was taken back.
    pub(super) async fn as_it_is_now(
        &mut self,
        key: &str,
        seen: Message,
    ) -> Result<Option<Message>, MailboxError> {
        match self.since_read(key).await? {
            Since::Gone => return Ok(None),
            Since::Unchanged => return Ok(Some(seen)),
            Since::Edited => {}
        }
        let Some(row) = self.entry.store().get(&self.entry.id, key).await? else {
            return Ok(None);
        };
        self.note(&row);
        Ok(match row.body {
            MailBody::Message { message, .. } => Some(message),
            MailBody::Answer { .. } | MailBody::Cancel => None,
        })
    }

    /// Returns whether the message that begins the turn was edited or taken back elsewhere since it was read.
    pub(super) async fn is_outdated(&mut self) -> bool {
        let Some((key, _)) = self.asked.clone().filter(|_| !self.entry.is_of_host) else {
            return false;
        };
        let since = self.since_read(&key).await;
        since.is_ok_and(|it| it != Since::Unchanged)
    }

    /// Has the messages looked at again that the turn said, if another process edited them just before they were recorded: what
    /// they say now begins turns of its own.
    pub(super) async fn look_at_edited(&mut self) {
        let entry = Arc::clone(&self.entry);
        let mut begun = entry.begun.lock().await;
        let said: Vec<String> = begun.keys().cloned().collect();
        for key in said {
            if matches!(self.since_read(&key).await, Ok(Since::Edited)) {
                self.known.remove(&key);
                begun.remove(&key);
                entry.work().look = true;
            }
        }
    }

    /// Removes a row that was done and is in no record.
    pub(super) async fn drop_row(&mut self, key: &str) {
        if let Err(error) = self.entry.store().withdraw(&self.entry.id, key).await {
            self.failed(&crate::parking::unkept(error));
        }
        self.known.remove(key);
    }
}
