//! A mailbox in memory, for tests and for sessions that leave nothing behind.

use super::mailbox::{
    KEYS_REMEMBERED, Mail, MailBody, Mailbox, MailboxError, NewMail, Pushed, Waiting,
};
use super::memory_outbox::OutgoingRows;
use async_trait::async_trait;
use rondo_types::{Commit, MailId, Message, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Holds in memory what was submitted, for any number of sessions; clones share it.
///
/// A [`MemoryJournal`](super::MemoryJournal) or [`NoJournal`](super::NoJournal) that was made with it removes what
/// an append acknowledges.
#[derive(Debug, Clone, Default)]
pub struct MemoryMailbox {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    rows: Mutex<Rows>,
    changes: watch::Sender<u64>,
    /// Counts the changes of the outbox.
    outbox_changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The latest row's number.
    last: u64,
    sessions: HashMap<SessionId, Session>,
    /// What is to be sent, and what hosts note.
    pub(super) outgoing: OutgoingRows,
}

#[derive(Debug, Default)]
struct Session {
    /// In order of arrival, each with the bytes of its body.
    waiting: Vec<(Mail, usize)>,
    /// What was taken or taken back, the oldest first.
    remembered: VecDeque<(String, MailId)>,
}

impl Session {
    fn find(&self, key: &str) -> Option<MailId> {
        let mut waiting = self.waiting.iter().map(|(mail, _)| (&mail.key, mail.id));
        let mut remembered = self.remembered.iter().map(|(key, id)| (key, *id));
        let waiting = waiting.find(|(name, _)| *name == key);
        waiting
            .or_else(|| remembered.find(|(name, _)| *name == key))
            .map(|(_, id)| id)
    }

    fn counted(&self) -> Waiting {
        let messages = self.waiting.iter().filter(|it| it.0.body.is_message());
        let messages = messages.count();
        Waiting {
            messages,
            controls: self.waiting.len() - messages,
            bytes: self.waiting.iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    /// Removes the rows that `is_taken` names, and returns whether there were any.
    fn take(&mut self, is_taken: impl Fn(&Mail) -> bool) -> bool {
        let before = self.waiting.len();
        let remembered = &mut self.remembered;
        self.waiting.retain(|(mail, _)| {
            let is_taken = is_taken(mail);
            if is_taken {
                remembered.push_back((mail.key.clone(), mail.id));
            }
            !is_taken
        });
        let surplus = remembered.len().saturating_sub(KEYS_REMEMBERED);
        remembered.drain(..surplus);
        self.waiting.len() < before
    }
}

impl MemoryMailbox {
    /// Does what becomes durable with a session's records.
    pub(super) fn commit(&self, session: &SessionId, commit: Commit) {
        if commit.is_empty() {
            return;
        }
        let mut rows = self.rows();
        let found = rows.sessions.get_mut(session);
        if found.is_some_and(|it| it.take(|mail| commit.ack.contains(&mail.id))) {
            self.tell();
        }
        if rows.outgoing.add(commit.outbox, commit.rows) {
            self.tell_outbox();
        }
    }

    pub(super) fn tell_outbox(&self) {
        self.shared
            .outbox_changes
            .send_modify(|it| *it = it.wrapping_add(1));
    }

    pub(super) fn outbox_changes(&self) -> watch::Receiver<u64> {
        self.shared.outbox_changes.subscribe()
    }

    /// Submits under the lock that is held.
    pub(super) fn push_into(&self, rows: &mut Rows, mail: NewMail) -> Result<Pushed, MailboxError> {
        let bytes = mail.checked_body()?.len();
        let id = MailId(rows.last + 1);
        let session = rows.sessions.entry(mail.session.clone()).or_default();
        if let Some(id) = session.find(&mail.key) {
            return Ok(Pushed::Duplicate(id));
        }
        let is_message = mail.body.is_message();
        session.counted().check_room(is_message, bytes)?;
        let row = Mail {
            id,
            session: mail.session,
            key: mail.key,
            actor: mail.actor,
            at_ms: mail.at_ms,
            body: mail.body,
        };
        session.waiting.push((row, bytes));
        rows.last = id.0;
        self.tell();
        Ok(Pushed::Accepted(id))
    }

    /// Takes back under the lock that is held.
    pub(super) fn withdraw_from(&self, rows: &mut Rows, session: &SessionId, key: &str) -> bool {
        let found = rows.sessions.get_mut(session);
        let is_gone = found.is_some_and(|it| it.take(|mail| mail.key == key));
        if is_gone {
            self.tell();
        }
        is_gone
    }

    /// Has it be as if something had never been submitted, under the lock that is held.
    pub(super) fn forget_from(&self, rows: &mut Rows, session: &SessionId, key: &str) {
        if let Some(found) = rows.sessions.get_mut(session) {
            found.waiting.retain(|(mail, _)| mail.key != key);
        }
    }

    pub(super) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.shared
            .rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.shared
            .changes
            .send_modify(|it| *it = it.wrapping_add(1));
    }
}

#[async_trait]
impl Mailbox for MemoryMailbox {
    async fn push(&self, mail: NewMail) -> Result<Pushed, MailboxError> {
        self.push_into(&mut self.rows(), mail)
    }

    async fn list(&self, session: &SessionId) -> Result<Vec<Mail>, MailboxError> {
        let rows = self.rows();
        let found = rows.sessions.get(session);
        let waiting = found.into_iter().flat_map(|it| &it.waiting);
        Ok(waiting.map(|(mail, _)| mail.clone()).collect())
    }

    async fn get(&self, session: &SessionId, key: &str) -> Result<Option<Mail>, MailboxError> {
        let rows = self.rows();
        let found = rows.sessions.get(session);
        let mut waiting = found.into_iter().flat_map(|it| &it.waiting);
        Ok(waiting.find(|it| it.0.key == key).map(|it| it.0.clone()))
    }

    async fn edit(
        &self,
        session: &SessionId,
        key: &str,
        message: Message,
    ) -> Result<bool, MailboxError> {
        let mut rows = self.rows();
        let Some(session) = rows.sessions.get_mut(session) else {
            return Ok(false);
        };
        let mut counted = session.counted();
        let found = session.waiting.iter_mut().find(|(mail, _)| mail.key == key);
        let Some((Mail { body, .. }, bytes)) = found else {
            return Ok(false);
        };
        let MailBody::Message { delivery, .. } = *body else {
            return Ok(false);
        };
        let edited = MailBody::Message { message, delivery };
        let length = edited.to_json()?.len();
        counted.bytes -= *bytes;
        counted.check_bytes(length)?;
        (*body, *bytes) = (edited, length);
        self.tell();
        Ok(true)
    }

    async fn withdraw(&self, session: &SessionId, key: &str) -> Result<bool, MailboxError> {
        Ok(self.withdraw_from(&mut self.rows(), session, key))
    }

    async fn discard(&self, session: &SessionId) -> Result<usize, MailboxError> {
        let removed = self.rows().sessions.remove(session);
        let count = removed.map_or(0, |it| it.waiting.len());
        if count > 0 {
            self.tell();
        }
        Ok(count)
    }

    async fn waiting(&self) -> Result<Vec<SessionId>, MailboxError> {
        let rows = self.rows();
        let oldest = |(session, it): (&SessionId, &Session)| {
            let (mail, _) = it.waiting.first()?;
            Some((mail.id, session.clone()))
        };
        let mut sessions: Vec<_> = rows.sessions.iter().filter_map(oldest).collect();
        sessions.sort_unstable_by_key(|(oldest, _)| *oldest);
        Ok(sessions.into_iter().map(|(_, session)| session).collect())
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }
}
