//! The repair of a session: what its hashes prove is restored, and the rest is cut off.

use crate::commit_thread::{advance, mark_lost, set_tally, to_i64};
use crate::error::JournalError;
use crate::export;
use crate::lock::SessionLock;
use crate::mend::{self, DamagedRecord};
use crate::read::{self, SessionRow};
use crate::store::Store;
use crate::turn_count::TurnCount;
use rondo_core::ports::{ChainHash, Seq};
use rondo_core::session_store::StoreError;
use rondo_core::storage::{CutRecords, Report};
use rondo_types::SessionId;
use rusqlite::{Connection, TransactionBehavior};

/// Records that one repair restores.
const MENDED_MAX: u32 = 64;

impl Store {
    /// Checks a session, restores the records in which one bit was changed, and cuts off everything from the first
    /// record on that stays damaged, in the forks that share it too.
    ///
    /// Removed records are saved as text beside the journal first, as far as they can be read. Nothing is removed if
    /// the damage is in a large body that other records hold: the next record with the same body restores it for all.
    ///
    /// # Errors
    /// As [`Store::check`]; also when the session or a fork that would be cut is in use, or the damage lies in records
    /// that it shares with the session it is a fork of.
    pub fn repair(&self, session: &SessionId) -> Result<Report, JournalError> {
        let _lock = self.lock(session)?;
        let mut report = self.check(session)?;
        let mut mended = 0;
        while report.defect.is_some() && mended < MENDED_MAX && self.mend(&report)? {
            mended += 1;
            report = self.check(session)?;
        }
        report.mended = mended;
        let Some(defect) = &mut report.defect else {
            return Ok(report);
        };
        let place = self.place(session, report.sound)?;
        if mend::may_be_written_anew(&self.reader(), &place)? {
            "its large body was changed; the next turn that records the same one restores it"
                .clone_into(&mut defect.reason);
            return Ok(report);
        }
        if let Some(damaged) = self.damaged_parent(session, Seq(report.sound))? {
            return Err(JournalError::Store(StoreError::Damaged {
                session: session.clone(),
                seq: defect.seq.0,
                reason: format!("the record is its parent's: repair session `{damaged}`"),
            }));
        }
        report.cut = self.cut_off_after(session, Seq(report.sound))?;
        Ok(report)
    }

    fn mend(&self, report: &Report) -> Result<bool, JournalError> {
        let place = self.place(&report.session, report.sound)?;
        self.writer()
            .run(move |connection| mend::mend(connection, &place))
    }

    /// Returns the place behind the last sound record.
    fn place(&self, session: &SessionId, sound: u64) -> Result<DamagedRecord, JournalError> {
        let connection = self.reader();
        let row = read::find(&connection, session)?;
        let before = match sound {
            0 => ChainHash::GENESIS,
            at => last_hash(&connection, &row, Seq(at))?,
        };
        Ok(DamagedRecord {
            session: session.clone(),
            seq: Seq(sound + 1),
            before,
        })
    }

    /// Returns the session that a fork shares its damaged record with, unless that one has lost it by now.
    fn damaged_parent(
        &self,
        session: &SessionId,
        keep: Seq,
    ) -> Result<Option<SessionId>, JournalError> {
        let row = read::find(&self.reader(), session)?;
        let (true, Some(parent)) = (keep < row.fork, row.parent) else {
            return Ok(None);
        };
        let Some(parent) = read::name_of(&self.reader(), parent)? else {
            return Ok(None);
        };
        let is_damaged = self.check(&parent)?.defect.is_some();
        Ok(is_damaged.then_some(parent))
    }

    /// Cuts a session off, and first the forks that share what is cut, each under its lock.
    fn cut_off_after(
        &self,
        session: &SessionId,
        keep: Seq,
    ) -> Result<Vec<CutRecords>, JournalError> {
        let mut sessions = self.forks_beyond(session, keep)?;
        let _locks: Vec<SessionLock> = sessions
            .iter()
            .map(|fork| self.lock(fork))
            .collect::<Result<_, _>>()?;
        sessions.push(session.clone());
        let mut cuts = Vec::new();
        for session in &sessions {
            cuts.push(CutRecords {
                session: session.clone(),
                saved: export::save_damaged(self, session, Seq(keep.0 + 1))?,
            });
        }
        self.writer().run(move |connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for session in &sessions {
                cut(&transaction, session, keep)?;
            }
            Ok(transaction.commit()?)
        })?;
        Ok(cuts)
    }

    /// Lists the forks of a session, and theirs, that share records behind one; the last fork comes first.
    fn forks_beyond(&self, session: &SessionId, keep: Seq) -> Result<Vec<SessionId>, JournalError> {
        let connection = self.reader();
        let mut found = vec![session.clone()];
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            let parent = read::find(&connection, parent)?.id;
            found.extend(read::forks_beyond(&connection, parent, keep)?);
            next += 1;
        }
        found.reverse();
        found.pop();
        Ok(found)
    }
}

fn last_hash(
    connection: &Connection,
    row: &SessionRow,
    at: Seq,
) -> Result<ChainHash, JournalError> {
    if at == Seq(0) {
        return Ok(ChainHash::GENESIS);
    }
    let segments = read::lineage(connection, row)?;
    let hash = read::hash_at(connection, &segments, at)?;
    Ok(hash.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// Cuts one session off. A fork that shared what is cut is one at the last record that it keeps.
fn cut(connection: &Connection, session: &SessionId, keep: Seq) -> Result<(), JournalError> {
    let row = read::find(connection, session)?;
    // At the fork itself the last sound record is the parent's, or one further up.
    let hash = last_hash(connection, &row, keep)?;
    let tally = TurnCount::up_to(connection, &row, keep)?;
    connection.execute(
        "DELETE FROM records WHERE session = ?1 AND seq > ?2",
        (row.id, to_i64(keep.0)),
    )?;
    connection.execute(
        "UPDATE sessions SET fork_seq = MIN(fork_seq, ?2) WHERE id = ?1",
        (row.id, to_i64(keep.0)),
    )?;
    advance(connection, row.id, (keep, hash), 0)?;
    set_tally(connection, row.id, tally)?;
    mark_lost(connection, row.id)
}
