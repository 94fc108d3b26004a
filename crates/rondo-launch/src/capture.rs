//! Keeps what a command wrote, within bounds.

use super::clean::Cleaner;
use rondo_core::redact::{Redactor, Secrets};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Keeps the head and the tail of the output in memory, and the whole in a file once it is more.
pub struct Capture {
    cleaner: Cleaner,
    /// Behind the cleaner: terminal sequences split no secret.
    redactor: Redactor,
    kept: CapturedOutput,
}

/// Captured output.
pub struct Captured {
    /// Head, mark and tail.
    pub text: String,
    /// How many bytes were left out.
    pub omitted_bytes: u64,
    /// The file with the whole output, if some was left out and the file could be written.
    pub(super) spill: Option<PathBuf>,
}

struct CapturedOutput {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
    spill: Spill,
}

enum Spill {
    /// Everything still fits in memory.
    NotNeeded { path: PathBuf, bytes_max: u64 },
    /// The file is being written.
    Open {
        path: PathBuf,
        file: BufWriter<File>,
        room: u64,
    },
    /// The file has reached its bound.
    Full { path: PathBuf },
    /// The file cannot be written.
    Broken,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl Capture {
    /// Keeps at most `bytes_max` bytes in memory and `spill_bytes_max` in `spill`.
    pub(super) fn new(bytes_max: usize, spill: PathBuf, spill_bytes_max: u64) -> Self {
        let spill = Spill::NotNeeded {
            path: spill,
            bytes_max: spill_bytes_max,
        };
        Self::with(bytes_max, spill)
    }

    /// Keeps at most `bytes_max` bytes, and the rest nowhere.
    pub fn in_memory(bytes_max: usize) -> Self {
        Self::with(bytes_max, Spill::Broken)
    }

    fn with(bytes_max: usize, spill: Spill) -> Self {
        let head_max = bytes_max / 2;
        Self {
            cleaner: Cleaner::default(),
            redactor: Secrets::default().redactor(),
            kept: CapturedOutput {
                head: Vec::new(),
                head_max,
                tail: VecDeque::new(),
                tail_max: bytes_max - head_max,
                total: 0,
                spill,
            },
        }
    }

    /// Keeps nothing of these.
    pub fn without(mut self, secrets: &Secrets) -> Self {
        self.redactor = secrets.redactor();
        self
    }

    /// Takes output as the command wrote it.
    pub fn push(&mut self, bytes: &[u8]) {
        let (kept, redactor) = (&mut self.kept, &mut self.redactor);
        self.cleaner
            .feed(bytes, &mut |text| kept.push(&redactor.push(text)));
    }

    /// Returns the bytes kept by now.
    pub(super) fn so_far(&self) -> Vec<u8> {
        let mut text = self.kept.head.clone();
        let omitted = self.kept.omitted();
        if omitted > 0 {
            text.extend_from_slice(mark(omitted, None).as_bytes());
        }
        let (front, back) = self.kept.tail.as_slices();
        let unfinished = self.redactor.peek(self.cleaner.unfinished().as_bytes());
        for part in [front, back, &unfinished] {
            text.extend_from_slice(part);
        }
        text
    }

    /// Returns the bytes kept.
    pub fn finish(mut self) -> Captured {
        let (kept, redactor) = (&mut self.kept, &mut self.redactor);
        self.cleaner
            .finish(&mut |text| kept.push(&redactor.push(text)));
        kept.push(&redactor.finish());
        self.kept.finish()
    }
}

impl CapturedOutput {
    fn push(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let fitted = self.total;
        self.total = self.total.saturating_add(text.len() as u64);
        if self.total > (self.head_max + self.tail_max) as u64 {
            if fitted <= (self.head_max + self.tail_max) as u64 {
                self.open_spill();
            }
            self.spill.write(text);
        }
        let room = self.head_max - self.head.len();
        let (head, rest) = text.split_at(room.min(text.len()));
        self.head.extend_from_slice(head);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, rest: &[u8]) {
        let (_, last) = rest.split_at(rest.len().saturating_sub(self.tail_max));
        let excess = (self.tail.len() + last.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(last);
    }

    fn open_spill(&mut self) {
        self.spill.open();
        self.spill.write(&self.head);
        let (front, back) = self.tail.as_slices();
        self.spill.write(front);
        self.spill.write(back);
    }

    fn omitted(&self) -> u64 {
        self.total
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    fn finish(mut self) -> Captured {
        let omitted = self.omitted();
        let spill = self.spill.close();
        let tail = self.tail.make_contiguous();
        if omitted == 0 {
            self.head.extend_from_slice(tail);
            return Captured {
                text: String::from_utf8_lossy(&self.head).into_owned(),
                omitted_bytes: 0,
                spill: None,
            };
        }
        let mark = mark(omitted, spill.as_ref());
        let (head, tail) = (whole_head(&self.head), whole_tail(tail));
        Captured {
            text: format!("{head}{mark}{tail}"),
            omitted_bytes: omitted,
            spill: spill.map(|(path, _)| path),
        }
    }
}

impl Spill {
    fn open(&mut self) {
        let Self::NotNeeded { path, bytes_max } = self else {
            return;
        };
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&*path);
        *self = match opened {
            Ok(file) => Self::Open {
                path: std::mem::take(path),
                file: BufWriter::new(file),
                room: *bytes_max,
            },
            Err(_) => Self::Broken,
        };
    }

    fn write(&mut self, bytes: &[u8]) {
        let Self::Open { path, file, room } = self else {
            return;
        };
        let fits = usize::try_from(*room)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let (now, over) = bytes.split_at(fits);
        *room -= fits as u64;
        if file.write_all(now).is_err() {
            *self = Self::Broken;
        } else if !over.is_empty() {
            let flushed = file.flush();
            let path = std::mem::take(path);
            *self = flushed.map_or(Self::Broken, |()| Self::Full { path });
        }
    }

    /// Returns the file and whether it holds everything.
    fn close(self) -> Option<(PathBuf, bool)> {
        match self {
            Self::Open { path, mut file, .. } => file.flush().ok().map(|()| (path, true)),
            Self::Full { path } => Some((path, false)),
            Self::NotNeeded { .. } | Self::Broken => None,
        }
    }
}

fn mark(omitted: u64, spill: Option<&(PathBuf, bool)>) -> String {
    let place = |path: &Path| path.display().to_string();
    match spill {
        Some((path, true)) => format!(
            "\n[... {omitted} bytes left out; the whole output is in {} ...]\n",
            place(path)
        ),
        Some((path, false)) => format!(
            "\n[... {omitted} bytes left out; the output up to the limit of the file is in {} ...]\n",
            place(path)
        ),
        None => format!("\n[... {omitted} bytes left out ...]\n"),
    }
}

fn whole_head(bytes: &[u8]) -> String {
    let end = match std::str::from_utf8(bytes) {
        Err(err) if err.error_len().is_none() => err.valid_up_to(),
        _ => bytes.len(),
    };
    String::from_utf8_lossy(bytes.split_at(end).0).into_owned()
}

fn whole_tail(bytes: &[u8]) -> String {
    let continued = bytes
        .iter()
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    String::from_utf8_lossy(bytes.split_at(continued).1).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(bytes_max: usize, spill_max: u64, chunks: &[&str]) -> (Captured, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.out");
        let mut capture = Capture::new(bytes_max, path.clone(), spill_max);
        for chunk in chunks {
            capture.push(chunk.as_bytes());
        }
        let captured = capture.finish();
        (captured, std::fs::read_to_string(path).ok())
    }

    #[test]
    fn at_the_bound_nothing_is_left_out_and_one_byte_more_spills() {
        for chunks in [&["abcdefghij"][..], &["abc", "defgh", "ij"]] {
            let (kept, file) = captured(10, 100, chunks);
            assert_eq!((kept.text.as_str(), kept.omitted_bytes), ("abcdefghij", 0));
            assert_eq!(file, None);
        }
        for chunks in [&["abcdefghijk"][..], &["abc", "defgh", "ijk"]] {
            let (kept, file) = captured(10, 100, chunks);
            assert!(
                kept.text
                    .starts_with("abcde\n[... 1 bytes left out; the whole")
            );
            assert!(kept.text.ends_with("...]\nghijk"));
            assert_eq!(file.as_deref(), Some("abcdefghijk"));
        }
    }

    #[test]
    fn a_full_spill_file_says_so() {
        for (spill_max, whole) in [(19, false), (20, true), (21, true)] {
            let (kept, file) = captured(4, spill_max, &["0123456789", "0123456789"]);
            assert_eq!(kept.text.contains("the whole output is in"), whole);
            assert_eq!(file.unwrap().len() as u64, spill_max.min(20));
            assert_eq!(kept.omitted_bytes, 16);
        }
    }

    #[test]
    fn no_character_is_cut() {
        let (kept, _) = captured(5, 100, &["\u{20ac}\u{20ac}\u{20ac}\u{20ac}"]);
        assert!(!kept.text.contains('\u{fffd}'), "{}", kept.text);
        assert!(kept.text.ends_with("\n\u{20ac}"));
    }
}
