use crate::entry::{Body, ChainHash, Entry};
use crate::error::StoreError;
use crate::export;
use crate::lock;
use crate::read;
use crate::store::Store;
use crate::tally::Tally;
use crate::writer::{advance, set_tally, to_i64};
use rondo_core::ports::{Record, RecordBody, Seq};
use rondo_types::SessionId;
use rusqlite::{Connection, TransactionBehavior};
use std::collections::HashSet;
use std::path::PathBuf;

/// Records that are read at a time.
const PAGE: usize = 1000;

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

impl Store {
    /// Reads all records of a session for whoever goes on with it, each checked as
    /// [`Store::check`] does. What a later version wrote and this one does not know is left out.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the disk fails.
    pub fn load(&self, session: &SessionId) -> Result<Vec<Record>, StoreError> {
        let (mut walk, mut records) = (Walk::default(), Vec::new());
        for entry in self.read_all(session)? {
            if let Some(Defect { seq, reason }) = walk.entry(&entry) {
                return Err(StoreError::Damaged {
                    session: session.clone(),
                    seq: seq.0,
                    reason,
                });
            }
            records.extend(entry.into_record());
        }
        Ok(records)
    }

    /// Checks every record of a session: its place, its hash, its body.
    ///
    /// # Errors
    /// When there is no such session or the disk fails. Damage is no error here.
    pub fn check(&self, session: &SessionId) -> Result<Report, StoreError> {
        let (head, head_hash) = {
            let row = read::find(&self.reader(), session)?;
            (row.head, row.head_hash)
        };
        let mut walk = Walk::default();
        let mut defect = None;
        while defect.is_none() && walk.at < head {
            defect = match self.read(session, Seq(walk.at.0 + 1), PAGE) {
                Ok(page) if page.is_empty() => Some(walk.missing()),
                Ok(page) => walk.page(&page),
                // One of the page's records cannot be read: those before it may be sound.
                Err(StoreError::Damaged { .. }) => self.walk_singly(session, &mut walk),
                Err(error) => return Err(error),
            };
        }
        if defect.is_none() && walk.hash != head_hash {
            defect = Some(Defect {
                seq: head,
                reason: "its hash is not the one that the session ends with".to_owned(),
            });
        }
        Ok(Report {
            session: session.clone(),
            sound: walk.at.0,
            defect,
            saved: None,
        })
    }

    fn walk_singly(&self, session: &SessionId, walk: &mut Walk) -> Option<Defect> {
        for _ in 0..PAGE {
            let seq = Seq(walk.at.0 + 1);
            let defect = match self.read(session, seq, 1) {
                Ok(page) => walk.page(&page),
                Err(StoreError::Damaged { reason, .. }) => Some(Defect { seq, reason }),
                Err(error) => Some(Defect {
                    seq,
                    reason: error.to_string(),
                }),
            };
            if defect.is_some() {
                return defect;
            }
        }
        None
    }

    /// Checks a session and cuts off everything from its first damaged record on.
    ///
    /// What is cut off is saved as text beside the journal first, as far as it can be read.
    ///
    /// # Errors
    /// As [`Store::check`]; also when the session is in use, or the damage lies in records that it
    /// shares with the session it is a fork of.
    pub fn repair(&self, session: &SessionId) -> Result<Report, StoreError> {
        let _lock = lock::lock(&self.locks_dir(), session)?;
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

/// How far the chain was followed.
#[derive(Default)]
struct Walk {
    at: Seq,
    hash: ChainHash,
    finished: HashSet<String>,
}

impl Walk {
    fn missing(&self) -> Defect {
        Defect {
            seq: Seq(self.at.0 + 1),
            reason: "it is not there".to_owned(),
        }
    }

    fn page(&mut self, page: &[Entry]) -> Option<Defect> {
        if page.is_empty() {
            return Some(self.missing());
        }
        page.iter().find_map(|entry| self.entry(entry))
    }

    fn entry(&mut self, entry: &Entry) -> Option<Defect> {
        let defect = |reason: String| {
            let seq = entry.seq;
            Some(Defect { seq, reason })
        };
        if entry.seq != Seq(self.at.0 + 1) {
            return Some(self.missing());
        }
        if entry.chained(self.hash) != entry.hash {
            return defect("its hash does not fit: it or one before it was changed".to_owned());
        }
        match entry.body() {
            Err(error) => return defect(format!("its body cannot be read: {error}")),
            Ok(Body::Known(body)) => {
                if let RecordBody::ToolFinished { call_id, .. } = *body
                    && !self.finished.insert(format!("{}/{call_id}", entry.turn))
                {
                    return defect(format!("call `{call_id}` ended before"));
                }
            }
            Ok(Body::Unknown { .. }) => {}
        }
        (self.at, self.hash) = (entry.seq, entry.hash);
        None
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
    let kept = read::up_to(&transaction, session, &segments, keep)?;
    set_tally(&transaction, row.id, Tally::of(&kept))?;
    transaction.commit()?;
    Ok(())
}
