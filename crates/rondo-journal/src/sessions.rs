//! Finds and lists sessions.

use crate::blob;
use crate::commit_thread::{to_i64, to_u64};
use crate::error::JournalError;
use crate::read::{self, SessionRow};
use crate::retention::empty_log;
use crate::store::Store;
use rondo_core::clock::Clock;
use rondo_core::ports::{Entry, RecordBody, Seq};
use rondo_core::session_store::{self, LateTurn, SessionInfo, SessionState, StoreError};
use rondo_types::{SessionId, StopReason, TimeMs};
use rusqlite::{Connection, Params, Row, TransactionBehavior};
use std::ops::ControlFlow;

/// The name that stands for the session that was written last.
const LATEST: &str = "latest";
/// Sessions that an error names.
const CANDIDATES_MAX: usize = 5;
/// How many records are read at a time, from the last one back, to find how a turn ended.
const LOOKED_AT: [u64; 4] = [1, 8, 64, 512];

const INFO: &str =
    "SELECT s.name, s.created_ms, s.updated_ms, s.head_seq, p.name, s.fork_seq, s.title,
            s.directory, s.turns, s.open, s.imported, s.lost_after IS s.head_seq
     FROM sessions s LEFT JOIN sessions p ON p.id = s.parent
     WHERE NOT (s.epoch = 0 AND s.head_seq = 0)";

/// Part of a session's name before its last dot, if only characters of a call's id follow it.
macro_rules! before_last_dot {
    () => {
        "substr(s.name, 1, length(rtrim(s.name, '-0123456789abcdefghijklmnopqrstuvwxyz')) - 1)"
    };
}
const BEFORE_LAST_DOT: &str = before_last_dot!();

/// Holds for a session that a call of another one started, which its id says ([`SessionId::child`]). It is listed with
/// that one alone. A session that is only named like that, and has no parent, is one like others.
const IS_CHILD: &str = concat!(
    "(s.name GLOB '*.r????????*' AND EXISTS (SELECT 1 FROM sessions o WHERE o.name = ",
    before_last_dot!(),
    " AND substr(s.name, length(o.name) + 2) GLOB 'r????????*'))"
);

/// How far ahead of the clock a session may have been written to count as just written: one from the
/// future would be the latest forever.
const AHEAD_MAX_MS: u64 = 60_000;

impl Store {
    /// Lists sessions, the one that was written last first, at most `limit`, without those that calls of others started.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sessions(&self, limit: usize) -> Result<Vec<SessionInfo>, JournalError> {
        self.infos(
            &format!(
                "AND NOT {IS_CHILD}
                 ORDER BY s.updated_ms > ?2, s.updated_ms DESC, s.id DESC LIMIT ?1"
            ),
            (i64::try_from(limit).unwrap_or(i64::MAX), soon()),
        )
    }

    /// Lists sessions whose last turn has no end and is not parked, and that no process works on, without those that calls
    /// of others started.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn cut_off(&self) -> Result<Vec<SessionInfo>, JournalError> {
        let open = self.infos(
            &format!("AND s.open = 1 AND NOT {IS_CHILD} ORDER BY s.id"),
            (),
        )?;
        let is_cut_off = |it: &SessionInfo| it.state == SessionState::CutOff;
        Ok(open.into_iter().filter(is_cut_off).collect())
    }

    /// Lists the sessions that calls of a session started, in the order of the calls, at most `limit`.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn children(
        &self,
        parent: &SessionId,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.infos(
            "AND s.name > ?1 || '.r' AND s.name < ?1 || '.s' AND length(s.name) >= length(?1) + 10
             AND instr(substr(s.name, length(?1) + 2), '.') = 0
             ORDER BY s.name LIMIT ?2",
            (parent.as_str(), limit),
        )
    }

    /// Returns the session that was written last of those that work in a directory. One that was
    /// imported is never meant by that.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn latest_in(&self, directory: &str) -> Result<Option<SessionInfo>, JournalError> {
        let newest = format!(
            "AND s.imported = 0 AND s.directory = ?1 AND NOT {IS_CHILD}
             ORDER BY s.updated_ms > ?2, s.updated_ms DESC, s.id DESC LIMIT 1"
        );
        Ok(self.infos(&newest, (directory, soon()))?.pop())
    }

    fn infos(&self, rest: &str, key: impl Params) -> Result<Vec<SessionInfo>, JournalError> {
        let connection = self.reader();
        let mut statement = connection.prepare_cached(&format!("{INFO} {rest}"))?;
        let found = statement.query_map(key, info)?;
        let mut infos = found.collect::<Result<Vec<_>, _>>()?;
        for info in &mut infos {
            if info.state != SessionState::CutOff {
                continue;
            }
            if self.is_held(&info.id) {
                info.state = SessionState::Running;
            } else if is_parked(&connection, &info.id).unwrap_or_default() {
                // One whose records cannot be read is listed all the same.
                info.state = SessionState::Parked;
            }
        }
        Ok(infos)
    }

    /// Returns the description of one session.
    ///
    /// # Errors
    /// When there is no such session, or the disk fails.
    pub fn session(&self, session: &SessionId) -> Result<SessionInfo, JournalError> {
        let mut found = self.infos("AND s.name = ?1", [session.as_str()])?;
        found.pop().ok_or_else(|| {
            JournalError::Store(StoreError::Unknown {
                session: session.to_string(),
            })
        })
    }

    /// Returns the place of the session's last record; `None` if there is no such session.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn last_record(&self, session: &SessionId) -> Result<Option<Seq>, JournalError> {
        let found = read::head(&self.reader(), session)?;
        Ok(found.map(|(head, _)| head.seq))
    }

    /// Returns how the session's last turn ended; `None` if it has not, or where more came after its
    /// end than is looked through.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the disk fails.
    pub fn last_end(&self, session: &SessionId) -> Result<Option<StopReason>, JournalError> {
        let end = latest(&self.reader(), session, |entry| {
            match entry.kind().as_str() {
                "final" => entry.into_record().map(|record| ended(&record.body)),
                "turn_started" => Some(None),
                _ => None,
            }
        });
        Ok(end?.flatten())
    }

    /// Returns the beginning of one of the latest turns: the first one that the session's last records, about so many,
    /// hold as a whole, with no compaction in or after it. `None` if there is none.
    ///
    /// # Errors
    /// When there is no such session, a record cannot be read, or the disk fails.
    pub fn late_turn(
        &self,
        session: &SessionId,
        records: u64,
    ) -> Result<Option<LateTurn>, JournalError> {
        let connection = self.reader();
        let row = read::find(&connection, session)?;
        let mut records = records.max(1);
        loop {
            let from = row.head.0.saturating_sub(records - 1).max(1);
            if from == 1 {
                return Ok(None);
            }
            let found = first_turn_from(&connection, &row, Seq(from))?;
            if found.is_some() {
                return Ok(found);
            }
            records = records.saturating_mul(4);
        }
    }

    /// Returns whether a process works on a session right now, also if the session was just begun.
    #[must_use]
    pub fn is_in_use(&self, session: &SessionId) -> bool {
        self.is_held(session)
    }

    /// Finds a session by its id, by a prefix that fits only one, or by `latest`, which never is one
    /// that was imported.
    ///
    /// # Errors
    /// When none fits, when several do, or when the disk fails.
    pub fn resolve(&self, text: &str) -> Result<SessionId, JournalError> {
        let unknown = || {
            JournalError::Store(StoreError::Unknown {
                session: text.to_owned(),
            })
        };
        if text == LATEST {
            let newest = format!(
                "AND s.imported = 0 AND NOT {IS_CHILD}
                 ORDER BY s.updated_ms > ?1, s.updated_ms DESC, s.id DESC LIMIT 1"
            );
            let latest = self.infos(&newest, [soon()])?.pop();
            return latest.map(|it| it.id).ok_or_else(unknown);
        }
        let mut names = self.beginning_with(text)?;
        if names.iter().any(|name| name == text) {
            return Ok(SessionId::new(text));
        }
        match (names.pop(), names.is_empty()) {
            (Some(only), true) if !text.is_empty() => Ok(SessionId::new(only)),
            (Some(last), _) => {
                names.push(last);
                Err(JournalError::Store(StoreError::Ambiguous {
                    prefix: text.to_owned(),
                    candidates: names,
                }))
            }
            (None, _) => Err(unknown()),
        }
    }

    /// The exact name sorts before all that it is a prefix of, so it is among the first. A session that a call of
    /// another one started is meant only by a prefix that goes beyond the other's name.
    fn beginning_with(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        let connection = self.reader();
        let mut statement = connection.prepare_cached(&format!(
            "SELECT name FROM sessions s WHERE substr(name, 1, length(?1)) = ?1
             AND NOT (epoch = 0 AND head_seq = 0)
             AND NOT ({IS_CHILD}
                      AND length(?1) <= length({BEFORE_LAST_DOT}))
             ORDER BY name LIMIT ?2"
        ))?;
        let limit = i64::try_from(CANDIDATES_MAX).unwrap_or(i64::MAX);
        let names = statement.query_map((prefix, limit), |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Sets the title of a session; the beginning of a long text is kept.
    ///
    /// # Errors
    /// When there is no such session, or the disk fails.
    pub fn set_title(&self, session: &SessionId, title: &str) -> Result<(), JournalError> {
        let session = session.clone();
        let title = session_store::title(title);
        self.writer().run(move |connection| {
            let sql = "UPDATE sessions SET title = ?2 WHERE name = ?1";
            known(
                connection.execute(sql, (session.as_str(), title))?,
                &session,
            )
        })
    }

    /// Says in which directory a session works.
    ///
    /// # Errors
    /// When there is no such session, or the disk fails.
    pub fn set_directory(&self, session: &SessionId, directory: &str) -> Result<(), JournalError> {
        let (session, directory) = (session.clone(), directory.to_owned());
        self.writer().run(move |connection| {
            let sql = "UPDATE sessions SET directory = ?2 WHERE name = ?1";
            known(
                connection.execute(sql, (session.as_str(), directory))?,
                &session,
            )
        })
    }

    /// Removes a session and what only it holds, the sessions that its calls started included.
    ///
    /// # Errors
    /// When there is no such session, a process works on it, forks of it are there, or the disk
    /// fails.
    pub fn remove(&self, session: &SessionId) -> Result<(), JournalError> {
        self.session(session)?;
        for child in self.children(session, usize::MAX)? {
            self.remove(&child.id)?;
        }
        let _lock = self.lock(session)?;
        match self.remove_rows(session) {
            Err(error) if error.is_full() => {
                self.release_reserve();
                self.writer().run(|connection| empty_log(connection))?;
                self.remove_rows(session)?;
            }
            removed => removed?,
        }
        self.forget_lock(session);
        Ok(())
    }

    fn remove_rows(&self, session: &SessionId) -> Result<(), JournalError> {
        let name = session.clone();
        self.writer()
            .run(move |connection| remove(connection, &name))
    }

    /// Removes sessions that were last written before `before`, except those in use and those that
    /// have younger forks; returns which.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn prune(&self, before: TimeMs) -> Result<Vec<SessionId>, JournalError> {
        let mut removed = Vec::new();
        loop {
            let old = self.written_before(before)?;
            let count = removed.len();
            for session in old {
                match self.remove(&session) {
                    Ok(()) => removed.push(session),
                    // It may have gone with its parent.
                    Err(
                        JournalError::Store(StoreError::InUse { .. })
                        | JournalError::Store(StoreError::HasForks { .. })
                        | JournalError::Store(StoreError::Unknown { .. }),
                    ) => {}
                    Err(error) => return Err(error),
                }
            }
            // A parent can go once its forks are gone.
            if removed.len() == count {
                return Ok(removed);
            }
        }
    }

    fn written_before(&self, before: TimeMs) -> Result<Vec<SessionId>, JournalError> {
        let connection = self.reader();
        let mut statement = connection
            .prepare_cached("SELECT name FROM sessions WHERE updated_ms < ?1 ORDER BY id DESC")?;
        let names = statement.query_map([to_i64(before.0)], |row| row.get::<_, String>(0))?;
        Ok(names
            .map(|name| name.map(SessionId::new))
            .collect::<Result<_, _>>()?)
    }
}

/// Fails if no row was changed: there is no such session.
fn known(changed: usize, session: &SessionId) -> Result<(), JournalError> {
    match changed {
        0 => Err(JournalError::Store(StoreError::Unknown {
            session: session.to_string(),
        })),
        _ => Ok(()),
    }
}

/// Returns whether the session's last turn waits for answers.
fn is_parked(connection: &Connection, session: &SessionId) -> Result<bool, JournalError> {
    let parked = latest(connection, session, |entry| {
        let is_of_turn = !entry.turn.as_str().is_empty();
        is_of_turn.then(|| entry.kind() == "parked")
    });
    Ok(parked?.unwrap_or_default())
}

/// Returns the value made from the latest record that gives one, among those that are looked through.
fn latest<T>(
    connection: &Connection,
    session: &SessionId,
    pick: impl Fn(Entry) -> Option<T>,
) -> Result<Option<T>, JournalError> {
    let row = read::find(connection, session)?;
    let mut last = row.head.0;
    // It is mostly the last record; what a person ran at the prompt may follow it.
    for window in LOOKED_AT {
        if last == 0 {
            break;
        }
        let first = last.saturating_sub(window - 1).max(1);
        let mut picked = None;
        let mut take = |entry: Entry| {
            picked = pick(entry).or(picked.take());
            ControlFlow::Continue(())
        };
        read::read_range(connection, &row, (Seq(first), Seq(last)), &mut take)?;
        if picked.is_some() {
            return Ok(picked);
        }
        last = first - 1;
    }
    Ok(None)
}

/// Returns the beginning of the first turn that has all its records from `from` on, with no compaction in or after
/// it.
fn first_turn_from(
    connection: &Connection,
    row: &SessionRow,
    from: Seq,
) -> Result<Option<LateTurn>, JournalError> {
    let (mut found, mut turn) = (None, None);
    let mut take = |entry: Entry| {
        if entry.turn.as_str().is_empty() {
            return ControlFlow::Continue(());
        }
        if entry.kind() == "compacted" {
            found = None;
        }
        let is_next = turn.as_ref().is_some_and(|it| *it != entry.turn);
        turn = Some(entry.turn.clone());
        if is_next && found.is_none() {
            found = late_turn(entry);
        }
        ControlFlow::Continue(())
    };
    read::read_range(connection, row, (from, row.head), &mut take)?;
    Ok(found)
}

/// Returns the turn that a record begins; `None` if it does not, or if its number was not recorded.
fn late_turn(entry: Entry) -> Option<LateTurn> {
    let first = entry.seq;
    match entry.into_record()?.body {
        RecordBody::TurnStarted { turn_number, .. } if turn_number > 1 => Some(LateTurn {
            number: turn_number,
            first,
        }),
        _ => None,
    }
}

fn ended(body: &RecordBody) -> Option<StopReason> {
    match body {
        RecordBody::Final { stop_reason, .. } => Some(*stop_reason),
        _ => None,
    }
}

fn info(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let parent: Option<String> = row.get(4)?;
    let fork = Seq(to_u64(row.get(5)?));
    Ok(SessionInfo {
        id: SessionId::new(row.get::<_, String>(0)?),
        created: TimeMs(to_u64(row.get(1)?)),
        updated: TimeMs(to_u64(row.get(2)?)),
        head: Seq(to_u64(row.get(3)?)),
        parent: parent.map(|name| (SessionId::new(name), fork)),
        title: row.get(6)?,
        directory: row.get(7)?,
        turns: row.get(8)?,
        // Whether a process works on it, its lock says.
        state: if row.get(9)? {
            SessionState::CutOff
        } else {
            SessionState::Done
        },
        imported: row.get::<_, Option<bool>>(10)?.unwrap_or_default(),
        lost_end: row.get(11)?,
    })
}

/// The last instant that counts as now.
pub(crate) fn soon() -> i64 {
    to_i64(Clock::system().now().0.saturating_add(AHEAD_MAX_MS))
}

fn remove(connection: &mut Connection, session: &SessionId) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let row = read::find(&transaction, session)?;
    let children = children(&transaction, row.id)?;
    if !children.is_empty() {
        return Err(JournalError::Store(StoreError::HasForks {
            session: session.clone(),
            children,
        }));
    }
    transaction.execute("DELETE FROM records WHERE session = ?1", [row.id])?;
    transaction.execute("DELETE FROM snapshots WHERE session = ?1", [row.id])?;
    transaction.execute("DELETE FROM sessions WHERE id = ?1", [row.id])?;
    blob::remove_unused(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn children(connection: &Connection, parent: i64) -> Result<Vec<String>, JournalError> {
    let mut statement = connection
        .prepare_cached("SELECT name FROM sessions WHERE parent = ?1 ORDER BY id LIMIT ?2")?;
    let limit = i64::try_from(CANDIDATES_MAX).unwrap_or(i64::MAX);
    let names = statement.query_map((parent, limit), |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}
