//! The tables, and how a connection is set up.

use crate::budget;
use crate::error::JournalError;
use crate::mailbox;
use crate::outbox;
use crate::store::{Durability, Options};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The version of the tables, in SQLite's `user_version`.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Marks the file as a journal of Rondo (`rndo`), so that `file` and a repair tool know it.
const APPLICATION_ID: u32 = 0x726e_646f;

/// Statements that the writer keeps prepared: more than it has.
const STATEMENTS: usize = 64;

/// The pause before a file that another process writes to is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Size of a connection's page cache.
const CACHE_KIB: i32 = 512;

/// A session's own records lie behind its parent's up to `fork_seq`. `turns` and `open` follow from
/// the records, and are kept so that a list need not read them but for how the last turn stands. `lost_after` is the last record of a
/// session whose end was cut off. `bit_sum` tells which bit of a body was changed.
const TABLES: &str = "
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    parent INTEGER REFERENCES sessions(id),
    fork_seq INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL DEFAULT '',
    directory TEXT NOT NULL DEFAULT '',
    turns INTEGER NOT NULL DEFAULT 0,
    open INTEGER NOT NULL DEFAULT 0,
    imported INTEGER NOT NULL DEFAULT 0,
    lost_after INTEGER
);
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_updated ON sessions(updated_ms);
CREATE INDEX sessions_directory ON sessions(directory, updated_ms);
CREATE TABLE records (
    session INTEGER NOT NULL REFERENCES sessions(id),
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    turn TEXT NOT NULL,
    step INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body TEXT,
    blob BLOB,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX records_blob ON records(blob) WHERE blob IS NOT NULL;
CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY REFERENCES sessions(id),
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE blobs (sha256 BLOB PRIMARY KEY, body TEXT NOT NULL, bit_sum INTEGER);
";

/// How a commit survives its process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Log {
    /// Changes go to a log first, whose index is memory that processes share.
    Ahead,
    /// Overwritten pages are kept in a file until the commit.
    Rollback,
}

/// Opens the writer's connection and makes the tables if there are none.
pub(crate) fn open_writer(
    path: &Path,
    options: &Options,
    log: Log,
) -> Result<Connection, JournalError> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(options.busy_timeout)?;
    bound_cache(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "page_size", 4096)?;
    // Holds if the file is made, or rewritten as a whole.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode = match log {
        Log::Ahead => "WAL",
        Log::Rollback => "TRUNCATE",
    };
    set_log(&connection, mode, options.busy_timeout)?;
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", options.checkpoint_pages)?;
    migrate(&mut connection, path)?;
    add_tables(&mut connection, "mail", mailbox::TABLE)?;
    add_columns(&mut connection)?;
    add_tables(&mut connection, "outbox", outbox::TABLES)?;
    add_tables(&mut connection, "budget_used", budget::TABLES)?;
    Ok(connection)
}

/// Sets how the file is written. If another process writes to a new file, SQLite refuses that at once instead of waiting.
fn set_log(
    connection: &Connection,
    mode: &str,
    busy_timeout: Duration,
) -> Result<(), JournalError> {
    connection.busy_timeout(Duration::ZERO)?;
    let mut waited = Duration::ZERO;
    loop {
        match connection.pragma_update(None, "journal_mode", mode) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && waited < busy_timeout =>
            {
                thread::sleep(BUSY_PAUSE);
                waited += BUSY_PAUSE;
            }
            set => {
                set?;
                return Ok(connection.busy_timeout(busy_timeout)?);
            }
        }
    }
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, busy_timeout: Duration) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    bound_cache(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// SQLite would take 2 MB for each connection, which a busy host fills, and the system has the same pages.
fn bound_cache(connection: &Connection) -> Result<(), JournalError> {
    // A negative number is one of KiB.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(())
}

/// Two processes may open a new journal at once, so the version is read inside the transaction.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), JournalError> {
    if version(connection)? == SCHEMA_VERSION {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    match version(&transaction)? {
        SCHEMA_VERSION => return Ok(()),
        0 => transaction.execute_batch(TABLES)?,
        found => {
            return Err(JournalError::TooNew {
                path: path.to_owned(),
                found,
                known: SCHEMA_VERSION,
            });
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Opens a journal that nothing can be written to, nor beside it.
///
/// Without a log all of it is in the file. With one, its index must be there too, as a process that was
/// killed leaves it.
pub(crate) fn open_read_only(
    path: &Path,
    busy_timeout: Duration,
) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let log = fs::metadata(with_suffix(path, "-wal")).map_or(0, |it| it.len());
    let connection = match (log, path.to_str()) {
        (0, Some(name)) => {
            let uri = format!("file:{}?immutable=1", escaped(name));
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
        }
        _ => Connection::open_with_flags(path, flags)?,
    };
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let found = version(&connection).map_err(|error| {
        let is_lacking = log > 0 && !with_suffix(path, "-shm").exists();
        match error {
            JournalError::Database(error)
                if is_lacking && error.sqlite_error_code() == Some(ErrorCode::CannotOpen) =>
            {
                JournalError::NoLogIndex {
                    path: path.to_owned(),
                }
            }
            error => error,
        }
    })?;
    match found {
        SCHEMA_VERSION => {}
        0 => {
            return Err(JournalError::NotAJournal {
                path: path.to_owned(),
                reason: "it has no tables, and none can be made in it".to_owned(),
            });
        }
        found => {
            return Err(JournalError::TooNew {
                path: path.to_owned(),
                found,
                known: SCHEMA_VERSION,
            });
        }
    }
    let mut lacking = String::new();
    for (table, name, _) in COLUMNS {
        // The others are for those that write.
        if table == "sessions" && !has_column(&connection, table, name)? {
            lacking.push_str(&format!(", NULL AS {name}"));
        }
    }
    if !lacking.is_empty() {
        let view = format!("CREATE TEMP VIEW sessions AS SELECT *{lacking} FROM main.sessions");
        connection.execute_batch(&view)?;
    }
    if !has_table(&connection, "mail")? {
        connection.execute_batch(mailbox::NO_TABLE)?;
    } else if !has_column(&connection, "mail", "revision")? {
        let view = "CREATE TEMP VIEW mail AS SELECT *, 0 AS revision FROM main.mail";
        connection.execute_batch(view)?;
    }
    if !has_table(&connection, "outbox")? {
        connection.execute_batch(outbox::NO_TABLES)?;
    }
    Ok(connection)
}

/// Returns the name of a file that SQLite keeps beside another.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Escapes what means something in a URI.
fn escaped(name: &str) -> String {
    let escaped = name.replace('%', "%25").replace('?', "%3f");
    escaped.replace('#', "%23")
}

/// Columns that journals of earlier versions lack, with their tables.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("sessions", "imported", "INTEGER NOT NULL DEFAULT 0"),
    ("sessions", "lost_after", "INTEGER"),
    ("blobs", "bit_sum", "INTEGER"),
    ("mail", "revision", "INTEGER NOT NULL DEFAULT 0"),
];

/// Adds the columns that journals of earlier versions lack. An older program can still read them, so their version stays.
fn add_columns(connection: &mut Connection) -> Result<(), JournalError> {
    for (table, name, kind) in COLUMNS {
        if has_column(connection, table, name)? {
            continue;
        }
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        if !has_column(&transaction, table, name)? {
            let add = format!("ALTER TABLE {table} ADD COLUMN {name} {kind}");
            transaction.execute_batch(&add)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

/// Adds tables that an older program leaves alone, if the one that is named is missing.
fn add_tables(connection: &mut Connection, name: &str, tables: &str) -> Result<(), JournalError> {
    if has_table(connection, name)? {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(tables)?;
    transaction.commit()?;
    Ok(())
}

fn has_table(connection: &Connection, name: &str) -> Result<bool, JournalError> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(count, [name], |row| row.get(0))?)
}

fn has_column(connection: &Connection, table: &str, name: &str) -> Result<bool, JournalError> {
    let count = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
    Ok(connection.query_row(count, [table, name], |row| row.get(0))?)
}

fn version(connection: &Connection) -> Result<u32, JournalError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_shared_memory_a_journal_has_no_log() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("journal.db");
        for (log, mode) in [(Log::Ahead, "wal"), (Log::Rollback, "truncate")] {
            let writer = open_writer(&path, &Options::default(), log).unwrap();
            let found: String = writer
                .pragma_query_value(None, "journal_mode", |row| row.get(0))
                .unwrap();
            assert_eq!(found, mode);
        }
    }
}
