//! The check of a session's chain.

use crate::error::StoreError;
use crate::read;
use crate::store::Store;
use crate::walk::Walk;
use rondo_core::ports::{Record, Seq};
use rondo_types::SessionId;
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
    /// How many records a repair restored: those in which one bit was changed.
    pub mended: u32,
    /// What a repair cut off from the first damaged record on, in this session and in its forks.
    pub cut: Vec<Cut>,
}

/// Records that a repair cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The session that lost them: the one that was repaired, or a fork of it.
    pub session: SessionId,
    /// Where they were put; `None` if there were none or the journal is in memory.
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
            mended: 0,
            cut: Vec::new(),
        })
    }
}
