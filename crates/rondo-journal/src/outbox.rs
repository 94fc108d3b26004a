//! Outgoing messages and rows of hosts, in the journal's own file: so that they become durable in the same
//! transaction as the records about them.

use crate::commit_thread::{to_i64, to_u64};
use crate::error::JournalError;
use crate::mailbox::{self, MailboxWrite, unwritten};
use crate::store::Store;
use async_trait::async_trait;
use rondo_core::ports::{
    Attempt, HostCommit, HostStore, MailboxError, OPEN_ROWS_MAX, Outbox, OutboxCounts, OutboxRow,
    OutboxState, SENT_REMEMBERED,
};
use rondo_types::{HostRow, OutboxEntry, OutboxId, OutboxKind, SessionId, TimeMs, TurnId};
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension as _, Row};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

/// The tables, if they are missing. `said` is the hash of what a tool said, so that a final that says the same is left
/// out. An older program leaves all of them alone.
pub(crate) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    session TEXT NOT NULL,
    turn TEXT,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    details TEXT NOT NULL,
    said BLOB,
    state TEXT NOT NULL DEFAULT 'waiting',
    attempts INTEGER NOT NULL DEFAULT 0,
    doubts INTEGER NOT NULL DEFAULT 0,
    at_ms INTEGER NOT NULL,
    not_before INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    receipt TEXT
);
CREATE INDEX IF NOT EXISTS outbox_open ON outbox(channel, chat, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX IF NOT EXISTS outbox_closed ON outbox(id) WHERE state NOT IN ('waiting', 'sending');
CREATE INDEX IF NOT EXISTS outbox_said ON outbox(session, turn) WHERE said IS NOT NULL;
CREATE TABLE IF NOT EXISTS host_rows (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS host_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL UNIQUE
);
";

/// Stand for the tables if they are missing and cannot be made.
pub(crate) const NO_TABLES: &str =
    "CREATE TEMP VIEW outbox AS SELECT 0 AS id, '' AS key, '' AS channel, '' AS chat, '' AS session,
    NULL AS turn, '' AS kind, '' AS text, '' AS details, NULL AS said, '' AS state, 0 AS attempts, 0 AS doubts,
    0 AS at_ms, 0 AS not_before, NULL AS error, NULL AS receipt WHERE 0;
    CREATE TEMP VIEW host_rows AS SELECT '' AS name, '' AS key, '' AS value WHERE 0;";

const COLUMNS: &str =
    "id, key, channel, chat, session, turn, kind, text, details, state, attempts, doubts,
    at_ms, not_before, error, receipt";

/// Adds the new messages within a transaction.
pub(crate) fn add(
    connection: &Connection,
    outbox: &[OutboxEntry],
    rows: &[HostRow],
) -> Result<(), JournalError> {
    for row in rows {
        note(connection, row)?;
    }
    for entry in outbox {
        queue(connection, &entry.clone().within_bounds())?;
    }
    Ok(())
}

fn note(connection: &Connection, row: &HostRow) -> Result<(), JournalError> {
    match &row.value {
        Some(value) => connection
            .prepare_cached(
                "INSERT OR REPLACE INTO host_rows (name, key, value) VALUES (?1, ?2, ?3)",
            )?
            .execute((&row.table, &row.key, value))?,
        None => connection
            .prepare_cached("DELETE FROM host_rows WHERE name = ?1 AND key = ?2")?
            .execute((&row.table, &row.key))?,
    };
    Ok(())
}

fn said(text: &str) -> [u8; 32] {
    Sha256::digest(text.trim().as_bytes()).into()
}

fn queue(connection: &Connection, entry: &OutboxEntry) -> Result<(), JournalError> {
    let said = said(&entry.text);
    let turn = entry.turn.as_ref().map(TurnId::as_str);
    if entry.kind == OutboxKind::Final {
        let same = connection
            .prepare_cached(
                "SELECT 1 FROM outbox WHERE session = ?1 AND turn IS ?2 AND said = ?3 AND said IS NOT NULL
                 AND channel = ?4 AND chat = ?5",
            )?
            .exists((entry.session.as_str(), turn, said, &entry.channel, &entry.chat))?;
        if same {
            return Ok(());
        }
    }
    let said = (entry.kind == OutboxKind::Message).then_some(said);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO outbox (key, channel, chat, session, turn, kind, text, details, said, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
        )?
        .execute((
            &entry.key,
            &entry.channel,
            &entry.chat,
            entry.session.as_str(),
            turn,
            entry.kind.word(),
            &entry.text,
            &entry.details,
            said,
        ))?;
    Ok(())
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<OutboxRow> {
    let number = |column| row.get::<_, i64>(column).map(to_u64);
    let small = |column| number(column).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let (kind, state): (String, String) = (row.get(6)?, row.get(9)?);
    let kind = OutboxKind::ALL.into_iter().find(|it| it.word() == kind);
    let turn: Option<String> = row.get(5)?;
    Ok(OutboxRow {
        id: OutboxId(number(0)?),
        entry: OutboxEntry {
            key: row.get(1)?,
            channel: row.get(2)?,
            chat: row.get(3)?,
            session: SessionId::new(row.get::<_, String>(4)?),
            turn: turn.map(TurnId::new),
            // A later version may know more kinds; what it queued is sent all the same.
            kind: kind.unwrap_or(OutboxKind::Notice),
            text: row.get(7)?,
            details: row.get(8)?,
        },
        state: OutboxState::of_word(&state).unwrap_or(OutboxState::Failed),
        attempts: small(10)?,
        doubts: small(11)?,
        at: TimeMs(number(12)?),
        not_before: TimeMs(number(13)?),
        error: row.get(14)?,
        receipt: row.get(15)?,
    })
}

fn select(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> MailboxWrite<Vec<OutboxRow>> {
    let query = format!("SELECT {COLUMNS} FROM outbox WHERE {condition}");
    let mut statement = connection.prepare_cached(&query)?;
    let rows = statement.query_map(values, read_row)?;
    Ok(Ok(rows.collect::<Result<_, _>>()?))
}

/// The oldest open message of each chat of a channel.
const HEADS: &str = "id IN (SELECT min(id) FROM outbox
    WHERE channel = ?1 AND state IN ('waiting', 'sending') GROUP BY chat)";

fn commit(connection: &Connection, commit: &HostCommit) -> MailboxWrite<bool> {
    if let Some(event) = &commit.event
        && !note_event(connection, event)?
    {
        return Ok(Ok(false));
    }
    for mail in &commit.mail {
        let body = match mail.checked_body() {
            Ok(body) => body,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Err(refused) = mailbox::push(connection, mail, &body)? {
            return Ok(Err(refused));
        }
    }
    for (session, key) in &commit.withdrawn {
        mailbox::take_back(connection, session, key)?;
    }
    add(connection, &commit.outbox, &commit.rows)?;
    Ok(Ok(true))
}

fn note_event(connection: &Connection, event: &str) -> Result<bool, JournalError> {
    let inserted = connection
        .prepare_cached("INSERT OR IGNORE INTO host_events (event) VALUES (?1)")?
        .execute([event])?;
    if inserted == 0 {
        return Ok(false);
    }
    let oldest = connection
        .last_insert_rowid()
        .saturating_sub(to_i64(HostCommit::EVENTS_REMEMBERED as u64));
    connection
        .prepare_cached("DELETE FROM host_events WHERE id <= ?1")?
        .execute([oldest])?;
    Ok(true)
}

/// Does it whole or not at all, and leaves the others of its transaction alone.
fn commit_whole(connection: &Connection, host: &HostCommit) -> MailboxWrite<bool> {
    connection.execute_batch("SAVEPOINT host")?;
    let done = commit(connection, host)?;
    match done {
        Ok(_) => connection.execute_batch("RELEASE host")?,
        Err(_) => connection.execute_batch("ROLLBACK TO host; RELEASE host")?,
    }
    Ok(done)
}

#[async_trait]
impl HostStore for Store {
    async fn commit(&self, commit: HostCommit) -> Result<bool, MailboxError> {
        let rows = 1 + commit.mail.len() + commit.outbox.len() + commit.rows.len();
        let (has_mail, sends) = (
            !commit.mail.is_empty() || !commit.withdrawn.is_empty(),
            !commit.outbox.is_empty(),
        );
        let tell = has_mail.then(|| self.mail_changes().clone());
        let written = self.writer().write(rows, tell, move |connection| {
            commit_whole(connection, &commit)
        });
        let done = written.await.map_err(unwritten)?;
        if sends {
            self.tell_outbox();
        }
        done
    }

    async fn row(&self, table: &str, key: &str) -> Result<Option<String>, MailboxError> {
        let (table, key) = (table.to_owned(), key.to_owned());
        self.read_mail(move |connection| {
            Ok(Ok(connection
                .prepare_cached("SELECT value FROM host_rows WHERE name = ?1 AND key = ?2")?
                .query_row((table, key), |row| row.get(0))
                .optional()?))
        })
        .await
    }

    async fn rows(
        &self,
        table: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, MailboxError> {
        let (table, after) = (table.to_owned(), after.to_owned());
        self.read_mail(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, value FROM host_rows WHERE name = ?1 AND key > ?2 ORDER BY key LIMIT ?3",
            )?;
            let limit = to_i64(limit as u64);
            let rows = statement.query_map((table, after, limit), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            Ok(Ok(rows.collect::<Result<_, _>>()?))
        })
        .await
    }
}

impl Store {
    async fn change_outbox<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, MailboxError> {
        let changed = self.writer().write(1, None, change).await;
        let changed = changed.map_err(unwritten)?;
        self.tell_outbox();
        Ok(changed)
    }
}

#[async_trait]
impl Outbox for Store {
    async fn due(
        &self,
        channel: &str,
        now: TimeMs,
        limit: usize,
    ) -> Result<Vec<OutboxRow>, MailboxError> {
        let channel = channel.to_owned();
        self.read_mail(move |connection| {
            let condition = format!("{HEADS} AND not_before <= ?2 ORDER BY id LIMIT ?3");
            let (now, limit) = (to_i64(now.0), to_i64(limit as u64));
            select(connection, &condition, &[&channel, &now, &limit])
        })
        .await
    }

    async fn next_due(&self, channel: &str) -> Result<Option<TimeMs>, MailboxError> {
        let channel = channel.to_owned();
        self.read_mail(move |connection| {
            let next = connection
                .prepare_cached(&format!("SELECT min(not_before) FROM outbox WHERE {HEADS}"))?
                .query_row([channel], |row| row.get::<_, Option<i64>>(0))?;
            Ok(Ok(next.map(|it| TimeMs(to_u64(it)))))
        })
        .await
    }

    async fn begin_sending(&self, id: OutboxId) -> Result<bool, MailboxError> {
        let begun = self.writer().write(1, None, move |connection| {
            let begun = connection
                .prepare_cached(
                    "UPDATE outbox SET doubts = doubts + (state = 'sending'), state = 'sending', attempts = attempts + 1
                     WHERE id = ?1 AND state IN ('waiting', 'sending')",
                )?
                .execute([to_i64(id.0)])?;
            Ok(begun > 0)
        });
        begun.await.map_err(unwritten)
    }

    async fn end_sending(&self, id: OutboxId, attempt: Attempt) -> Result<(), MailboxError> {
        self.change_outbox(move |connection| end(connection, id, &attempt))
            .await
    }

    async fn move_chat(&self, channel: &str, from: &str, to: &str) -> Result<(), MailboxError> {
        let (channel, from, to) = (channel.to_owned(), from.to_owned(), to.to_owned());
        self.change_outbox(move |connection| {
            connection.execute(
                "UPDATE outbox SET chat = ?3 WHERE channel = ?1 AND chat = ?2 AND state IN ('waiting', 'sending')",
                (channel, from, to),
            )?;
            Ok(())
        })
        .await
    }

    async fn unsent(&self) -> Result<Vec<OutboxRow>, MailboxError> {
        self.read_mail(|connection| {
            let limit = to_i64(OPEN_ROWS_MAX as u64);
            let condition = "state IN ('waiting', 'sending', 'failed') ORDER BY id LIMIT ?1";
            select(connection, condition, &[&limit])
        })
        .await
    }

    async fn retry(&self, id: OutboxId) -> Result<bool, MailboxError> {
        self.change_outbox(move |connection| {
            let changed = connection.execute(
                "UPDATE outbox SET not_before = 0, state = iif(state = 'failed', 'waiting', state)
                 WHERE id = ?1 AND state IN ('waiting', 'sending', 'failed')",
                [to_i64(id.0)],
            )?;
            Ok(changed > 0)
        })
        .await
    }

    async fn drop_row(&self, id: OutboxId) -> Result<bool, MailboxError> {
        self.change_outbox(move |connection| {
            let changed = connection.execute(
                "UPDATE outbox SET state = 'dropped', text = '', details = ''
                 WHERE id = ?1 AND state IN ('waiting', 'sending', 'failed')",
                [to_i64(id.0)],
            )?;
            Ok(changed > 0)
        })
        .await
    }

    async fn counts(&self) -> Result<OutboxCounts, MailboxError> {
        self.read_mail(|connection| {
            let counts = connection
                .prepare_cached(
                    "SELECT count(*) FILTER (WHERE state IN ('waiting', 'sending')),
                            count(*) FILTER (WHERE state = 'failed'), coalesce(sum(doubts), 0) FROM outbox",
                )?
                .query_row([], |row| {
                    let number = |column| row.get::<_, i64>(column).map(to_u64);
                    Ok(OutboxCounts {
                        open: number(0)?,
                        failed: number(1)?,
                        doubts: number(2)?,
                    })
                })?;
            Ok(Ok(counts))
        })
        .await
    }

    async fn open_in_chat(&self, channel: &str, chat: &str) -> Result<u64, MailboxError> {
        let (channel, chat) = (channel.to_owned(), chat.to_owned());
        self.read_mail(move |connection| {
            let count = connection
                .prepare_cached(
                    "SELECT count(*) FROM outbox WHERE channel = ?1 AND chat = ?2 AND state IN ('waiting', 'sending')",
                )?
                .query_row((channel, chat), |row| row.get::<_, i64>(0))?;
            Ok(Ok(to_u64(count)))
        })
        .await
    }

    fn outbox_changed(&self) -> watch::Receiver<u64> {
        self.outbox_changes().subscribe()
    }
}

fn end(connection: &Connection, id: OutboxId, attempt: &Attempt) -> Result<(), JournalError> {
    let (state, not_before, error, receipt) = match attempt {
        Attempt::Sent(receipt) => ("sent", None, None, Some(receipt)),
        Attempt::NotSent { not_before, error } => ("waiting", Some(not_before), Some(error), None),
        Attempt::Unclear { not_before, error } => ("sending", Some(not_before), Some(error), None),
        Attempt::GivenUp { error } => ("failed", None, Some(error), None),
    };
    connection
        .prepare_cached(
            "UPDATE outbox SET state = ?2, not_before = coalesce(?3, not_before), error = ?4,
             receipt = coalesce(?5, receipt), text = iif(?2 = 'sent', '', text),
             details = iif(?2 = 'sent', '', details)
             WHERE id = ?1 AND state IN ('waiting', 'sending')",
        )?
        .execute((
            to_i64(id.0),
            state,
            not_before.map(|it| to_i64(it.0)),
            error,
            receipt,
        ))?;
    if matches!(attempt, Attempt::Sent(_) | Attempt::GivenUp { .. }) {
        connection
            .prepare_cached(
                "DELETE FROM outbox WHERE state NOT IN ('waiting', 'sending') AND id <=
                 (SELECT id FROM outbox WHERE state NOT IN ('waiting', 'sending')
                  ORDER BY id DESC LIMIT 1 OFFSET ?1)",
            )?
            .execute([to_i64(SENT_REMEMBERED as u64)])?;
    }
    Ok(())
}
