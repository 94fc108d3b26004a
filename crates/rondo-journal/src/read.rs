//! Reads the records of a session, those that a fork shares included, in bounded pages.

use crate::blob;
use crate::commit_thread::{to_i64, to_u64};
use crate::error::JournalError;
use crate::store::Store;
use rondo_core::ports::{ChainHash, Entry, Head, Seq};
use rondo_core::session_store::StoreError;
use rondo_core::storage::walk::missing;
use rondo_types::{SessionId, TimeMs, TurnId};
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::ops::ControlFlow;

/// Records that are held at a time if a session is followed.
const PAGE_RECORDS: usize = 256;
/// Bytes of bodies at which no more are held; the last may be longer.
const PAGE_BYTES: usize = 1 << 20;

/// How many forks may lie between a session and the first one.
pub(crate) const FORKS_MAX: usize = 64;

/// A session's row.
pub(crate) struct SessionRow {
    pub(crate) id: i64,
    pub(crate) name: SessionId,
    pub(crate) head: Seq,
    pub(crate) head_hash: ChainHash,
    pub(crate) parent: Option<i64>,
    pub(crate) fork: Seq,
}

/// The part of a session's records that lies under one session's key.
pub(crate) struct Segment {
    pub(crate) id: i64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Store {
    /// Reads records from `from` on, at most `limit`, those before a fork included.
    ///
    /// The chain is not checked here; [`Store::check`] does.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the disk fails.
    pub fn read(
        &self,
        session: &SessionId,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<Entry>, JournalError> {
        let connection = self.reader();
        let row = find(&connection, session)?;
        let mut entries = Vec::new();
        for segment in lineage(&connection, &row)? {
            if entries.len() < limit && segment.last >= from.0 {
                let left = limit - entries.len();
                let mut take = |entry| {
                    entries.push(entry);
                    ControlFlow::Continue(())
                };
                let range = (from.0, segment.last, left);
                let _ = read_segment(&connection, session, (&segment, range), &mut take)?;
            }
        }
        Ok(entries)
    }

    /// Hands over the records from `from` on that are there now, in their order. About a megabyte
    /// of them is held at a time, and the file is free for others while `take` has one.
    ///
    /// The chain is not checked here; [`Store::check`] and [`Store::records`] do.
    ///
    /// # Errors
    /// As [`Store::read`], after the records before the one that cannot be read, and whatever `take`
    /// fails with.
    pub fn each<E: From<JournalError>>(
        &self,
        session: &SessionId,
        from: Seq,
        mut take: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = from;
        let head = find(&self.reader(), session)?.head;
        while next <= head {
            let (page, read) = self.page(session, next, head);
            let is_over = page.is_empty();
            for entry in page {
                next = Seq(entry.seq.0 + 1);
                take(entry)?;
            }
            read?;
            if is_over {
                return Err(JournalError::damaged(session, missing(next)).into());
            }
        }
        Ok(())
    }

    /// Reads some records, and says what ended it if that was no bound.
    fn page(
        &self,
        session: &SessionId,
        from: Seq,
        last: Seq,
    ) -> (Vec<Entry>, Result<(), JournalError>) {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut take = |entry: Entry| {
            bytes += entry.json.len();
            entries.push(entry);
            match bytes >= PAGE_BYTES || entries.len() >= PAGE_RECORDS {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let connection = self.reader();
        // Another process may remove the session between the two statements.
        let read = connection
            .unchecked_transaction()
            .map_err(JournalError::from)
            .and_then(|snapshot| {
                let row = find(&snapshot, session)?;
                read_range(&snapshot, &row, (from, last), &mut take)
            });
        (entries, read)
    }

    /// Reads all records.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_all(&self, session: &SessionId) -> Result<Vec<Entry>, JournalError> {
        self.read(session, Seq(1), usize::MAX)
    }
}

/// Returns the end of a session's records, and its owner's epoch; none if it has no row.
pub(crate) fn head(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<(Head, u64)>, JournalError> {
    Ok(connection
        .prepare_cached("SELECT head_seq, head_hash, epoch FROM sessions WHERE name = ?1")?
        .query_row([session.as_str()], |row| {
            let seq = Seq(to_u64(row.get(0)?));
            let hash = ChainHash(row.get(1)?);
            Ok((Head { seq, hash }, to_u64(row.get(2)?)))
        })
        .optional()?)
}

/// Returns whether there is a session of that id.
pub(crate) fn exists(connection: &Connection, session: &SessionId) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sessions WHERE name = ?1";
    Ok(connection.prepare_cached(sql)?.exists([session.as_str()])?)
}

/// Finds a session's row.
pub(crate) fn find(
    connection: &Connection,
    session: &SessionId,
) -> Result<SessionRow, JournalError> {
    by(
        connection,
        "name = ?1 AND NOT (epoch = 0 AND head_seq = 0)",
        session.as_str(),
    )?
    .ok_or_else(|| {
        JournalError::Store(StoreError::Unknown {
            session: session.to_string(),
        })
    })
}

fn by(
    connection: &Connection,
    condition: &str,
    key: impl rusqlite::ToSql,
) -> Result<Option<SessionRow>, JournalError> {
    let sql = format!(
        "SELECT id, name, head_seq, head_hash, parent, fork_seq FROM sessions WHERE {condition}"
    );
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([key], |row| {
            Ok(SessionRow {
                id: row.get(0)?,
                name: SessionId::new(row.get::<_, String>(1)?),
                head: Seq(to_u64(row.get(2)?)),
                head_hash: ChainHash(row.get(3)?),
                parent: row.get(4)?,
                fork: Seq(to_u64(row.get(5)?)),
            })
        })
        .optional()?)
}

/// Returns the name of a session; `None` if it has no row.
pub(crate) fn name_of(connection: &Connection, id: i64) -> Result<Option<SessionId>, JournalError> {
    Ok(by(connection, "id = ?1", id)?.map(|row| row.name))
}

/// Lists the forks of a session that share records of it behind one.
pub(crate) fn forks_beyond(
    connection: &Connection,
    parent: i64,
    keep: Seq,
) -> Result<Vec<SessionId>, JournalError> {
    let sql = "SELECT name FROM sessions WHERE parent = ?1 AND fork_seq > ?2 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let names = statement.query_map((parent, to_i64(keep.0)), |row| row.get::<_, String>(0))?;
    Ok(names
        .map(|name| name.map(SessionId::new))
        .collect::<Result<_, _>>()?)
}

/// Finds the records of a session, the oldest first.
pub(crate) fn lineage(
    connection: &Connection,
    session: &SessionRow,
) -> Result<Vec<Segment>, JournalError> {
    let mut segments = Vec::new();
    let (mut id, mut last, mut fork, mut parent) =
        (session.id, session.head.0, session.fork.0, session.parent);
    loop {
        let first = fork + 1;
        segments.push(Segment { id, first, last });
        let Some(next) = parent else { break };
        let damaged = |reason: &str| {
            JournalError::Store(StoreError::Damaged {
                session: session.name.clone(),
                seq: first,
                reason: reason.to_owned(),
            })
        };
        if segments.len() > FORKS_MAX {
            return Err(damaged("its forks form a cycle"));
        }
        let row = by(connection, "id = ?1", next)?
            .ok_or_else(|| damaged("the session that it is a fork of is gone"))?;
        // A fork may lie before its parent's own: then the parent adds nothing.
        (id, last, fork, parent) = (row.id, fork, row.fork.0.min(fork), row.parent);
    }
    segments.reverse();
    Ok(segments)
}

/// Hands over a session's records of a range, one at a time, until `take` has enough.
pub(crate) fn read_range(
    connection: &Connection,
    session: &SessionRow,
    (from, last): (Seq, Seq),
    take: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), JournalError> {
    for segment in lineage(connection, session)? {
        let range = (from.0, segment.last.min(last.0), usize::MAX);
        let read = (&segment, range);
        if read_segment(connection, &session.name, read, take)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the hash of one record; none when it is not there.
pub(crate) fn hash_at(
    connection: &Connection,
    segments: &[Segment],
    at: Seq,
) -> Result<Option<ChainHash>, JournalError> {
    let holds = |it: &&Segment| it.first <= at.0 && at.0 <= it.last;
    let Some(segment) = segments.iter().find(holds) else {
        return Ok(None);
    };
    let hash: Option<[u8; 32]> = connection
        .prepare_cached("SELECT hash FROM records WHERE session = ?1 AND seq = ?2")?
        .query_row((segment.id, to_i64(at.0)), |row| row.get(0))
        .optional()?;
    Ok(hash.map(ChainHash))
}

fn read_segment(
    connection: &Connection,
    session: &SessionId,
    (segment, (from, last, limit)): (&Segment, (u64, u64, usize)),
    take: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, JournalError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, version, epoch, turn, step, at_ms, hash, body, blob FROM records
         WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq LIMIT ?4",
    )?;
    let mut rows = statement.query((
        segment.id,
        to_i64(segment.first.max(from)),
        to_i64(last),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ))?;
    while let Some(row) = rows.next()? {
        if take(entry(connection, session, row)?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn entry(
    connection: &Connection,
    session: &SessionId,
    row: &Row<'_>,
) -> Result<Entry, JournalError> {
    let seq = to_u64(row.get(0)?);
    let damaged = |reason: &str| {
        JournalError::Store(StoreError::Damaged {
            session: session.clone(),
            seq,
            reason: reason.to_owned(),
        })
    };
    let hash = field::<Vec<u8>>(row, 6).map_err(|_| damaged("its hash cannot be read"))?;
    let body = field(row, 7).map_err(|_| damaged("its body is not text"))?;
    let key = field::<Option<Vec<u8>>>(row, 8).map_err(|_| damaged("its body cannot be found"))?;
    let json = match (body, key) {
        (Some(body), _) => body,
        (None, Some(sha256)) => blob::read(connection, &sha256)?
            .ok_or_else(|| damaged("its body is gone"))?
            .map_err(|_| damaged("its body is not text"))?,
        (None, None) => return Err(damaged("it has no body")),
    };
    let unreadable = |_| damaged("one of its numbers or its turn cannot be read");
    Ok(Entry {
        seq: Seq(seq),
        version: field(row, 1).map_err(unreadable)?,
        epoch: to_u64(field(row, 2).map_err(unreadable)?),
        turn: TurnId::new(field::<String>(row, 3).map_err(unreadable)?),
        step: field(row, 4).map_err(unreadable)?,
        at: TimeMs(to_u64(field(row, 5).map_err(unreadable)?)),
        json,
        hash: ChainHash::from_slice(&hash).ok_or_else(|| damaged("its hash is malformed"))?,
    })
}

/// Reads a column; what is in it may be of another type than was written.
fn field<T: FromSql>(row: &Row<'_>, index: usize) -> FromSqlResult<T> {
    T::column_result(row.get_ref(index).map_or(ValueRef::Null, |it| it))
}
