//! Mailboxes of sessions, in the journal's own file: so that a submission is removed in the same transaction in which
//! the records about it become durable.
//!
//! A row that was taken, or taken back, stays without its body, so that what is submitted again is known: the
//! newest of each session.

use crate::commit_thread::{FailedWrite, Failure, to_i64, to_u64};
use crate::error::JournalError;
use crate::store::Store;
use async_trait::async_trait;
use rondo_core::ports::{
    KEYS_REMEMBERED, Mail, MailBody, MailId, Mailbox, MailboxError, MailboxLoad, NewMail, Pushed,
};
use rondo_types::{Message, SessionId, TimeMs};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::io;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// The table, if it is missing. Numbers are never used twice, not even those of rows that are gone. The trigger
/// holds for programs that know of no mailbox, too; what is removed unfinished was never a session.
pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    body TEXT,
    revision INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, key)
);
CREATE INDEX IF NOT EXISTS mail_waiting ON mail(session, id) WHERE body IS NOT NULL;
CREATE INDEX IF NOT EXISTS mail_taken ON mail(session, id) WHERE body IS NULL;
CREATE TRIGGER IF NOT EXISTS mail_of_removed AFTER DELETE ON sessions
WHEN NOT (OLD.epoch = 0 AND OLD.head_seq = 0)
BEGIN DELETE FROM mail WHERE session = OLD.name; END;
";

/// Stands for the table if it is missing and cannot be made.
pub(crate) const NO_TABLE: &str =
    "CREATE TEMP VIEW mail AS SELECT 0 AS id, '' AS session, '' AS key,
    '' AS kind, '' AS actor, 0 AS at_ms, NULL AS body, 0 AS revision WHERE 0";

/// Holds for the kinds that this version can read.
const READABLE: &str = "body IS NOT NULL AND kind IN ('message', 'answer', 'cancel')";

#[async_trait]
impl Mailbox for Store {
    async fn push(&self, mail: NewMail) -> Result<Pushed, MailboxError> {
        let body = mail.checked_body()?;
        let tell = Some(self.mail_changes().clone());
        let pushed = self
            .writer()
            .write(1, tell, move |connection| push(connection, &mail, &body));
        pushed.await.map_err(unwritten)?
    }

    async fn list(&self, session: &SessionId) -> Result<Vec<Mail>, MailboxError> {
        let session = session.clone();
        self.read_mail(move |connection| list(connection, &session, None))
            .await
    }

    async fn newest(&self, session: &SessionId) -> Result<Option<MailId>, MailboxError> {
        let session = session.clone();
        self.read_mail(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT max(id) FROM mail WHERE session = ?1 AND {READABLE}"
            ))?;
            let newest = statement.query_row([session.as_str()], |row| row.get(0))?;
            Ok(Ok(Option::<i64>::map(newest, |it| MailId(to_u64(it)))))
        })
        .await
    }

    fn mail(&self, session: &SessionId) -> Result<Vec<Mail>, MailboxError> {
        let listed = list(&self.reader(), session, None);
        listed.map_err(|err| MailboxError::Io(io::Error::other(err)))?
    }

    async fn get(&self, session: &SessionId, key: &str) -> Result<Option<Mail>, MailboxError> {
        let (session, key) = (session.clone(), key.to_owned());
        let found = self.read_mail(move |connection| list(connection, &session, Some(&key)));
        Ok(found.await?.pop())
    }

    async fn revision(&self, session: &SessionId, key: &str) -> Result<Option<u64>, MailboxError> {
        let (session, key) = (session.clone(), key.to_owned());
        self.read_mail(move |connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT revision FROM mail WHERE session = ?1 AND key = ?2 AND {READABLE}"
            ))?;
            let revision = statement.query_row((session.as_str(), key), |row| row.get(0));
            Ok(Ok(revision.optional()?.map(to_u64)))
        })
        .await
    }

    async fn edit(
        &self,
        session: &SessionId,
        key: &str,
        message: Message,
    ) -> Result<bool, MailboxError> {
        let (session, key) = (session.clone(), key.to_owned());
        let tell = Some(self.mail_changes().clone());
        let edited = self.writer().write(1, tell, move |connection| {
            edit(connection, &session, &key, message)
        });
        edited.await.map_err(unwritten)?
    }

    async fn withdraw(&self, session: &SessionId, key: &str) -> Result<bool, MailboxError> {
        let (session, key) = (session.clone(), key.to_owned());
        let tell = Some(self.mail_changes().clone());
        let withdrawn = self.writer().write(1, tell, move |connection| {
            take_back(connection, &session, &key)
        });
        withdrawn.await.map_err(unwritten)
    }

    async fn discard(&self, session: &SessionId) -> Result<usize, MailboxError> {
        let session = session.clone();
        let tell = Some(self.mail_changes().clone());
        let discarded = self.writer().write(1, tell, move |connection| {
            let count = counted(connection, &session)?;
            connection.execute("DELETE FROM mail WHERE session = ?1", [session.as_str()])?;
            Ok(count.messages + count.controls)
        });
        discarded.await.map_err(unwritten)
    }

    async fn waiting(&self) -> Result<Vec<SessionId>, MailboxError> {
        self.read_mail(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT session FROM mail WHERE {READABLE} GROUP BY session ORDER BY min(id)"
            ))?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            let names = names.map(|name| name.map(SessionId::new));
            Ok(Ok(names.collect::<Result<_, _>>()?))
        })
        .await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.mail_changes().subscribe()
    }
}

impl Store {
    /// Reads on a thread that may block.
    pub(crate) async fn read_mail<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Result<T, MailboxError>, JournalError> + Send + 'static,
    ) -> Result<T, MailboxError> {
        let store = self.clone();
        let read = spawn_blocking(move || read(&store.reader()));
        let read = read.await.map_err(|err| MailboxError::Io(err.into()))?;
        read.map_err(|err| MailboxError::Io(io::Error::other(err)))?
    }
}

pub(crate) fn unwritten<T>(unwritten: FailedWrite<T>) -> MailboxError {
    match unwritten.failure {
        Failure::Full => MailboxError::Full,
        failure @ Failure::Unknown(_) => MailboxError::Unknown(failure.into()),
        failure => MailboxError::Io(failure.into()),
    }
}

pub(crate) type MailboxWrite<T> = Result<Result<T, MailboxError>, JournalError>;

pub(crate) fn push(connection: &Connection, mail: &NewMail, body: &str) -> MailboxWrite<Pushed> {
    let session = mail.session.as_str();
    let found: Option<i64> = connection
        .prepare_cached("SELECT id FROM mail WHERE session = ?1 AND key = ?2")?
        .query_row((session, &mail.key), |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(Ok(Pushed::Duplicate(MailId(to_u64(id)))));
    }
    let waiting = counted(connection, &mail.session)?;
    if let Err(refused) = waiting.check_room(mail.body.is_message(), body.len()) {
        return Ok(Err(refused));
    }
    connection
        .prepare_cached(
            "INSERT INTO mail (session, key, kind, actor, at_ms, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            session,
            &mail.key,
            mail.body.kind(),
            &mail.actor,
            to_i64(mail.at_ms.0),
            body,
        ))?;
    let id = MailId(to_u64(connection.last_insert_rowid()));
    Ok(Ok(Pushed::Accepted(id)))
}

fn counted(connection: &Connection, session: &SessionId) -> Result<MailboxLoad, JournalError> {
    let number = |row: &Row<'_>, column| -> rusqlite::Result<usize> {
        Ok(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(usize::MAX))
    };
    Ok(connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE kind = 'message'),
                    count(*) FILTER (WHERE kind <> 'message'), coalesce(sum(octet_length(body)), 0)
             FROM mail WHERE session = ?1 AND body IS NOT NULL",
        )?
        .query_row([session.as_str()], |row| {
            Ok(MailboxLoad {
                messages: number(row, 0)?,
                controls: number(row, 1)?,
                bytes: number(row, 2)?,
            })
        })?)
}

/// Returns the waiting messages of a session, or the one there under a key.
fn list(
    connection: &Connection,
    session: &SessionId,
    key: Option<&str>,
) -> MailboxWrite<Vec<Mail>> {
    let only = key.map_or("", |_| "AND key = ?2");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, key, actor, at_ms, body, revision FROM mail
         WHERE session = ?1 {only} AND {READABLE} ORDER BY id"
    ))?;
    let mut rows = match key {
        Some(key) => statement.query((session.as_str(), key))?,
        None => statement.query([session.as_str()])?,
    };
    let mut mails = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(1)?;
        let body = match read_body(session, &key, row.get_ref(4)?) {
            Ok(body) => body,
            Err(damaged) => return Ok(Err(damaged)),
        };
        mails.push(Mail {
            id: MailId(to_u64(row.get(0)?)),
            session: session.clone(),
            key,
            actor: row.get(2)?,
            at_ms: TimeMs(to_u64(row.get(3)?)),
            revision: to_u64(row.get(5)?),
            body,
        });
    }
    Ok(Ok(mails))
}

/// A damaged row is its session's own: it fails no transaction, which others may share. Its content is not repeated.
fn read_body(session: &SessionId, key: &str, body: ValueRef<'_>) -> Result<MailBody, MailboxError> {
    let json = body.as_bytes().unwrap_or_default();
    serde_json::from_slice(json).map_err(|err| MailboxError::Damaged {
        session: session.clone(),
        key: key.to_owned(),
        reason: format!("its body cannot be read from column {} on", err.column()),
    })
}

fn edit(
    connection: &Connection,
    session: &SessionId,
    key: &str,
    message: Message,
) -> MailboxWrite<bool> {
    let found = connection
        .prepare_cached(
            "SELECT id, octet_length(body), body FROM mail
             WHERE session = ?1 AND key = ?2 AND kind = 'message' AND body IS NOT NULL",
        )?
        .query_row((session.as_str(), key), |row| {
            let body = read_body(session, key, row.get_ref(2)?);
            Ok((row.get::<_, i64>(0)?, to_u64(row.get(1)?), body))
        })
        .optional()?;
    let Some((id, bytes, before)) = found else {
        return Ok(Ok(false));
    };
    let mut waiting = counted(connection, session)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    waiting.bytes = waiting.bytes.saturating_sub(bytes);
    let body = before.and_then(|body| {
        let MailBody::Message { delivery, .. } = body else {
            return Ok(None);
        };
        let json = MailBody::Message { message, delivery }.to_json()?;
        waiting.check_bytes(json.len())?;
        Ok(Some(json))
    });
    match body {
        Ok(Some(json)) => {
            connection
                .prepare_cached("UPDATE mail SET body = ?2, revision = revision + 1 WHERE id = ?1")?
                .execute((id, json))?;
            Ok(Ok(true))
        }
        Ok(None) => Ok(Ok(false)),
        Err(refused) => Ok(Err(refused)),
    }
}

/// Takes back what waits under a key, and returns whether anything did.
pub(crate) fn take_back(
    connection: &Connection,
    session: &SessionId,
    key: &str,
) -> Result<bool, JournalError> {
    let found = connection
        .prepare_cached("SELECT id FROM mail WHERE session = ?1 AND key = ?2 AND body IS NOT NULL")?
        .query_row((session.as_str(), key), |row| Ok(to_u64(row.get(0)?)))
        .optional()?;
    let found = found.map(MailId);
    acknowledge(connection, session, found.as_slice(), &[])?;
    Ok(found.is_some())
}

/// Removes rows of a session, but for their keys; of `unedited` those that still have their revisions.
pub(crate) fn acknowledge(
    connection: &Connection,
    session: &SessionId,
    ack: &[MailId],
    unedited: &[(MailId, u64)],
) -> Result<(), JournalError> {
    for id in ack {
        connection
            .prepare_cached("UPDATE mail SET body = NULL WHERE id = ?1 AND session = ?2")?
            .execute((to_i64(id.0), session.as_str()))?;
    }
    for (id, revision) in unedited {
        connection
            .prepare_cached(
                "UPDATE mail SET body = NULL WHERE id = ?1 AND session = ?2 AND revision = ?3",
            )?
            .execute((to_i64(id.0), session.as_str(), to_i64(*revision)))?;
    }
    if !(ack.is_empty() && unedited.is_empty()) {
        let remembered = i64::try_from(KEYS_REMEMBERED).unwrap_or(i64::MAX);
        connection
            .prepare_cached(
                "DELETE FROM mail WHERE session = ?1 AND body IS NULL AND id <=
                 (SELECT id FROM mail WHERE session = ?1 AND body IS NULL
                  ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute((session.as_str(), remembered))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use crate::store::Options;
    use std::time::Duration;

    #[test]
    fn a_store_from_before_that_is_only_read_has_no_mail() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let path = store.path();
        drop(store);
        let before = Connection::open(&path).unwrap();
        before
            .execute_batch("DROP TRIGGER mail_of_removed; DROP TABLE mail")
            .unwrap();
        drop(before);
        let reader = schema::open_read_only(&path, Duration::ZERO).unwrap();
        let session = SessionId::new("a");
        assert_eq!(list(&reader, &session, None).unwrap().unwrap(), []);
        assert_eq!(counted(&reader, &session).unwrap(), MailboxLoad::default());
    }

    #[test]
    fn what_can_be_read_is_what_there_is() {
        let named: Vec<_> = MailBody::KINDS.map(|kind| format!("'{kind}'")).into();
        let list = format!("kind IN ({})", named.join(", "));
        assert!(READABLE.ends_with(&list), "{READABLE}");
    }
}
