//! A session's history without reading all of it: from the newest snapshot on.
//!
//! A snapshot is what the records before it lead to. It can always be thrown away: one of another
//! version, or of records that are not there any more, is not looked at.

use crate::commit_thread::{to_i64, to_u64};
use crate::error::JournalError;
use crate::read::{find, hash_at, lineage};
use crate::store::Store;
use rondo_core::history::History;
use rondo_core::ports::{ChainHash, Entry, Seq};
use rondo_core::storage::walk::{EndedCalls, Walk};
use rondo_types::SessionId;
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

/// The version of the snapshots that this program writes and reads; it changes whenever [`History`]
/// or [`EndedCalls`] does.
const SNAPSHOT_VERSION: u32 = 6;
/// Records behind the newest snapshot at which another is made.
const SNAPSHOT_AFTER: u64 = 1000;

/// How far a session was followed.
#[derive(Default)]
struct FollowedHistory {
    history: History,
    walk: Walk,
}

/// Stored part of that, besides its place and hash.
#[derive(Serialize, Deserialize)]
struct Snapshot<H, E> {
    history: H,
    ends: E,
}

impl Store {
    /// Follows a session's records to its transcript, one at a time, from its snapshot if it has
    /// one. Each record behind that is checked against the one before it.
    ///
    /// Makes a snapshot if the last one is a thousand records old.
    ///
    /// # Errors
    /// When there is no such session, a record is damaged or missing, or the disk fails.
    pub fn history(&self, session: &SessionId) -> Result<History, JournalError> {
        let mut followed = self.snapshot(session)?.unwrap_or_default();
        let begun_at = followed.walk.at;
        self.each(session, Seq(begun_at.0 + 1), |entry| {
            followed.take(session, entry)
        })?;
        if followed.walk.at.0 - begun_at.0 >= SNAPSHOT_AFTER {
            // If it cannot be kept, the next one reads more; what is wrong shows at an append.
            let _ = self.save_snapshot(session, &followed);
        }
        Ok(followed.history)
    }

    fn snapshot(&self, session: &SessionId) -> Result<Option<FollowedHistory>, JournalError> {
        let connection = self.reader();
        let row = find(&connection, session)?;
        let Some((at, hash, body)) = stored(&connection, row.id)? else {
            return Ok(None);
        };
        let segments = lineage(&connection, &row)?;
        if at > row.head || hash_at(&connection, &segments, at)? != Some(hash) {
            return Ok(None);
        }
        let kept = serde_json::from_str::<Snapshot<History, EndedCalls>>(&body).ok();
        Ok(kept.map(|Snapshot { history, ends }| FollowedHistory {
            history,
            walk: Walk { at, hash, ends },
        }))
    }

    fn save_snapshot(
        &self,
        session: &SessionId,
        followed: &FollowedHistory,
    ) -> Result<(), JournalError> {
        let FollowedHistory { history, walk } = followed;
        let ends = &walk.ends;
        let Ok(body) = serde_json::to_string(&Snapshot { history, ends }) else {
            return Ok(());
        };
        let (name, at, hash) = (session.clone(), walk.at, walk.hash);
        self.writer().run(move |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO snapshots (session, version, seq, hash, body)
                 SELECT id, ?2, ?3, ?4, ?5 FROM sessions WHERE name = ?1",
                (name.as_str(), SNAPSHOT_VERSION, to_i64(at.0), hash.0, body),
            )?;
            Ok(())
        })
    }
}

impl FollowedHistory {
    fn take(&mut self, session: &SessionId, entry: Entry) -> Result<(), JournalError> {
        let body = self
            .walk
            .take(&entry)
            .map_err(|defect| JournalError::damaged(session, defect))?;
        match entry.with_body(body) {
            Some(record) => self.history.take(&record),
            None => self.history.skip(),
        }
        Ok(())
    }
}

type SnapshotRow = (Seq, ChainHash, String);

fn stored(connection: &Connection, session: i64) -> Result<Option<SnapshotRow>, JournalError> {
    Ok(connection
        .prepare_cached(
            "SELECT seq, hash, body FROM snapshots WHERE session = ?1 AND version = ?2",
        )?
        .query_row((session, SNAPSHOT_VERSION), |row| {
            let seq = Seq(to_u64(row.get(0)?));
            Ok((seq, ChainHash(row.get(1)?), row.get(2)?))
        })
        .optional()?)
}
