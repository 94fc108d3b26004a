//! Files read line by line, in bounded memory.

use crate::blocking::Call;
use crate::failure::Failure;
use std::io::{BufRead, BufReader, Read};

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes looked at to tell text from anything else.
const PROBE_BYTES: usize = 8 << 10;

/// The bound on bytes read to get at one part of a file.
pub(crate) const SCAN_BYTES_MAX: u64 = 2 << 30;

/// Reads lines in bounded memory.
pub(crate) struct Lines<'a, R> {
    reader: BufReader<R>,
    scanned: u64,
    call: &'a Call,
}

/// One line, or its beginning.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The kept bytes, without the line's end.
    pub(crate) kept: Vec<u8>,
    /// Bytes beyond those kept.
    pub(crate) cut: u64,
    /// Set if it ended with a line feed rather than with the file.
    pub(crate) ended: bool,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(crate) fn new(reader: R, call: &'a Call) -> Self {
        Self {
            reader: BufReader::with_capacity(CHUNK_BYTES, reader),
            scanned: 0,
            call,
        }
    }

    /// Returns the first bytes without consuming them.
    pub(crate) fn probe(&mut self) -> std::io::Result<&[u8]> {
        let buffer = self.reader.fill_buf()?;
        Ok(buffer.get(..PROBE_BYTES).unwrap_or(buffer))
    }

    /// Returns the reader in its current state.
    pub(crate) fn into_reader(self) -> BufReader<R> {
        self.reader
    }

    /// Returns the next line, of which at most `keep` bytes are held; nothing at the end.
    pub(crate) fn next(&mut self, keep: usize, shown: &str) -> Result<Option<Line>, Failure> {
        let mut line = Line::default();
        let mut seen = 0;
        while !line.ended {
            self.call.proceed()?;
            let buffer = self
                .reader
                .fill_buf()
                .map_err(|err| Failure::io("read", shown, &err))?;
            if buffer.is_empty() {
                break;
            }
            let taken = line.take(buffer, keep);
            seen += taken;
            self.reader.consume(taken);
            self.scanned = self.scanned.saturating_add(wide(taken));
            if self.scanned > SCAN_BYTES_MAX {
                return Err(too_far(shown));
            }
        }
        Ok((seen > 0).then_some(line))
    }
}

impl Line {
    /// Takes bytes up to the end of the line and returns how many, the line feed included.
    fn take(&mut self, buffer: &[u8], keep: usize) -> usize {
        let mut rest = buffer;
        // The standard library finds the byte many at a time here, which an iterator does not.
        let taken = rest.skip_until(b'\n').unwrap_or(buffer.len());
        let part = buffer.get(..taken).unwrap_or(buffer);
        let text = part.strip_suffix(b"\n");
        self.ended = text.is_some();
        let text = text.unwrap_or(part);
        let room = keep.saturating_sub(self.kept.len()).min(text.len());
        self.kept.extend(text.iter().take(room));
        self.cut = self.cut.saturating_add(wide(text.len() - room));
        taken
    }
}

fn too_far(shown: &str) -> Failure {
    Failure::Failed(format!(
        "that part of `{shown}` lies beyond the first {SCAN_BYTES_MAX} bytes"
    ))
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
