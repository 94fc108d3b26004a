//! Saves what can be read of a file that SQLite calls malformed into a new one.
//!
//! A damaged page makes one statement fail that meets it, and not the next one: rows are read from the first one up,
//! from the last one down, and one by one. The old file is kept.

use crate::directory::sync_above;
use crate::error::JournalError;
use crate::lock;
use crate::schema::{self, Log};
use crate::store::{FILE_NAME, LOCKS_DIR, Options, Store};
use rondo_core::storage::SalvagedStore;
use rondo_types::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params_from_iter};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// First bytes of every journal: an SQLite file with pages of 4096 bytes and a log.
const BEGINNING: &[u8; 24] = b"SQLite format 3\0\x10\0\x02\x02\0\x40\x20\x20";
/// Files that are kept of journals that were malformed.
const KEPT_MAX: u32 = 1000;
/// Sessions and records of one that are looked for one by one.
const LOOKED_FOR_MAX: i64 = 1_000_000;

impl Store {
    /// Returns SQLite's description of the malformed parts of the file; `None` if there are none.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn malformed(&self) -> Result<Option<String>, JournalError> {
        let check = "PRAGMA integrity_check(1)";
        match self
            .reader()
            .query_row(check, [], |row| row.get::<_, String>(0))
        {
            Ok(found) if found == "ok" => Ok(None),
            Ok(found) => Ok(Some(found)),
            Err(error) => match JournalError::from(error) {
                error if error.is_malformed() => Ok(Some(error.to_string())),
                error => Err(error),
            },
        }
    }

    /// Replaces the file of a journal that SQLite calls malformed with a new one that has all that can be read, and keeps
    /// the old one beside it. Afterwards each session is as far as [`Store::check`] says.
    ///
    /// # Errors
    /// When a session is in use, nothing of the file can be read, or the disk fails; then the file is left as it is.
    pub fn salvage(dir: &Path, options: Options) -> Result<SalvagedStore, JournalError> {
        let path = dir.join(FILE_NAME);
        if let Some(error) = lock::held_by_any(&dir.join(LOCKS_DIR)) {
            return Err(error);
        }
        let mut old = Connection::open(&path)?;
        let version = old.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        if version.is_err_and(|error| JournalError::from(error).is_malformed()) {
            drop(old);
            restore_beginning(&path).map_err(JournalError::io(&path))?;
            old = Connection::open(&path)?;
        }
        old.busy_timeout(options.busy_timeout)?;
        // Tables whose lines in the list of tables can be read are found, whatever the others are.
        let _ = old.pragma_update(None, "writable_schema", true);
        // Records that another process appends meanwhile would be lost. If it cannot be held off, it cannot append
        // either.
        let _ = old.execute_batch("BEGIN IMMEDIATE");
        let unfinished = dir.join(format!("{FILE_NAME}.new"));
        for suffix in ["", "-wal", "-shm"] {
            remove(&schema::with_suffix(&unfinished, suffix))?;
        }
        let mut new = schema::open_writer(&unfinished, &options, Log::Ahead)?;
        let renamed = copy_all(&old, &mut new)?;
        if new.query_row("SELECT count(*) FROM sessions", [], |row| {
            row.get::<_, i64>(0)
        })? == 0
        {
            drop(new);
            remove(&unfinished)?;
            return Err(JournalError::NotAJournal {
                path,
                reason: "none of its sessions can be read".to_owned(),
            });
        }
        new.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(new);
        let kept = replace(&path, &unfinished)?;
        drop(old);
        Ok(SalvagedStore { kept, renamed })
    }
}

fn restore_beginning(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut found = [0; BEGINNING.len()];
    file.read_exact_at(&mut found, 0)?;
    if found != *BEGINNING {
        file.write_all_at(BEGINNING, 0)?;
        file.sync_all()?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), JournalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Puts a new file in the place of the journal, which keeps another name. Its log goes before: the new file would take
/// it for its own.
fn replace(path: &Path, new: &Path) -> Result<PathBuf, JournalError> {
    let names = (1..KEPT_MAX).map(|number| path.with_extension(format!("db.malformed-{number}")));
    let mut names = names.filter(|it| !it.exists());
    let kept = names
        .next()
        .unwrap_or_else(|| path.with_extension("db.malformed"));
    fs::hard_link(path, &kept).map_err(JournalError::io(&kept))?;
    let log = schema::with_suffix(path, "-wal");
    if log.exists() {
        let kept_log = schema::with_suffix(&kept, "-wal");
        fs::rename(&log, &kept_log).map_err(JournalError::io(&kept_log))?;
    }
    remove(&schema::with_suffix(path, "-shm"))?;
    fs::rename(new, path).map_err(JournalError::io(path))?;
    let synced = path
        .parent()
        .map_or(Ok(()), |dir| File::open(dir)?.sync_all());
    synced.map_err(JournalError::io(path))?;
    sync_above(path).map_err(JournalError::io(path))?;
    Ok(kept)
}

/// Copies all rows that can be read, and returns the sessions that got new names.
fn copy_all(old: &Connection, new: &mut Connection) -> Result<Vec<SessionId>, JournalError> {
    new.pragma_update(None, "foreign_keys", false)?;
    let new = new.transaction()?;
    for table in names(&new, "SELECT name FROM sqlite_schema WHERE type = 'table'")? {
        // Snapshots follow from the records.
        if table != "snapshots" && !table.starts_with("sqlite_") {
            copy_table(old, &new, &table)?;
        }
    }
    let ids = "SELECT max(id) FROM (SELECT id FROM sessions UNION SELECT session FROM records)";
    let ids: Option<i64> = new.query_row(ids, [], |row| row.get(0))?;
    for id in 1..=ids.unwrap_or_default().min(LOOKED_FOR_MAX) {
        copy_row(old, &new, ("sessions", "id = ?1"), &[Value::Integer(id)])?;
    }
    let gaps = "SELECT s.id, s.head_seq FROM sessions s WHERE s.head_seq - s.fork_seq >
        (SELECT count(*) FROM records r WHERE r.session = s.id)";
    for (id, last) in pairs(&new, gaps)? {
        for seq in 1..=last.min(LOOKED_FOR_MAX) {
            let key = [Value::Integer(id), Value::Integer(seq)];
            copy_row(old, &new, ("records", "session = ?1 AND seq = ?2"), &key)?;
        }
    }
    let lacking = "SELECT DISTINCT blob FROM records WHERE blob IS NOT NULL
        AND blob NOT IN (SELECT sha256 FROM blobs)";
    for key in values(&new, lacking)? {
        copy_row(old, &new, ("blobs", "sha256 = ?1"), &[key])?;
    }
    let renamed = name_sessions(&new)?;
    new.commit()?;
    Ok(renamed)
}

/// Copies the rows of a table that come before the first one that cannot be read, and those behind the last one.
fn copy_table(old: &Connection, new: &Connection, table: &str) -> Result<(), JournalError> {
    // Tables without row numbers are ordered by their key.
    let order = match table {
        "records" => "session, seq",
        "budget_held" => "session, id",
        "budget_used" => "scope, key, day",
        "host_rows" => "name, key",
        _ => "rowid",
    };
    let Some(columns) = shared_columns(old, new, table)? else {
        return Ok(());
    };
    for direction in ["", " DESC"] {
        let order = order.replace(',', &format!("{direction},"));
        let rest = format!("ORDER BY {order}{direction}");
        copy(old, new, (table, &columns, &rest), &[])?;
    }
    Ok(())
}

/// Copies one row, if it is not there.
fn copy_row(
    old: &Connection,
    new: &Connection,
    (table, condition): (&str, &str),
    key: &[Value],
) -> Result<(), JournalError> {
    let known = format!("SELECT 1 FROM {table} WHERE {condition}");
    if new.prepare_cached(&known)?.exists(params_from_iter(key))? {
        return Ok(());
    }
    match shared_columns(old, new, table)? {
        Some(columns) => copy(
            old,
            new,
            (table, &columns, &format!("WHERE {condition}")),
            key,
        ),
        None => Ok(()),
    }
}

/// Copies rows up to the first one that cannot be read. A row that cannot be one of the new table is left out.
fn copy(
    old: &Connection,
    new: &Connection,
    (table, columns, rest): (&str, &[String], &str),
    key: &[Value],
) -> Result<(), JournalError> {
    let names = columns.join(", ");
    let marks = vec!["?"; columns.len()].join(", ");
    let mut insert = new.prepare_cached(&format!(
        "INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"
    ))?;
    let Ok(mut select) = old.prepare_cached(&format!("SELECT {names} FROM {table} {rest}")) else {
        return Ok(());
    };
    let Ok(mut rows) = select.query(params_from_iter(key)) else {
        return Ok(());
    };
    while let Ok(Some(row)) = rows.next() {
        let row: Result<Vec<Value>, _> = (0..columns.len()).map(|it| row.get(it)).collect();
        match row.map(|row| insert.execute(params_from_iter(row))) {
            Ok(Err(error)) if error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the columns that a table has in both files; none if it is only in the new one.
fn shared_columns(
    old: &Connection,
    new: &Connection,
    table: &str,
) -> Result<Option<Vec<String>>, JournalError> {
    let sql = format!("SELECT name FROM pragma_table_info('{table}')");
    let known = match names(old, &sql) {
        Ok(known) if !known.is_empty() => known,
        _ => return Ok(None),
    };
    let mut columns = names(new, &sql)?;
    columns.retain(|it| known.contains(it));
    Ok(Some(columns))
}

fn names(connection: &Connection, sql: &str) -> Result<Vec<String>, JournalError> {
    let mut statement = connection.prepare_cached(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

fn values(connection: &Connection, sql: &str) -> Result<Vec<Value>, JournalError> {
    let mut statement = connection.prepare(sql)?;
    let values = statement.query_map([], |row| row.get(0))?;
    Ok(values.collect::<Result<_, _>>()?)
}

fn pairs(connection: &Connection, sql: &str) -> Result<Vec<(i64, i64)>, JournalError> {
    let mut statement = connection.prepare(sql)?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<Result<_, _>>()?)
}

/// Gives a row to the records whose session has none.
fn name_sessions(new: &Connection) -> Result<Vec<SessionId>, JournalError> {
    let lost = "SELECT session, max(seq) FROM records
        WHERE session NOT IN (SELECT id FROM sessions) GROUP BY session";
    let mut renamed = Vec::new();
    for (id, last) in pairs(new, lost)? {
        let name = SessionId::new(format!("salvaged-{id}"));
        let inserted = new.execute(
            "INSERT OR IGNORE INTO sessions
             (id, name, created_ms, updated_ms, epoch, head_seq, head_hash, open, lost_after)
             SELECT ?1, ?2, min(at_ms), max(at_ms), max(epoch, 1), ?3, hash, 1, ?3
             FROM records WHERE session = ?1 AND seq = ?3",
            (id, name.as_str(), last),
        )?;
        if inserted > 0 {
            renamed.push(name);
        }
    }
    Ok(renamed)
}
