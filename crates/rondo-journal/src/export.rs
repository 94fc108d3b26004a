//! Sessions as files of JSON lines, written and read.

use crate::commit_thread::to_i64;
use crate::entry::{Body, Entry};
use crate::error::StoreError;
use crate::read;
use crate::store::Store;
use crate::walk::Walk;
use data_encoding::HEXLOWER;
use rondo_core::ports::{ChainHash, Seq};
use rondo_types::{SessionId, TimeMs, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::OpenOptions;
use std::io::{BufRead, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The version of exported files.
pub const EXPORT_VERSION: u32 = 1;

/// Characters of an id that an error shows.
const ID_CHARS_SHOWN: usize = 128;

/// Bytes of one line of an exported file.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// The first line of an exported file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    rondo_session: u32,
    pub(crate) id: String,
    pub(crate) created_ms: u64,
    pub(crate) title: String,
    /// Where it works; files of before do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) directory: String,
    /// Told, not needed: the records before the fork are in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_at: Option<u64>,
    /// How many records follow; files of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    /// The hash of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_hash: Option<String>,
}

/// What an exported file says of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) records: u64,
    pub(crate) hash: ChainHash,
}

impl Header {
    /// Returns the session's id, which may be anything.
    pub(crate) fn session(&self) -> Result<SessionId, StoreError> {
        SessionId::parse(&self.id).map_err(|bad| StoreError::BadId {
            id: self.id.chars().take(ID_CHARS_SHOWN).collect(),
            reason: bad.to_string(),
        })
    }

    pub(crate) fn announced(&self) -> Result<Option<Announced>, StoreError> {
        let (Some(records), Some(hash)) = (self.records, &self.end_hash) else {
            return Ok(None);
        };
        let hash = ChainHash::from_hex(hash).ok_or_else(|| StoreError::BadExport {
            line: 1,
            reason: "its end hash is no hash".to_owned(),
        })?;
        Ok(Some(Announced { records, hash }))
    }
}

/// Every further line: one record, its body as it was written.
#[derive(Serialize)]
struct LineOut<'a> {
    seq: u64,
    version: u32,
    epoch: u64,
    turn: &'a str,
    step: u32,
    at_ms: u64,
    hash: String,
    body: &'a RawValue,
}

#[derive(Deserialize)]
struct LineIn {
    seq: u64,
    version: u32,
    epoch: u64,
    turn: String,
    step: u32,
    at_ms: u64,
    hash: String,
    body: Box<RawValue>,
}

impl Store {
    /// Writes a session as lines of JSON: a header, then one record a line.
    ///
    /// The file holds everything, the records before a fork included. It says how many records there
    /// are and what hash they end with, so that a lost end shows. All are checked first: where one is
    /// damaged, nothing is written.
    ///
    /// # Errors
    /// When there is no such session, it is damaged, or writing fails.
    pub fn export(&self, session: &SessionId, out: &mut dyn Write) -> Result<u64, StoreError> {
        let info = self.session(session)?;
        let report = self.check(session)?;
        if let Some(defect) = report.defect {
            return Err(defect.of(session));
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
            // What was appended since the header was written is not announced.
            if entry.seq > last {
                return Ok(());
            }
            count += 1;
            write_entry(out, &entry)
        })?;
        Ok(count)
    }
}

fn write_entry(out: &mut dyn Write, entry: &Entry) -> Result<(), StoreError> {
    let body: &RawValue = serde_json::from_str(&entry.json).map_err(broken)?;
    let line = LineOut {
        seq: entry.seq.0,
        version: entry.version,
        epoch: entry.epoch,
        turn: entry.turn.as_str(),
        step: entry.step,
        at_ms: entry.at.0,
        hash: entry.hash.to_string(),
        body,
    };
    write_line(out, &line)
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *out, line).map_err(broken)?;
    out.write_all(b"\n").map_err(StoreError::io("the output"))
}

fn broken(error: serde_json::Error) -> StoreError {
    StoreError::io("the output")(error.into())
}

/// The lines of an exported file.
pub(crate) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: usize,
}

/// A line, and whether its end is there.
struct Line {
    text: String,
    whole: bool,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, number: 0 }
    }

    fn next(&mut self) -> Result<Option<Line>, StoreError> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut *self.input).take(LINE_BYTES_MAX);
        let count = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(StoreError::io("the exported file"))?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        let whole = bytes.last() == Some(&b'\n');
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // A cut may go through a character.
            Err(error) if !whole => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(error) => return Err(self.bad(error.to_string())),
        };
        Ok(Some(Line { text, whole }))
    }

    fn bad(&self, reason: impl Into<String>) -> StoreError {
        StoreError::BadExport {
            line: self.number,
            reason: reason.into(),
        }
    }
}

pub(crate) fn read_header(lines: &mut Lines<'_>) -> Result<Header, StoreError> {
    let Some(line) = lines.next()? else {
        return Err(lines.bad("the file is empty"));
    };
    let header: Header =
        serde_json::from_str(&line.text).map_err(|error| lines.bad(error.to_string()))?;
    if header.rondo_session > EXPORT_VERSION {
        let found = header.rondo_session;
        return Err(lines.bad(format!(
            "it has version {found}, this program knows {EXPORT_VERSION} and older"
        )));
    }
    Ok(header)
}

/// The records of an exported file, one at a time, each checked against those before it.
#[derive(Default)]
pub(crate) struct Entries {
    walk: Walk,
    announced: Option<Announced>,
    /// Whether the end is missing: the last line was cut short and left out, or others are not there.
    pub(crate) torn: bool,
}

impl Entries {
    pub(crate) fn of(announced: Option<Announced>) -> Self {
        Self {
            announced,
            ..Self::default()
        }
    }

    pub(crate) fn next(
        &mut self,
        lines: &mut Lines<'_>,
    ) -> Result<Option<(Entry, Body)>, StoreError> {
        let Some(line) = lines.next()? else {
            return self.end(lines);
        };
        let entry = match parse(&line.text) {
            Ok(entry) => entry,
            Err(_) if !line.whole => {
                self.torn = true;
                return Ok(None);
            }
            Err(reason) => return Err(lines.bad(reason)),
        };
        let expected = self.walk.at.0 + 1;
        if entry.seq.0 != expected {
            return Err(lines.bad(format!("record {expected} should follow")));
        }
        if self.announced.is_some_and(|it| entry.seq.0 > it.records) {
            return Err(lines.bad("the file announces fewer records"));
        }
        let body = self.walk.take(&entry).map_err(|it| lines.bad(it.reason))?;
        Ok(Some((entry, body)))
    }

    fn end(&mut self, lines: &Lines<'_>) -> Result<Option<(Entry, Body)>, StoreError> {
        if let Some(announced) = self.announced {
            self.torn |= self.walk.at.0 < announced.records;
            if !self.torn && self.walk.hash != announced.hash {
                return Err(lines.bad("the file announces another end: it was changed"));
            }
        }
        Ok(None)
    }
}

fn parse(line: &str) -> Result<Entry, String> {
    let line: LineIn = serde_json::from_str(line).map_err(|error| error.to_string())?;
    Ok(Entry {
        seq: Seq(line.seq),
        version: line.version,
        epoch: line.epoch,
        turn: TurnId::new(line.turn),
        step: line.step,
        at: TimeMs(line.at_ms),
        json: line.body.get().to_owned(),
        hash: ChainHash::from_hex(&line.hash).ok_or("its hash is no hash")?,
    })
}

/// Saves what a repair is about to cut off, row by row, as far as it can be read.
pub(crate) fn save_damaged(
    store: &Store,
    session: &SessionId,
    from: Seq,
) -> Result<Option<PathBuf>, StoreError> {
    let connection = store.reader();
    let id = read::find(&connection, session)?.id;
    let mut statement = connection.prepare(RAW_ROWS)?;
    let mut rows = statement.query((id, to_i64(from.0)))?;
    let Some(mut row) = rows.next()? else {
        return Ok(None);
    };
    let name = format!(
        "damaged-{}-{}.jsonl",
        HEXLOWER.encode(session.as_str().as_bytes()),
        from.0
    );
    let path = store.path().with_file_name(name);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(StoreError::io(&path))?;
    loop {
        let text: String = row.get(0)?;
        let value = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        write_line(&mut file, &value)?;
        match rows.next()? {
            Some(next) => row = next,
            None => break,
        }
    }
    file.sync_all().map_err(StoreError::io(&path))?;
    Ok(Some(path))
}

/// The rows as they are, whatever is in them.
const RAW_ROWS: &str = "
    SELECT json_object('seq', seq, 'version', version, 'epoch', epoch, 'turn', turn,
        'step', step, 'at_ms', at_ms, 'hash', lower(hex(hash)),
        'body', coalesce(body, (SELECT b.body FROM blobs b WHERE b.sha256 = blob)))
    FROM records WHERE session = ?1 AND seq >= ?2 ORDER BY seq";
