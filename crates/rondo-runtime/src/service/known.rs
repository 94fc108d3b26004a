//! What an actor knows of the rows of its mailbox.

use super::actor::Actor;
use rondo_core::ports::{Mail, MailBody, MailId, MailboxError};
use rondo_types::{Answer, Message};
use std::sync::Arc;

/// A row that was seen.
pub(super) struct KnownRow {
    pub(super) id: MailId,
    /// How often its message had been edited.
    pub(super) revision: u64,
    /// What it answers; none where it is no answer.
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

impl Actor {
    /// Returns what a message says that was seen, which is read again only if it was edited since; `None` if it was taken back.
    pub(super) async fn as_it_is_now(
        &mut self,
        key: &str,
        seen: Message,
    ) -> Result<Option<Message>, MailboxError> {
        let entry = Arc::clone(&self.entry);
        let known = self.known.get(key).map(|it| it.revision);
        match entry.store().revision(&entry.id, key).await? {
            None => return Ok(None),
            now if now == known => return Ok(Some(seen)),
            Some(_) => {}
        }
        let Some(row) = entry.store().get(&entry.id, key).await? else {
            return Ok(None);
        };
        self.note(&row);
        Ok(match row.body {
            MailBody::Message { message, .. } => Some(message),
            MailBody::Answer { .. } | MailBody::Cancel => None,
        })
    }

    /// Returns whether the message that began the turn was edited or taken back elsewhere since it was read.
    pub(super) async fn is_outdated(&mut self) -> bool {
        let Some((key, _)) = self.asked.as_ref().filter(|_| !self.entry.is_of_host) else {
            return false;
        };
        let Some(known) = self.known.get(key).map(|it| it.revision) else {
            return false;
        };
        let now = self.entry.store().revision(&self.entry.id, key).await;
        now.is_ok_and(|now| now != Some(known))
    }

    /// Has the message looked at again that began the turn, if another process edited it just before the turn was recorded: what
    /// it says now begins a turn of its own.
    pub(super) async fn look_at_edited(&mut self) {
        let Some((key, _)) = self.asked.clone() else {
            return;
        };
        let known = self.known.get(&key).map(|it| it.revision);
        let now = self.entry.store().revision(&self.entry.id, &key).await;
        if let Ok(Some(now)) = now
            && known.is_some_and(|known| known != now)
        {
            self.known.remove(&key);
            self.entry.begun.lock().await.remove(&key);
            self.entry.work().look = true;
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
