//! History of typed lines, across sessions: one file with a JSON object on each line, shared by all modes and by both
//! prompts. An entry of another mode is recalled as it would be typed in this one.

use super::mode::Mode;
use rondo_core::clock::Clock;
use rondo_core::redact::Secrets;
use rondo_runtime::assignments::{is_export, mask};
use rondo_runtime::files::{Readers, replace_file};
use rondo_runtime::secrets::KeyNames;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The file of the typed lines, in the state directory.
pub const FILE: &str = "repl-history.jsonl";
/// The bound on entries that are kept.
const ENTRIES_MAX: usize = 10_000;
/// Bytes of the file that are read, from its end; beyond them it is written again.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// The bound on a line that is kept, in bytes; a longer one is recalled in this session alone.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Mode of the file: typed lines are private to the user.
const PRIVATE: u32 = 0o600;

/// The lines that were typed, the oldest first.
pub struct TypedLines {
    entries: Vec<Entry>,
    /// Nothing is written if there is none.
    file: Option<PathBuf>,
    key_names: KeyNames,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    at_ms: u64,
    mode: String,
    line: String,
}

impl Entry {
    fn mode(&self) -> Mode {
        Mode::named(&self.mode).unwrap_or(Mode::Agent)
    }
}

impl TypedLines {
    /// Reads the kept history. A file that cannot be read counts as empty: a prompt without a past is better than
    /// no prompt.
    #[must_use]
    pub fn read(file: Option<PathBuf>, key_names: KeyNames) -> Self {
        let entries = match file.as_deref().map(read) {
            Some(Ok(entries)) => entries,
            Some(Err(err)) => {
                tracing::info!(%err, "what was typed before cannot be read");
                Vec::new()
            }
            None => Vec::new(),
        };
        Self {
            entries,
            file,
            key_names,
        }
    }

    /// Keeps a line that was typed in a mode, without its secrets. A line equal to the last one is not kept
    /// again.
    pub fn push(&mut self, line: &str, mode: Mode, secrets: &Secrets) {
        let entry = Entry {
            at_ms: Clock::system().now().0,
            mode: mode.name().to_owned(),
            line: secrets.text(self.without_keys(line.trim_end(), mode)),
        };
        let is_same = |last: &Entry| (&last.mode, &last.line) == (&entry.mode, &entry.line);
        if entry.line.is_empty() || self.entries.last().is_some_and(is_same) {
            return;
        }
        let is_kept = entry.line.len() <= LINE_BYTES_MAX;
        if let Some(file) = self.file.as_deref().filter(|_| is_kept)
            && let Err(err) = append(file, &entry)
        {
            tracing::info!(%err, "what is typed cannot be kept");
            self.file = None;
        }
        self.entries.push(entry);
    }

    /// Takes out of a line for the shell the keys that are not known before it has run.
    fn without_keys(&self, line: &str, mode: Mode) -> String {
        let begin = line.trim_start();
        let is_for_shell = match mode {
            Mode::Shell => !begin.starts_with('#'),
            Mode::Agent | Mode::Python => {
                begin.starts_with('!') || is_export(line, &self.key_names)
            }
        };
        match is_for_shell {
            true => mask(line, &self.key_names).line,
            false => line.to_owned(),
        }
    }

    /// Returns how many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a line as it would be typed in a mode.
    #[must_use]
    pub fn spelled(&self, at: usize, here: Mode) -> Option<String> {
        let entry = self.entries.get(at)?;
        Some(here.spelled(entry.mode(), &entry.line))
    }

    /// Forgets all lines; the file stays.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err),
    };
    let length = file.metadata()?.len();
    let from = length.saturating_sub(FILE_BYTES_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    // A line that a crash or the bound cut off is left out.
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut entries: Vec<Entry> = lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let surplus = entries.len().saturating_sub(ENTRIES_MAX);
    entries.drain(..surplus);
    if from > 0 || surplus > ENTRIES_MAX {
        rewrite(path, &entries)?;
    }
    Ok(entries)
}

/// Several prompts write to one file; a line that is written at once stays whole.
fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let options = options.append(true).create(true).mode(PRIVATE);
    options.open(path)?.write_all(&line_of(entry))
}

fn rewrite(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let lines: Vec<u8> = entries.iter().flat_map(line_of).collect();
    replace_file(path, &lines, Readers::Owner)
}

fn line_of(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_on_entries_keeps_the_latest() {
        let folder = tempfile::tempdir().unwrap();
        let entry = |number: usize| Entry {
            at_ms: 1,
            mode: "agent".into(),
            line: format!("line {number}"),
        };
        let count = 2 * ENTRIES_MAX + 1;
        let entries: Vec<Entry> = (0..count).map(entry).collect();
        let file = folder.path().join("history.jsonl");
        rewrite(&file, &entries).unwrap();
        let kept = read(&file).unwrap();
        assert_eq!(kept.len(), ENTRIES_MAX);
        assert_eq!(kept.last(), entries.last());
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(written.lines().count(), ENTRIES_MAX);
    }
}
