//! The tables of the index.

use crate::error::MemoryError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

/// The version of the tables, in SQLite's `user_version`. A file of any other one is made again.
const VERSION: u32 = 1;
/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// `words` finds words and their beginnings, with `_` as a letter; `parts` finds any three characters in a row, which
/// words of Chinese and parts of identifiers need. Neither keeps the text, which `memories` has. `vectors` is by the
/// hash of a text, so that a text that moves keeps its vector.
const TABLES: &str = "
CREATE TABLE folders (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL
);
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    folder INTEGER NOT NULL REFERENCES folders(id),
    name TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    is_settled INTEGER NOT NULL,
    UNIQUE (folder, name)
);
CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL REFERENCES files(id),
    memory TEXT NOT NULL,
    line INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX memories_file ON memories(file);
CREATE INDEX memories_content ON memories(content);
CREATE VIRTUAL TABLE words USING fts5(
    text, heading, content='', contentless_delete=1,
    tokenize=\"unicode61 remove_diacritics 2 tokenchars '_'\", prefix='2 3'
);
CREATE VIRTUAL TABLE parts USING fts5(
    text, heading, content='', contentless_delete=1, tokenize='trigram'
);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY,
    content BLOB NOT NULL,
    model TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (content, model)
);
";

/// Opens the index in a file, private to the user.
pub(super) fn open(path: &Path) -> Result<Connection, MemoryError> {
    let made = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    made.map_err(|err| rusqlite::Error::ToSqlConversionFailure(Box::new(err)))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    prepare(connection)
}

/// Opens an index in memory.
pub(super) fn in_memory() -> Result<Connection, MemoryError> {
    prepare(Connection::open_in_memory()?)
}

fn prepare(mut connection: Connection) -> Result<Connection, MemoryError> {
    // A forgotten memory must not be in the file either.
    connection.pragma_update(None, "secure_delete", true)?;
    if version(&connection)? != VERSION {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match version(&transaction)? {
            VERSION => {}
            0 => {
                transaction.execute_batch(TABLES)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            // The caller removes a file that is not an index, and this counts as none.
            _ => return Err(rusqlite::Error::InvalidQuery.into()),
        }
        transaction.commit()?;
    }
    Ok(connection)
}

/// Writes the word indexes again without the words of rows that are gone, and the file without its log.
pub(super) fn purge(connection: &Connection) -> Result<(), MemoryError> {
    for table in ["words", "parts"] {
        connection.execute(
            &format!("INSERT INTO {table} ({table}) VALUES ('optimize')"),
            [],
        )?;
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn version(connection: &Connection) -> Result<u32, MemoryError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
