//! Reads an exported session into the store, a bounded number of records at a time.

use crate::blob;
use crate::commit_thread::{FIRST_EPOCH, insert, mark_lost, set_tally, to_i64};
use crate::error::JournalError;
use crate::owned::checked;
use crate::read;
use crate::store::Store;
use crate::turn_count::TurnCount;
use rondo_core::ports::{ChainHash, Entry, Seq};
use rondo_core::session_store::{StoreError, title};
use rondo_core::storage::Imported;
use rondo_core::storage::export::{Announced, Entries, Header, Lines, read_header};
use rondo_types::SessionId;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use std::io::BufRead;

/// Records of one commit of an import.
const BATCH_RECORDS: usize = 1000;
/// Bytes of bodies at which a batch is full; the last may be longer.
const BATCH_BYTES: usize = 4 << 20;
/// The epoch of a session whose import is not over: no owner has it.
const UNFINISHED_EPOCH: u64 = 0;

impl Store {
    /// Reads an exported session, under its own id or another.
    ///
    /// Each record is checked on its way. The session has none until all are there: one whose
    /// import was cut off is empty, and importing it again starts over. A last line that was cut
    /// short is left out, and said. The session is marked as imported, and so are its forks.
    ///
    /// # Errors
    /// When a line is not a record or does not follow the one before it, when the id is taken or
    /// cannot be one, or when reading or writing fails; then nothing was imported.
    pub fn import(
        &self,
        input: &mut dyn BufRead,
        id: Option<&SessionId>,
    ) -> Result<Imported, JournalError> {
        let mut lines = Lines::new(input);
        let header = read_header(&mut lines)?;
        let session = match id {
            Some(id) => id.clone(),
            None => header.session()?,
        };
        let announced = header.announced()?;
        let directory = header.directory.clone();
        let _lock = self.lock(checked(&session)?)?;
        let name = session.clone();
        let row = self
            .writer()
            .run(move |connection| begin(connection, &name, &header))?;
        let imported = self.take_lines(&mut lines, session, row, (announced, directory));
        if imported.is_err() {
            // The defect of the file is worth more to report than that its remains stay for a while.
            let _ = self
                .writer()
                .run(move |connection| discard(connection, row));
        }
        imported
    }

    fn take_lines(
        &self,
        lines: &mut Lines<'_>,
        session: SessionId,
        row: i64,
        (announced, directory): (Option<Announced>, String),
    ) -> Result<Imported, JournalError> {
        let (mut entries, mut end) = (Entries::of(announced), End::default());
        loop {
            let batch = batch(&mut entries, lines)?;
            let Some(last) = batch.last() else {
                break;
            };
            end.at(last);
            batch.iter().for_each(|entry| end.tally.note_entry(entry));
            self.writer()
                .run(move |connection| store(connection, row, &batch))?;
        }
        let records = end.seq.0;
        let torn = entries.torn;
        self.writer()
            .run(move |connection| finish(connection, row, &end, torn))?;
        Ok(Imported {
            session,
            records,
            torn,
            announced: announced.map(|it| it.records),
            directory,
        })
    }
}

/// End of an imported session.
struct End {
    seq: Seq,
    hash: ChainHash,
    epoch: u64,
    at_ms: u64,
    tally: TurnCount,
}

impl Default for End {
    fn default() -> Self {
        Self {
            seq: Seq(0),
            hash: ChainHash::GENESIS,
            epoch: FIRST_EPOCH,
            at_ms: 0,
            tally: TurnCount::default(),
        }
    }
}

impl End {
    fn at(&mut self, last: &Entry) {
        (self.seq, self.hash) = (last.seq, last.hash);
        (self.epoch, self.at_ms) = (last.epoch.max(FIRST_EPOCH), last.at.0);
    }
}

fn batch(entries: &mut Entries, lines: &mut Lines<'_>) -> Result<Vec<Entry>, JournalError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
        let Some((entry, _)) = entries.next(lines)? else {
            break;
        };
        bytes += entry.json.len();
        batch.push(entry);
    }
    Ok(batch)
}

/// Makes the session's row, with nothing to be read under it. Its turn counts as open, so that a
/// list shows what continues, or what was cut off.
fn begin(
    connection: &mut Connection,
    session: &SessionId,
    header: &Header,
) -> Result<i64, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove_unfinished(&transaction, session)?;
    if read::exists(&transaction, session)? {
        return Err(JournalError::Store(StoreError::Exists {
            session: session.clone(),
        }));
    }
    transaction.execute(
        "INSERT INTO sessions
         (name, created_ms, updated_ms, epoch, head_seq, head_hash, title, open, imported)
         VALUES (?1, ?2, ?2, ?3, 0, ?4, ?5, 1, 1)",
        (
            session.as_str(),
            to_i64(header.created_ms),
            to_i64(UNFINISHED_EPOCH),
            ChainHash::GENESIS.0,
            title(&header.title),
        ),
    )?;
    let row = transaction.last_insert_rowid();
    transaction.commit()?;
    Ok(row)
}

/// Removes what an import left behind that was cut off; to be called under the session's lock.
pub(crate) fn discard_unfinished(
    connection: &mut Connection,
    session: &SessionId,
) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove_unfinished(&transaction, session)?;
    Ok(transaction.commit()?)
}

fn remove_unfinished(connection: &Connection, session: &SessionId) -> Result<(), JournalError> {
    let cut_off: Option<i64> = connection
        .query_row(
            "SELECT id FROM sessions WHERE name = ?1 AND epoch = ?2 AND head_seq = 0",
            (session.as_str(), to_i64(UNFINISHED_EPOCH)),
            |row| row.get(0),
        )
        .optional()?;
    cut_off.map_or(Ok(()), |row| remove(connection, row))
}

fn store(connection: &mut Connection, row: i64, batch: &[Entry]) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for entry in batch {
        insert(&transaction, row, entry)?;
    }
    Ok(transaction.commit()?)
}

fn finish(
    connection: &mut Connection,
    row: i64,
    end: &End,
    torn: bool,
) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "UPDATE sessions SET epoch = ?2, head_seq = ?3, head_hash = ?4,
         updated_ms = MAX(updated_ms, ?5) WHERE id = ?1",
        (
            row,
            to_i64(end.epoch),
            to_i64(end.seq.0),
            end.hash.0,
            to_i64(end.at_ms),
        ),
    )?;
    set_tally(&transaction, row, end.tally)?;
    if torn {
        mark_lost(&transaction, row)?;
    }
    Ok(transaction.commit()?)
}

fn discard(connection: &mut Connection, row: i64) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove(&transaction, row)?;
    Ok(transaction.commit()?)
}

fn remove(connection: &Connection, row: i64) -> Result<(), JournalError> {
    connection.execute("DELETE FROM records WHERE session = ?1", [row])?;
    connection.execute("DELETE FROM sessions WHERE id = ?1", [row])?;
    blob::remove_unused(connection)?;
    Ok(())
}
