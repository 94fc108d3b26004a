//! Use of budgets that turns of any process share, in the journal's own file.
//!
//! The possible cost of a request is reserved before it is sent, in the transaction that checks whether it fits, so
//! that two processes cannot both take the last of it. The actual use replaces it afterwards. A process that dies in
//! between leaves it reserved, and settles it when its session continues; if it leaves no session, the next request of
//! any process gives it back. The lock of the session shows that it is still at work, also if its records are in
//! memory.

use crate::commit_thread::{to_i64, to_u64};
use crate::error::JournalError;
use crate::read;
use crate::store::Store;
use rondo_core::ports::{Amount, BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope};
use rondo_types::{NanoUsd, SessionId};
use rusqlite::{Connection, OptionalExtension as _};
use std::io;
use tokio::task::spawn_blocking;

/// The tables, if they are missing. A day is counted since 1970, 0 for what no day bounds.
pub(crate) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS budget_held (
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    root TEXT NOT NULL,
    project TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS budget_used (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (scope, key, day)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS budget_of_removed AFTER DELETE ON sessions
BEGIN DELETE FROM budget_used WHERE scope = 'session' AND key = OLD.name; END;
";

/// Days of which it is remembered what was used.
const DAYS_KEPT: i64 = 400;

/// Returns the scope's word in `budget_used`.
fn name(scope: BudgetScope) -> &'static str {
    match scope {
        BudgetScope::Session => "session",
        BudgetScope::Day => "day",
        BudgetScope::ProjectDay => "project",
    }
}

/// Returns the key and the day under which a place counts in a scope.
fn key(scope: BudgetScope, place: &BudgetPlace) -> (&str, i64) {
    let day = i64::from(place.day);
    match scope {
        BudgetScope::Session => (place.root.as_str(), 0),
        BudgetScope::Day => ("", day),
        BudgetScope::ProjectDay => (&place.project, day),
    }
}

/// Returns the condition for the rows of `budget_held` that count in a scope, by the key and the day.
fn condition(scope: BudgetScope) -> &'static str {
    match scope {
        BudgetScope::Session => "root = ?1 AND ?2 = 0",
        BudgetScope::Day => "?1 = '' AND day = ?2",
        BudgetScope::ProjectDay => "project = ?1 AND day = ?2",
    }
}

impl Store {
    /// Holds back what a request is likely to use, if it fits all limits; otherwise returns the first that it does
    /// not fit. The same claim again holds back nothing more.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be held back.
    pub async fn hold_back(
        &self,
        claim: BudgetClaim,
        limits: Vec<BudgetLimit>,
    ) -> io::Result<Option<BudgetLimit>> {
        let (store, session) = (self.clone(), claim.session.clone());
        let abandoned = spawn_blocking(move || store.abandoned(&session)).await;
        let abandoned = abandoned.map_err(io::Error::other)?;
        let abandoned = abandoned.map_err(io::Error::other)?;
        let held = self.writer().write(1, None, move |connection| {
            for session in &abandoned {
                release(connection, session)?;
            }
            hold(connection, &claim, &limits)
        });
        held.await.map_err(|it| it.failure.into())
    }

    /// Puts what a request has used in the place of what was held back for it. One that is not held back any more
    /// changes nothing.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be settled.
    pub async fn settle_held(&self, session: &SessionId, id: &str, used: Amount) -> io::Result<()> {
        let locked = session.clone();
        let (session, id) = (session.clone(), id.to_owned());
        let settled = self.writer().write(1, None, move |connection| {
            settle(connection, &session, &id, used)
        });
        settled.await.map_err(|it| io::Error::from(it.failure))?;
        self.unlock_for_budget(&locked);
        Ok(())
    }

    /// Returns whether it is known what was used in a scope before anything was held back there.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn is_counted(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
    ) -> Result<bool, JournalError> {
        let store = self.clone();
        let read = spawn_blocking(move || is_counted(&store.reader(), scope, &place));
        read.await.map_err(|_| JournalError::Closed)?
    }

    /// Counts what was used in a scope before anything was held back there; nothing if it is counted already.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not be counted.
    pub async fn count_before(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
        used: Amount,
    ) -> io::Result<()> {
        let counted = self.writer().write(1, None, move |connection| {
            let (key, day) = key(scope, &place);
            let (tokens, cost) = (to_i64(used.tokens), to_i64(cost_of(used)));
            connection
                .prepare_cached(
                    "INSERT INTO budget_used (scope, key, day, tokens, cost)
                     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (scope, key, day) DO NOTHING",
                )?
                .execute((name(scope), key, day, tokens, cost))?;
            Ok(())
        });
        counted.await.map_err(|it| it.failure.into())
    }

    /// Returns the amount that is used or held back in a scope.
    ///
    /// # Errors
    /// When the disk fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn committed(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
    ) -> Result<Amount, JournalError> {
        let store = self.clone();
        let read = spawn_blocking(move || committed(&store.reader(), scope, &place));
        read.await.map_err(|_| JournalError::Closed)?
    }
}

impl Store {
    /// Lists the sessions of which something is held back, that are not there and that no process works on.
    fn abandoned(&self, own: &SessionId) -> Result<Vec<SessionId>, JournalError> {
        if !read::exists(&self.reader(), own)? {
            self.lock_for_budget(own);
        }
        let names: Vec<String> = {
            let connection = self.reader();
            let mut statement = connection.prepare_cached(
                "SELECT DISTINCT session FROM budget_held WHERE session <> ?1
                 AND session NOT IN (SELECT name FROM sessions)",
            )?;
            let names = statement.query_map([own.as_str()], |row| row.get(0))?;
            names.collect::<Result<_, _>>()?
        };
        let sessions = names.into_iter().map(SessionId::new);
        Ok(sessions.filter(|it| !self.is_held(it)).collect())
    }
}

/// Gives back what is held back for a session that never came to be.
fn release(connection: &Connection, session: &SessionId) -> Result<(), JournalError> {
    connection
        .prepare_cached(
            "DELETE FROM budget_held WHERE session = ?1
             AND session NOT IN (SELECT name FROM sessions)",
        )?
        .execute([session.as_str()])?;
    Ok(())
}

fn is_counted(
    connection: &Connection,
    scope: BudgetScope,
    place: &BudgetPlace,
) -> Result<bool, JournalError> {
    let (key, day) = key(scope, place);
    let known = "SELECT 1 FROM budget_used WHERE scope = ?1 AND key = ?2 AND day = ?3";
    let mut known = connection.prepare_cached(known)?;
    Ok(known.exists((name(scope), key, day))?)
}

fn hold(
    connection: &Connection,
    claim: &BudgetClaim,
    limits: &[BudgetLimit],
) -> Result<Option<BudgetLimit>, JournalError> {
    let known = "SELECT 1 FROM budget_held WHERE session = ?1 AND id = ?2";
    let is_held = connection
        .prepare_cached(known)?
        .exists((claim.session.as_str(), &claim.id))?;
    if is_held {
        return Ok(None);
    }
    for limit in limits.iter().filter(|_| !claim.beyond) {
        let before = committed(connection, limit.scope, &claim.place)?;
        let tokens = before.tokens.saturating_add(claim.estimate.tokens);
        let cost = cost_of(before).saturating_add(cost_of(claim.estimate));
        let is_much = limit.tokens.is_some_and(|max| tokens > max)
            || limit.cost.is_some_and(|max| cost > max.0);
        if is_much {
            return Ok(Some(*limit));
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO budget_held (session, id, root, project, day, tokens, cost)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            claim.session.as_str(),
            &claim.id,
            claim.place.root.as_str(),
            &claim.place.project,
            claim.place.day,
            to_i64(claim.estimate.tokens),
            to_i64(cost_of(claim.estimate)),
        ))?;
    Ok(None)
}

fn settle(
    connection: &Connection,
    session: &SessionId,
    id: &str,
    used: Amount,
) -> Result<(), JournalError> {
    let held =
        "DELETE FROM budget_held WHERE session = ?1 AND id = ?2 RETURNING root, project, day";
    let place = connection
        .prepare_cached(held)?
        .query_row((session.as_str(), id), |row| {
            Ok(BudgetPlace {
                root: SessionId::new(row.get::<_, String>(0)?),
                project: row.get(1)?,
                day: row.get(2)?,
            })
        })
        .optional()?;
    let Some(place) = place else {
        return Ok(());
    };
    let (tokens, cost) = (to_i64(used.tokens), to_i64(cost_of(used)));
    if (tokens, cost) != (0, 0) {
        for scope in BudgetScope::ALL {
            let (key, day) = key(scope, &place);
            connection
                .prepare_cached(
                    "INSERT INTO budget_used (scope, key, day, tokens, cost)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (scope, key, day) DO UPDATE SET
                     tokens = min(tokens + excluded.tokens, 9000000000000000000),
                     cost = min(cost + excluded.cost, 9000000000000000000)",
                )?
                .execute((name(scope), key, day, tokens, cost))?;
        }
    }
    connection
        .prepare_cached("DELETE FROM budget_used WHERE day > 0 AND day < ?1")?
        .execute([i64::from(place.day) - DAYS_KEPT])?;
    connection
        .prepare_cached("DELETE FROM budget_held WHERE day < ?1")?
        .execute([i64::from(place.day) - DAYS_KEPT])?;
    Ok(())
}

fn committed(
    connection: &Connection,
    scope: BudgetScope,
    place: &BudgetPlace,
) -> Result<Amount, JournalError> {
    let (key, day) = key(scope, place);
    let read = |row: &rusqlite::Row<'_>| Ok((to_u64(row.get(0)?), to_u64(row.get(1)?)));
    let used = connection
        .prepare_cached(
            "SELECT tokens, cost FROM budget_used WHERE scope = ?1 AND key = ?2 AND day = ?3",
        )?
        .query_row((name(scope), key, day), read)
        .optional()?
        .unwrap_or_default();
    let held = connection
        .prepare_cached(&format!(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0) FROM budget_held WHERE {}",
            condition(scope)
        ))?
        .query_row((key, day), read)?;
    Ok(Amount {
        tokens: used.0.saturating_add(held.0),
        cost: Some(NanoUsd(used.1.saturating_add(held.1))),
    })
}

fn cost_of(amount: Amount) -> u64 {
    amount.cost.unwrap_or_default().0
}
