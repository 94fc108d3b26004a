//! The format of an exported session: lines of JSON, first a [`Header`], then one record a line.
//!
//! An engine writes such files and reads them into its store; [`ExportReader`](super::ExportReader) needs no engine.

use super::walk::Walk;
use crate::ports::{Body, ChainHash, Entry, Seq};
use crate::session_store::StoreError;
use rondo_types::{SessionId, TimeMs, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{BufRead, Read as _, Write};

/// The version of exported files.
pub const EXPORT_VERSION: u32 = 1;

/// Characters of an id that an error shows.
const ID_CHARS_SHOWN: usize = 128;

/// Bytes of one line of an exported file.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// The first line of an exported file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format, [`EXPORT_VERSION`] or older.
    pub rondo_session: u32,
    /// The session's id, as the file has it.
    pub id: String,
    /// When the session began, in milliseconds since 1970.
    pub created_ms: u64,
    /// Title of the session; may be empty.
    pub title: String,
    /// Its working directory; absent from files of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The session that it was forked from, for the reader of the file: the records before the fork are in it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// The last record that it has in common with that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<u64>,
    /// How many records follow; absent from files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// The hash of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_hash: Option<String>,
}

/// The end of an exported file, as its header announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// How many records there are.
    pub records: u64,
    /// The hash of the last one.
    pub hash: ChainHash,
}

impl Header {
    /// Returns the session's id.
    ///
    /// # Errors
    /// When the file's id cannot be that of a session.
    pub fn session(&self) -> Result<SessionId, StoreError> {
        SessionId::parse(&self.id).map_err(|bad| StoreError::BadId {
            id: self.id.chars().take(ID_CHARS_SHOWN).collect(),
            reason: bad.to_string(),
        })
    }

    /// Returns the end that the header announces; `None` for files of earlier versions.
    ///
    /// # Errors
    /// When the end's hash is not a hash.
    pub fn announced(&self) -> Result<Option<Announced>, StoreError> {
        let (Some(records), Some(hash)) = (self.records, &self.end_hash) else {
            return Ok(None);
        };
        let hash = ChainHash::from_hex(hash).ok_or_else(|| StoreError::BadExport {
            line: 1,
            reason: "its end hash is malformed".to_owned(),
        })?;
        Ok(Some(Announced { records, hash }))
    }
}

/// Every further line: one record, its body as it was written.
#[derive(Serialize)]
struct WrittenRecord<'a> {
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
struct ReadRecord {
    seq: u64,
    version: u32,
    epoch: u64,
    turn: String,
    step: u32,
    at_ms: u64,
    hash: String,
    body: Box<RawValue>,
}

/// Writes one record as a line.
///
/// # Errors
/// When the record's body is not JSON, or writing fails.
pub fn write_entry(out: &mut dyn Write, entry: &Entry) -> Result<(), StoreError> {
    let body: &RawValue = serde_json::from_str(&entry.json).map_err(broken)?;
    let line = WrittenRecord {
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

/// Writes a value as a line of JSON.
///
/// # Errors
/// When the value cannot be JSON, or writing fails.
pub fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *out, line).map_err(broken)?;
    out.write_all(b"\n").map_err(failed("the output"))
}

fn failed(what: &str) -> impl FnOnce(std::io::Error) -> StoreError {
    move |source| StoreError::Io {
        path: what.into(),
        source,
    }
}

fn broken(error: serde_json::Error) -> StoreError {
    failed("the output")(error.into())
}

/// The lines of an exported file.
pub struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: usize,
}

/// A line, and whether its end is there.
struct Line {
    text: String,
    whole: bool,
}

impl<'a> Lines<'a> {
    /// Reads from the beginning of a file.
    pub fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, number: 0 }
    }

    fn next(&mut self) -> Result<Option<Line>, StoreError> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut *self.input).take(LINE_BYTES_MAX);
        let count = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(failed("the exported file"))?;
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

/// Reads the first line, of this version or an earlier one.
///
/// # Errors
/// When it is not a header, is of a later version, or reading fails.
pub fn read_header(lines: &mut Lines<'_>) -> Result<Header, StoreError> {
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
pub struct Entries {
    walk: Walk,
    announced: Option<Announced>,
    /// Set if the end is missing: the last line was cut short and left out, or others are missing.
    pub torn: bool,
}

impl Entries {
    /// Expects the end that the header announces.
    #[must_use]
    pub fn of(announced: Option<Announced>) -> Self {
        Self {
            announced,
            ..Self::default()
        }
    }

    /// Reads and checks the next record; `None` at the end.
    ///
    /// # Errors
    /// When a line is not a record or does not follow on the one before it, the end is not the announced one, or reading fails.
    pub fn next(&mut self, lines: &mut Lines<'_>) -> Result<Option<(Entry, Body)>, StoreError> {
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
                return Err(lines.bad(
                    "the end of the file differs from its announced end: the file was changed",
                ));
            }
        }
        Ok(None)
    }
}

fn parse(line: &str) -> Result<Entry, String> {
    let line: ReadRecord = serde_json::from_str(line).map_err(|error| error.to_string())?;
    for (name, number) in [("epoch", line.epoch), ("time", line.at_ms)] {
        if i64::try_from(number).is_err() {
            return Err(format!("its {name} is larger than {}", i64::MAX));
        }
    }
    Ok(Entry {
        seq: Seq(line.seq),
        version: line.version,
        epoch: line.epoch,
        turn: TurnId::new(line.turn),
        step: line.step,
        at: TimeMs(line.at_ms),
        json: line.body.get().to_owned(),
        hash: ChainHash::from_hex(&line.hash).ok_or("its hash is malformed")?,
    })
}
