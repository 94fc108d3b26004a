use crate::error::StoreError;
use crate::sessions::SessionInfo;
use crate::store::Store;
use crate::writer::to_u64;
use rondo_types::TimeMs;
use std::collections::HashMap;

/// What may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Sessions that were last written before this.
    pub before: Option<TimeMs>,
    /// The oldest sessions, until the bodies of all records are no more than this.
    pub keep_bytes: Option<u64>,
}

impl Store {
    /// Returns the sessions that may go, the oldest first.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn surplus(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        let bytes = self.bytes_by_session()?;
        let of = |info: &SessionInfo| bytes.get(info.id.as_str()).copied().unwrap_or_default();
        let (mut kept, mut surplus) = (0_u64, Vec::new());
        for info in self.sessions(usize::MAX)? {
            kept = kept.saturating_add(of(&info));
            let is_old = retention.before.is_some_and(|before| info.updated < before);
            let is_much = retention.keep_bytes.is_some_and(|bytes| kept > bytes);
            if is_old || is_much {
                surplus.push(info);
            }
        }
        surplus.reverse();
        Ok(surplus)
    }

    fn bytes_by_session(&self) -> Result<HashMap<String, u64>, StoreError> {
        let connection = self.reader();
        let mut statement = connection.prepare_cached(
            "SELECT s.name, SUM(LENGTH(COALESCE(r.body, b.body, '')))
             FROM records r JOIN sessions s ON s.id = r.session
             LEFT JOIN blobs b ON b.sha256 = r.blob GROUP BY s.id",
        )?;
        let sums = statement.query_map([], |row| Ok((row.get(0)?, to_u64(row.get(1)?))))?;
        Ok(sums.collect::<Result<_, _>>()?)
    }

    /// Gives the room of what was removed back to the disk.
    ///
    /// # Errors
    /// When the disk fails, or has no room for a second copy meanwhile.
    pub fn vacuum(&self) -> Result<(), StoreError> {
        self.writer().run(|connection| {
            connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
            Ok(())
        })
    }
}
