//! Writes a session to a file of JSON lines, in the format of `rondo_core::storage::export`.

use crate::commit_thread::to_i64;
use crate::error::JournalError;
use crate::read;
use crate::store::Store;
use data_encoding::HEXLOWER;
use rondo_core::ports::{ChainHash, Seq};
use rondo_core::storage::export::{EXPORT_VERSION, Header, write_entry, write_line};
use rondo_types::SessionId;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

impl Store {
    /// Writes a session as lines of JSON: a header, then one record a line.
    ///
    /// The file holds everything, the records before a fork included. It says how many records there
    /// are and what hash they end with, so that a lost end shows. All are checked first: if one is
    /// damaged, nothing is written.
    ///
    /// # Errors
    /// When there is no such session, it is damaged, or writing fails.
    pub fn export(&self, session: &SessionId, out: &mut dyn Write) -> Result<u64, JournalError> {
        let info = self.session(session)?;
        let report = self.check(session)?;
        if let Some(defect) = report.defect {
            return Err(JournalError::damaged(session, defect));
        }
        let last = Seq(report.sound);
        let end = match last {
            Seq(0) => Some(ChainHash::GENESIS),
            last => self.read(session, last, 1)?.pop().map(|entry| entry.hash),
        };
        let header = Header {
            rondo_session: EXPORT_VERSION,
            id: info.id.to_string(),
            created_ms: info.created.0,
            title: info.title,
            directory: info.directory,
            forked_from: info.parent.as_ref().map(|(parent, _)| parent.to_string()),
            forked_at: info.parent.as_ref().map(|(_, at)| at.0),
            records: Some(last.0),
            end_hash: end.map(|hash| hash.to_string()),
        };
        write_line(out, &header)?;
        let mut count = 0;
        self.each(session, Seq(1), |entry| {
            // Records appended since the header was written are not announced.
            if entry.seq > last {
                return Ok(());
            }
            count += 1;
            write_entry(out, &entry)
        })?;
        Ok(count)
    }
}

/// Saves what a repair is about to cut off, row by row, as far as it can be read.
pub(crate) fn save_damaged(
    store: &Store,
    session: &SessionId,
    from: Seq,
) -> Result<Option<PathBuf>, JournalError> {
    // A journal in memory has no place for it.
    if store.is_in_memory() {
        return Ok(None);
    }
    let connection = store.reader();
    let id = read::find(&connection, session)?.id;
    let mut statement = connection.prepare(RAW_ROWS)?;
    let mut rows = statement.query((id, to_i64(from.0)))?;
    let Some(mut row) = rows.next()? else {
        return Ok(None);
    };
    let path = unused_path(store, session, from);
    // Half a file would look like all that could be read: until it is whole, it has another name, which the repair
    // that is started again writes over.
    let unfinished = path.with_extension("jsonl.new");
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .map_err(JournalError::io(&unfinished))?;
    loop {
        write_line(&mut file, &raw(row)?)?;
        match rows.next()? {
            Some(next) => row = next,
            None => break,
        }
    }
    file.sync_all().map_err(JournalError::io(&unfinished))?;
    fs::rename(&unfinished, &path).map_err(JournalError::io(&path))?;
    Ok(Some(path))
}

/// Returns a name that no earlier repair of the session took.
fn unused_path(store: &Store, session: &SessionId, from: Seq) -> PathBuf {
    let name = HEXLOWER.encode(session.as_str().as_bytes());
    let named = |end: String| {
        let name = format!("damaged-{name}-{}{end}.jsonl", from.0);
        store.path().with_file_name(name)
    };
    let later = (2_u32..).map(|number| named(format!("-{number}")));
    let mut names = std::iter::once(named(String::new())).chain(later);
    names.find(|it| !it.exists()).unwrap_or_default()
}

/// Returns a row as JSON, whatever is in it.
fn raw(row: &Row<'_>) -> Result<Value, JournalError> {
    let mut object = Map::new();
    for (index, name) in RAW_COLUMNS.iter().enumerate() {
        let value = match row.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) if *name == "body" => serde_json::from_slice(text)
                .unwrap_or_else(|_| String::from_utf8_lossy(text).into()),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            ValueRef::Blob(bytes) => HEXLOWER.encode(bytes).into(),
        };
        object.insert((*name).to_owned(), value);
    }
    Ok(Value::Object(object))
}

const RAW_COLUMNS: [&str; 8] = [
    "seq", "version", "epoch", "turn", "step", "at_ms", "hash", "body",
];

/// The rows as they are, in the order of [`RAW_COLUMNS`].
const RAW_ROWS: &str = "
    SELECT seq, version, epoch, turn, step, at_ms, hash,
        coalesce(body, (SELECT b.body FROM blobs b WHERE b.sha256 = blob))
    FROM records WHERE session = ?1 AND seq >= ?2 ORDER BY seq";
