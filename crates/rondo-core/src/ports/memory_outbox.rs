//! An outbox and a host's rows in memory, beside the mailbox: for tests and for sessions that leave nothing behind.

use super::mailbox::{MailboxError, Pushed};
use super::memory_mailbox::MemoryMailbox;
use super::outbox::{
    Attempt, HostCommit, HostStore, OPEN_ROWS_MAX, Outbox, OutboxCounts, OutboxRow, OutboxState,
    SENT_REMEMBERED,
};
use crate::clock::Clock;
use async_trait::async_trait;
use rondo_types::{HostRow, OutboxEntry, OutboxId, OutboxKind, TimeMs};
use std::collections::{BTreeMap, HashSet, VecDeque};
use tokio::sync::watch;

/// What is sent and noted, under the lock of the mailbox.
#[derive(Debug, Default)]
pub(super) struct OutgoingRows {
    last: u64,
    /// In order of arrival.
    rows: BTreeMap<OutboxId, OutboxRow>,
    keys: HashSet<String>,
    tables: BTreeMap<(String, String), String>,
    events: HashSet<String>,
    /// The oldest first.
    events_in_order: VecDeque<String>,
}

impl OutgoingRows {
    /// Adds what is new, and returns whether anything is to be sent.
    pub(super) fn add(&mut self, outbox: Vec<OutboxEntry>, rows: Vec<HostRow>) -> bool {
        for row in rows {
            let key = (row.table, row.key);
            match row.value {
                Some(value) => self.tables.insert(key, value),
                None => self.tables.remove(&key),
            };
        }
        let mut is_new = false;
        for entry in outbox {
            is_new |= self.queue(entry.within_bounds());
        }
        is_new
    }

    fn queue(&mut self, entry: OutboxEntry) -> bool {
        if self.keys.contains(&entry.key) || self.was_said(&entry) {
            return false;
        }
        self.last += 1;
        let id = OutboxId(self.last);
        self.keys.insert(entry.key.clone());
        let row = OutboxRow {
            id,
            entry,
            state: OutboxState::Waiting,
            attempts: 0,
            doubts: 0,
            at: Clock::system().now(),
            not_before: TimeMs(0),
            error: None,
            receipt: None,
        };
        self.rows.insert(id, row);
        true
    }

    fn was_said(&self, entry: &OutboxEntry) -> bool {
        let is_same = |it: &OutboxEntry| {
            it.kind == OutboxKind::Message
                && (&it.channel, &it.chat) == (&entry.channel, &entry.chat)
                && (&it.session, &it.turn) == (&entry.session, &entry.turn)
                && it.text.trim() == entry.text.trim()
        };
        entry.kind == OutboxKind::Final && self.rows.values().any(|it| is_same(&it.entry))
    }

    fn heads(&self, channel: &str) -> Vec<&OutboxRow> {
        let mut chats = HashSet::new();
        let open = self.rows.values();
        let open = open.filter(|it| it.state.is_open() && it.entry.channel == channel);
        open.filter(|it| chats.insert(&it.entry.chat)).collect()
    }

    fn forget_old(&mut self) {
        let closed = self.rows.values().filter(|it| !it.state.is_open());
        let closed: Vec<OutboxId> = closed.map(|it| it.id).collect();
        let surplus = closed.len().saturating_sub(SENT_REMEMBERED);
        for id in closed.into_iter().take(surplus) {
            if let Some(row) = self.rows.remove(&id) {
                self.keys.remove(&row.entry.key);
            }
        }
    }

    fn note_event(&mut self, event: String) {
        self.events.insert(event.clone());
        self.events_in_order.push_back(event);
        if self.events_in_order.len() > HostCommit::EVENTS_REMEMBERED
            && let Some(oldest) = self.events_in_order.pop_front()
        {
            self.events.remove(&oldest);
        }
    }

    /// Changes a row, and returns whether it was there in one of these states.
    fn change(
        &mut self,
        id: OutboxId,
        states: &[OutboxState],
        change: impl FnOnce(&mut OutboxRow),
    ) -> bool {
        let row = self.rows.get_mut(&id);
        let row = row.filter(|it| states.contains(&it.state));
        row.map(change).is_some()
    }
}

#[async_trait]
impl HostStore for MemoryMailbox {
    async fn commit(&self, commit: HostCommit) -> Result<bool, MailboxError> {
        let mut rows = self.rows();
        if let Some(event) = &commit.event
            && rows.outgoing.events.contains(event)
        {
            return Ok(false);
        }
        let mut pushed = Vec::new();
        for mail in commit.mail {
            let (session, key) = (mail.session.clone(), mail.key.clone());
            match self.push_into(&mut rows, mail) {
                Ok(Pushed::Accepted(_)) => pushed.push((session, key)),
                Ok(Pushed::Duplicate(_)) => {}
                Err(refused) => {
                    for (session, key) in pushed {
                        self.forget_from(&mut rows, &session, &key);
                    }
                    return Err(refused);
                }
            }
        }
        for (session, key) in &commit.withdrawn {
            self.withdraw_from(&mut rows, session, key);
        }
        if let Some(event) = commit.event {
            rows.outgoing.note_event(event);
        }
        if rows.outgoing.add(commit.outbox, commit.rows) {
            self.tell_outbox();
        }
        Ok(true)
    }

    async fn row(&self, table: &str, key: &str) -> Result<Option<String>, MailboxError> {
        let key = (table.to_owned(), key.to_owned());
        Ok(self.rows().outgoing.tables.get(&key).cloned())
    }

    async fn rows(
        &self,
        table: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, MailboxError> {
        let rows = self.rows();
        let found = rows.outgoing.tables.iter();
        let found = found.filter(|((of, key), _)| of == table && key.as_str() > after);
        let found = found.take(limit);
        Ok(found
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect())
    }
}

#[async_trait]
impl Outbox for MemoryMailbox {
    async fn due(
        &self,
        channel: &str,
        now: TimeMs,
        limit: usize,
    ) -> Result<Vec<OutboxRow>, MailboxError> {
        let rows = self.rows();
        let due = rows.outgoing.heads(channel).into_iter();
        let due = due.filter(|it| it.not_before <= now);
        Ok(due.take(limit).cloned().collect())
    }

    async fn next_due(&self, channel: &str) -> Result<Option<TimeMs>, MailboxError> {
        let rows = self.rows();
        let heads = rows.outgoing.heads(channel).into_iter();
        Ok(heads.map(|it| it.not_before).min())
    }

    async fn begin(&self, id: OutboxId) -> Result<bool, MailboxError> {
        let open = [OutboxState::Waiting, OutboxState::Sending];
        Ok(self.rows().outgoing.change(id, &open, |row| {
            row.doubts += u32::from(row.state == OutboxState::Sending);
            row.state = OutboxState::Sending;
            row.attempts += 1;
        }))
    }

    async fn end(&self, id: OutboxId, attempt: Attempt) -> Result<(), MailboxError> {
        let mut rows = self.rows();
        let open = [OutboxState::Waiting, OutboxState::Sending];
        rows.outgoing.change(id, &open, |row| match attempt {
            Attempt::Sent(receipt) => {
                row.state = OutboxState::Sent;
                row.receipt = Some(receipt);
                row.error = None;
                row.entry.details.clear();
                if row.entry.kind != OutboxKind::Message {
                    row.entry.text.clear();
                }
            }
            Attempt::NotSent { not_before, error } => {
                row.state = OutboxState::Waiting;
                (row.not_before, row.error) = (not_before, Some(error));
            }
            Attempt::Unclear { not_before, error } => {
                row.state = OutboxState::Sending;
                (row.not_before, row.error) = (not_before, Some(error));
            }
            Attempt::GivenUp { error } => {
                row.state = OutboxState::Failed;
                row.error = Some(error);
            }
        });
        rows.outgoing.forget_old();
        self.tell_outbox();
        Ok(())
    }

    async fn move_chat(&self, channel: &str, from: &str, to: &str) -> Result<(), MailboxError> {
        let mut rows = self.rows();
        for row in rows.outgoing.rows.values_mut() {
            if row.state.is_open() && row.entry.channel == channel && row.entry.chat == from {
                to.clone_into(&mut row.entry.chat);
            }
        }
        self.tell_outbox();
        Ok(())
    }

    async fn list(&self) -> Result<Vec<OutboxRow>, MailboxError> {
        let rows = self.rows();
        let unsent = rows.outgoing.rows.values();
        let unsent = unsent.filter(|it| it.state.is_open() || it.state == OutboxState::Failed);
        Ok(unsent.take(OPEN_ROWS_MAX).cloned().collect())
    }

    async fn retry(&self, id: OutboxId) -> Result<bool, MailboxError> {
        let states = [
            OutboxState::Waiting,
            OutboxState::Sending,
            OutboxState::Failed,
        ];
        let is_there = self.rows().outgoing.change(id, &states, |row| {
            row.not_before = TimeMs(0);
            if row.state == OutboxState::Failed {
                row.state = OutboxState::Waiting;
            }
        });
        self.tell_outbox();
        Ok(is_there)
    }

    async fn drop_row(&self, id: OutboxId) -> Result<bool, MailboxError> {
        let states = [
            OutboxState::Waiting,
            OutboxState::Sending,
            OutboxState::Failed,
        ];
        let is_there = self.rows().outgoing.change(id, &states, |row| {
            row.state = OutboxState::Dropped;
            row.entry.text.clear();
            row.entry.details.clear();
        });
        self.tell_outbox();
        Ok(is_there)
    }

    async fn counts(&self) -> Result<OutboxCounts, MailboxError> {
        let rows = self.rows();
        let mut counts = OutboxCounts::default();
        for row in rows.outgoing.rows.values() {
            counts.open += u64::from(row.state.is_open());
            counts.failed += u64::from(row.state == OutboxState::Failed);
            counts.doubts += u64::from(row.doubts);
        }
        Ok(counts)
    }

    async fn open_in_chat(&self, channel: &str, chat: &str) -> Result<u64, MailboxError> {
        let rows = self.rows();
        let open = rows.outgoing.rows.values();
        let open = open.filter(|it| {
            it.state.is_open() && it.entry.channel == channel && it.entry.chat == chat
        });
        Ok(open.count() as u64)
    }

    fn outbox_changed(&self) -> watch::Receiver<u64> {
        self.outbox_changes()
    }
}
