//! Reads the file of an exported session without a store.

use super::export::{Entries, Header, Lines, read_header};
use crate::ports::Record;
use crate::session_store::StoreError;
use rondo_types::{SessionId, TimeMs};
use std::io::BufRead;

/// An exported session, read without a store.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedSession {
    /// Id of the session.
    pub session: SessionId,
    /// When it began.
    pub created: TimeMs,
    /// Title of the session; may be empty.
    pub title: String,
    /// Its records. Those that a later version wrote and this one does not know are left out.
    pub records: Vec<Record>,
    /// Set if the last line was cut short and left out.
    pub torn: bool,
}

impl ExportedSession {
    /// Reads an exported file, and checks its hashes.
    ///
    /// # Errors
    /// When a line is not a record or does not follow the one before it, or reading fails.
    pub fn read(input: &mut dyn BufRead) -> Result<Self, StoreError> {
        let mut reader = ExportReader::open(input)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok(Self {
            session: reader.session().clone(),
            created: TimeMs(reader.header.created_ms),
            torn: reader.is_torn(),
            title: reader.header.title,
            records,
        })
    }
}

/// Reads an exported session one record at a time, so that no more than one is held.
pub struct ExportReader<'a> {
    lines: Lines<'a>,
    session: SessionId,
    header: Header,
    entries: Entries,
}

impl<'a> ExportReader<'a> {
    /// Reads the first line.
    ///
    /// # Errors
    /// When it is not that of an exported session, or of a later version's.
    pub fn open(input: &'a mut dyn BufRead) -> Result<Self, StoreError> {
        let mut lines = Lines::new(input);
        let header = read_header(&mut lines)?;
        let announced = header.announced()?;
        Ok(Self {
            lines,
            session: header.session()?,
            header,
            entries: Entries::of(announced),
        })
    }

    /// Returns the session's id.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Reads the next record; none at the end. Records that a later version wrote and this one does not
    /// know are left out.
    ///
    /// # Errors
    /// When a line is not a record or does not follow the one before it, or reading fails.
    pub fn next_record(&mut self) -> Result<Option<Record>, StoreError> {
        while let Some((entry, body)) = self.entries.next(&mut self.lines)? {
            if let Some(record) = entry.with_body(body) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns whether the end is missing, once the last record was read: its line was cut short, or
    /// the file announces more.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.entries.torn
    }
}
