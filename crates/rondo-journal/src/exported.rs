use crate::error::StoreError;
use crate::export::{Lines, read_entries, read_header};
use rondo_core::ports::Record;
use rondo_types::{SessionId, TimeMs};
use std::io::BufRead;

/// An exported session, read without a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// Its id.
    pub session: SessionId,
    /// When it began.
    pub created: TimeMs,
    /// What it is about; may be empty.
    pub title: String,
    /// Its records. What a later version wrote and this one does not know is left out.
    pub records: Vec<Record>,
    /// Whether the last line was cut short and left out.
    pub torn: bool,
}

impl Exported {
    /// Reads an exported file, and checks its hashes.
    ///
    /// # Errors
    /// When a line is no record or does not follow the one before it, or reading fails.
    pub fn read(input: &mut dyn BufRead) -> Result<Self, StoreError> {
        let mut lines = Lines::new(input);
        let header = read_header(&mut lines)?;
        let (entries, torn) = read_entries(&mut lines)?;
        let records = entries.into_iter().filter_map(crate::Entry::into_record);
        Ok(Self {
            session: SessionId::new(&header.id),
            created: TimeMs(header.created_ms),
            title: header.title,
            records: records.collect(),
            torn,
        })
    }
}
