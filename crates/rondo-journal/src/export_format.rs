//! The format of an exported session: lines of JSON, first a [`Header`], then one record a line.
//!
//! `export.rs` writes such files; `import.rs` reads them into a store, and `export_reader.rs` without one.

use crate::error::JournalError;
use crate::walk::Walk;
use rondo_core::ports::{Body, ChainHash, Entry, Seq};
use rondo_core::session_store::StoreError;
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
pub(crate) struct Header {
    pub(crate) rondo_session: u32,
    pub(crate) id: String,
    pub(crate) created_ms: u64,
    pub(crate) title: String,
    /// Its working directory; absent from files of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) directory: String,
    /// The session that it was forked from, for the reader of the file: the records before the fork are in it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_at: Option<u64>,
    /// How many records follow; absent from files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) records: Option<u64>,
    /// The hash of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_hash: Option<String>,
}

/// The end of an exported file, as its header announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) records: u64,
    pub(crate) hash: ChainHash,
}

impl Header {
    /// Returns the session's id, which may be anything.
    pub(crate) fn session(&self) -> Result<SessionId, JournalError> {
        SessionId::parse(&self.id).map_err(|bad| {
            JournalError::Store(StoreError::BadId {
                id: self.id.chars().take(ID_CHARS_SHOWN).collect(),
                reason: bad.to_string(),
            })
        })
    }

    pub(crate) fn announced(&self) -> Result<Option<Announced>, JournalError> {
        let (Some(records), Some(hash)) = (self.records, &self.end_hash) else {
            return Ok(None);
        };
        let hash = ChainHash::from_hex(hash).ok_or_else(|| {
            JournalError::Store(StoreError::BadExport {
                line: 1,
                reason: "its end hash is no hash".to_owned(),
            })
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

/// Writes one record as a line.
pub(crate) fn write_entry(out: &mut dyn Write, entry: &Entry) -> Result<(), JournalError> {
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

/// Writes a value as a line of JSON.
pub(crate) fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), JournalError> {
    serde_json::to_writer(&mut *out, line).map_err(broken)?;
    out.write_all(b"\n").map_err(JournalError::io("the output"))
}

fn broken(error: serde_json::Error) -> JournalError {
    JournalError::io("the output")(error.into())
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

    fn next(&mut self) -> Result<Option<Line>, JournalError> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut *self.input).take(LINE_BYTES_MAX);
        let count = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(JournalError::io("the exported file"))?;
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

    fn bad(&self, reason: impl Into<String>) -> JournalError {
        JournalError::Store(StoreError::BadExport {
            line: self.number,
            reason: reason.into(),
        })
    }
}

/// Reads the first line, of this version or an earlier one.
pub(crate) fn read_header(lines: &mut Lines<'_>) -> Result<Header, JournalError> {
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
    ) -> Result<Option<(Entry, Body)>, JournalError> {
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

    fn end(&mut self, lines: &Lines<'_>) -> Result<Option<(Entry, Body)>, JournalError> {
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
        hash: ChainHash::from_hex(&line.hash).ok_or("its hash is no hash")?,
    })
}
