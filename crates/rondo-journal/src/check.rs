//! The check of a session's chain.

use crate::error::JournalError;
use crate::read;
use crate::store::Store;
use rondo_core::ports::{Record, Seq};
use rondo_core::session_store::StoreError;
use rondo_core::storage::walk::Walk;
use rondo_core::storage::{Defect, Report};
use rondo_types::SessionId;

impl Store {
    /// Hands over the records of a session to continue with it, each checked as
    /// [`Store::check`] does. Records that a later version wrote and this one does not know are left out.
    /// About a megabyte of them is held at a time.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the disk fails; also whatever `take`
    /// fails with. The records handed over before are sound.
    pub fn records<E: From<JournalError>>(
        &self,
        session: &SessionId,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut walk = Walk::default();
        self.each(session, Seq(1), |entry| match walk.take(&entry) {
            Ok(body) => entry.with_body(body).map_or(Ok(()), &mut take),
            Err(defect) => Err(JournalError::damaged(session, defect).into()),
        })
    }

    /// Reads all records of a session, as [`Store::records`] hands them over.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged, or the disk fails.
    pub fn load(&self, session: &SessionId) -> Result<Vec<Record>, JournalError> {
        let mut records = Vec::new();
        self.records(session, |record| {
            records.push(record);
            Ok::<_, JournalError>(())
        })?;
        Ok(records)
    }

    /// Checks every record of a session: its place, its hash, its body. One is held at a time.
    ///
    /// # Errors
    /// When there is no such session or the disk fails. Damage is not an error here.
    pub fn check(&self, session: &SessionId) -> Result<Report, JournalError> {
        let (head, head_hash) = {
            let row = read::find(&self.reader(), session)?;
            (row.head, row.head_hash)
        };
        let mut walk = Walk::default();
        let walked = self.each(session, Seq(1), |entry| match walk.take(&entry) {
            Ok(_) => Ok(()),
            Err(defect) => Err(JournalError::damaged(session, defect)),
        });
        let defect = match walked {
            Ok(()) if walk.at == head && walk.hash != head_hash => Some(Defect {
                seq: head,
                reason: "its hash is not the one that the session ends with".to_owned(),
            }),
            Ok(()) => None,
            Err(JournalError::Store(StoreError::Damaged { seq, reason, .. })) => {
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
