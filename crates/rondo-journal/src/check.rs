//! The check of a session's chain, and its repair.

use crate::commit_thread::{advance, mark_lost, set_tally, to_i64};
use crate::error::StoreError;
use crate::export;
use crate::read;
use crate::store::Store;
use crate::turn_count::TurnCount;
use crate::walk::Walk;
use rondo_core::ports::{ChainHash, Record, Seq};
use rondo_types::SessionId;
use rusqlite::{Connection, TransactionBehavior};
use std::path::PathBuf;

/// Something that is wrong with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The first record that is wrong.
    pub seq: Seq,
    /// What is wrong with it.
    pub reason: String,
}

/// What a check of a session found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The session.
    pub session: SessionId,
    /// Records that are sound, from the first on.
    pub sound: u64,
    /// What is wrong, if anything; nothing behind it was looked at.
    pub defect: Option<Defect>,
    /// Where the damaged records were put, after a repair that cut them off.
    pub saved: Option<PathBuf>,
}

impl Defect {
    pub(crate) fn of(self, session: &SessionId) -> StoreError {
        StoreError::Damaged {
            session: session.clone(),
            seq: self.seq.0,
            reason: self.reason,
        }
    }
}

impl Store {
    /// Hands over the records of a session to go on with it, each checked as
    /// [`Store::check`] does. What a later version wrote and this one does not know is left out.
    /// About a megabyte of them is held at a time.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the disk fails; also whatever `take`
    /// fails with. What was handed over before is sound.
    pub fn records<E: From<StoreError>>(
        &self,
        session: &SessionId,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut walk = Walk::default();
        self.each(session, Seq(1), |entry| match walk.take(&entry) {
            Ok(body) => entry.with_body(body).map_or(Ok(()), &mut take),
            Err(defect) => Err(defect.of(session).into()),
        })
    }

    /// Reads all records of a session, as [`Store::records`] hands them over.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the disk fails.
    pub fn load(&self, session: &SessionId) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        self.records(session, |record| {
            records.push(record);
            Ok::<_, StoreError>(())
        })?;
        Ok(records)
    }

    /// Checks every record of a session: its place, its hash, its body. One is held at a time.
    ///
    /// # Errors
    /// When there is no such session or the disk fails. Damage is no error here.
    pub fn check(&self, session: &SessionId) -> Result<Report, StoreError> {
        let (head, head_hash) = {
            let row = read::find(&self.reader(), session)?;
            (row.head, row.head_hash)
        };
        let mut walk = Walk::default();
        let walked = self.each(session, Seq(1), |entry| match walk.take(&entry) {
            Ok(_) => Ok(()),
            Err(defect) => Err(defect.of(session)),
        });
        let defect = match walked {
            Ok(()) if walk.at == head && walk.hash != head_hash => Some(Defect {
                seq: head,
                reason: "its hash is not the one that the session ends with".to_owned(),
            }),
            Ok(()) => None,
            Err(StoreError::Damaged { seq, reason, .. }) => {
                let seq = Seq(seq);
                Some(Defect { seq, reason })
            }
            Err(error) => return Err(error),
        };
        Ok(Report {
            session: session.clone(),
            sound: walk.at.0,
            defect,
            saved: None,
        })
    }

    /// Checks a session and cuts off everything from its first damaged record on.
    ///
    /// What is cut off is saved as text beside the journal first, as far as it can be read.
    ///
    /// # Errors
    /// As [`Store::check`]; also when the session is in use, or the damage lies in records that it
    /// shares with the session it is a fork of.
    pub fn repair(&self, session: &SessionId) -> Result<Report, StoreError> {
        let _lock = self.lock(session)?;
        let mut report = self.check(session)?;
        let Some(defect) = &report.defect else {
            return Ok(report);
        };
        let fork = read::find(&self.reader(), session)?.fork;
        if report.sound < fork.0 {
            return Err(StoreError::Damaged {
                session: session.clone(),
                seq: defect.seq.0,
                reason: "the record is its parent's: repair that session".to_owned(),
            });
        }
        report.saved = export::save_damaged(self, session, Seq(report.sound + 1))?;
        let (session, keep) = (session.clone(), Seq(report.sound));
        self.writer()
            .run(move |connection| cut(connection, &session, keep))?;
        Ok(report)
    }
}

/// Forks that read what is cut off keep their own records and are damaged as well, and say so.
fn cut(connection: &mut Connection, session: &SessionId, keep: Seq) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let row = read::find(&transaction, session)?;
    transaction.execute(
        "DELETE FROM records WHERE session = ?1 AND seq > ?2",
        (row.id, to_i64(keep.0)),
    )?;
    // At the fork itself the last sound record is the parent's, or one further up.
    let segments = read::lineage(&transaction, &row)?;
    let hash = match read::hash_at(&transaction, &segments, keep)? {
        Some(hash) => hash,
        None if keep == Seq(0) => ChainHash::GENESIS,
        None => return Err(rusqlite::Error::QueryReturnedNoRows.into()),
    };
    advance(&transaction, row.id, (keep, hash), 0)?;
    let tally = TurnCount::up_to(&transaction, &row, keep)?;
    set_tally(&transaction, row.id, tally)?;
    mark_lost(&transaction, row.id)?;
    transaction.commit()?;
    Ok(())
}
