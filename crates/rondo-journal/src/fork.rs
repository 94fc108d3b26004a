//! Sessions that share another's beginning.

use crate::commit_thread::to_i64;
use crate::error::JournalError;
use crate::owned::checked;
use crate::read::{self, FORKS_MAX};
use crate::store::Store;
use crate::turn_count::TurnCount;
use rondo_core::ports::Seq;
use rondo_core::session_store::StoreError;
use rondo_types::{SessionId, TimeMs};
use rusqlite::{Connection, TransactionBehavior};

impl Store {
    /// Creates a session that shares another's records up to and including `at`, without copying them.
    ///
    /// Its next record is `at` + 1, chained to the shared ones. Later records of the parent do not appear in it.
    ///
    /// # Errors
    /// When the parent or the record is not there, the new id is taken or cannot be one, there are too many forks
    /// in a row, or the disk fails.
    pub fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), JournalError> {
        let (parent, new) = (parent.clone(), checked(new)?.clone());
        self.writer()
            .run(move |connection| fork(connection, &parent, at, &new, now))
    }
}

fn fork(
    connection: &mut Connection,
    parent: &SessionId,
    at: Seq,
    new: &SessionId,
    now: TimeMs,
) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let row = read::find(&transaction, parent)?;
    let no_record = || {
        JournalError::Store(StoreError::NoSuchRecord {
            session: parent.clone(),
            seq: at.0,
            last: row.head.0,
        })
    };
    if at > row.head || at == Seq(0) {
        return Err(no_record());
    }
    let segments = read::lineage(&transaction, &row)?;
    if segments.len() >= FORKS_MAX {
        return Err(JournalError::Store(StoreError::Damaged {
            session: parent.clone(),
            seq: at.0,
            reason: format!("it has {FORKS_MAX} forks before it; export and import it first"),
        }));
    }
    let hash = read::hash_at(&transaction, &segments, at)?.ok_or_else(no_record)?;
    let tally = TurnCount::up_to(&transaction, &row, at)?;
    let inserted = transaction.execute(
        "INSERT OR IGNORE INTO sessions
         (name, created_ms, updated_ms, epoch, head_seq, head_hash, parent, fork_seq, title,
          directory, turns, open, imported)
         SELECT ?1, ?2, ?2, 0, ?3, ?4, id, ?3, title, directory, ?6, ?7,
          imported
         FROM sessions WHERE id = ?5",
        (
            new.as_str(),
            to_i64(now.0),
            to_i64(at.0),
            hash.0,
            row.id,
            tally.turns,
            tally.open,
        ),
    )?;
    if inserted == 0 {
        return Err(JournalError::Store(StoreError::Exists {
            session: new.clone(),
        }));
    }
    transaction.commit()?;
    Ok(())
}
