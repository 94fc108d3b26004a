//! Which sessions may be removed.

use crate::commit_thread::to_u64;
use crate::error::JournalError;
use crate::store::Store;
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Retention;
use rondo_types::SessionId;
use rusqlite::Connection;
use std::collections::HashMap;

/// Free pages that one transaction gives back at first; each may take three in the log.
const PAGES_MIN: u32 = 16;
/// Free pages that one transaction gives back at most.
const PAGES_MAX: u32 = 4096;

impl Store {
    /// Returns the sessions that may go, the oldest first.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn surplus(&self, retention: &Retention) -> Result<Vec<SessionInfo>, JournalError> {
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

    fn bytes_by_session(&self) -> Result<HashMap<String, u64>, JournalError> {
        let connection = self.reader();
        let mut statement = connection.prepare_cached(
            "SELECT s.name, SUM(LENGTH(COALESCE(r.body, b.body, '')))
             FROM records r JOIN sessions s ON s.id = r.session
             LEFT JOIN blobs b ON b.sha256 = r.blob GROUP BY s.id",
        )?;
        let sums = statement.query_map([], |row| Ok((row.get(0)?, to_u64(row.get(1)?))))?;
        let own = sums.collect::<Result<HashMap<String, u64>, _>>()?;
        // Sessions that calls started go with the session that they belong to.
        let mut with_children: HashMap<String, u64> = HashMap::new();
        for (name, bytes) in &own {
            let mut root = SessionId::new(name.as_str());
            while let Some(parent) = root.parent().filter(|it| own.contains_key(it.as_str())) {
                root = parent;
            }
            let sum = with_children.entry(root.to_string()).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        Ok(with_children)
    }

    /// Gives the room of what was removed back to the disk, and returns whether it could: on a full disk
    /// what is left stays in the file, free for what comes.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn vacuum(&self) -> Result<bool, JournalError> {
        let shrunk = self.writer().run(|connection| shrink(connection));
        self.make_reserve();
        match shrunk {
            Err(error) if error.is_full() => Ok(false),
            shrunk => shrunk.map(|()| true),
        }
    }
}

/// Copies the log into the file and makes it empty.
pub(crate) fn empty_log(connection: &Connection) -> Result<(), JournalError> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Makes the file smaller, a few pages at a time: each transaction makes room for the next one.
fn shrink(connection: &Connection) -> Result<(), JournalError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    empty_log(connection)?;
    if number("auto_vacuum")? == 0 {
        // A journal of an earlier version: it is written again as a whole, once.
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")?;
        return empty_log(connection);
    }
    let (mut pages, mut free) = (PAGES_MIN, number("freelist_count")?);
    while free > 0 {
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        empty_log(connection)?;
        let left = number("freelist_count")?;
        if left >= free {
            break;
        }
        (pages, free) = (pages.saturating_mul(2).min(PAGES_MAX), left);
    }
    Ok(())
}
