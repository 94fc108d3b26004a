//! The history of typed lines, across sessions: one file with a JSON object on each line, shared by all modes.
//! An entry of another mode is recalled as it would be typed in this one.

use super::shared::Shared;
use crate::repl::mode::Mode;
use reedline::{
    CommandLineSearch, History, HistoryItem, HistoryItemId, HistorySessionId, ReedlineError,
    ReedlineErrorVariants, Result, SearchDirection, SearchQuery,
};
use rondo_core::clock::Clock;
use rondo_runtime::assignments::{is_export, mask};
use rondo_runtime::secrets::KeyNames;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The bound on entries that are kept.
const ENTRIES_MAX: usize = 10_000;
/// Bytes of the file that are read, from its end; beyond them it is written anew.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// The bound on a line that is kept, in bytes; a longer one is recalled in this session alone.
const LINE_BYTES_MAX: usize = 64 << 10;
/// What was typed is the user's business alone.
const PRIVATE: u32 = 0o600;

/// The lines that were typed, the oldest first.
pub(super) struct Lines {
    entries: Vec<Entry>,
    /// Nothing is written where there is none.
    file: Option<PathBuf>,
    shared: Shared,
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

impl Lines {
    /// Reads what is kept. A file that cannot be read is none: a prompt without a past is better than
    /// no prompt.
    pub(super) fn read(file: Option<PathBuf>, shared: Shared, key_names: KeyNames) -> Self {
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
            shared,
            key_names,
        }
    }

    fn push(&mut self, line: &str) {
        let mode = self.shared.mode();
        let entry = Entry {
            at_ms: Clock::system().now().0,
            mode: mode.name().to_owned(),
            line: self
                .shared
                .secrets()
                .text(self.without_keys(line.trim_end(), mode)),
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

    fn item(&self, at: usize) -> Option<HistoryItem> {
        let entry = self.entries.get(at)?;
        let line = self.shared.mode().spelled(entry.mode(), &entry.line);
        let id = i64::try_from(at).ok()?;
        Some(HistoryItem {
            id: Some(HistoryItemId::new(id)),
            ..HistoryItem::from_command_line(line)
        })
    }

    /// Returns the places that a query looks at, in its order.
    fn places(&self, query: &SearchQuery) -> Vec<usize> {
        let place = |id: HistoryItemId| usize::try_from(id.0).ok();
        let (start, end) = (query.start_id.and_then(place), query.end_id.and_then(place));
        let all = 0..self.entries.len();
        match query.direction {
            SearchDirection::Forward => all
                .filter(|at| start.is_none_or(|start| *at > start))
                .filter(|at| end.is_none_or(|end| *at <= end))
                .collect(),
            SearchDirection::Backward => all
                .rev()
                .filter(|at| start.is_none_or(|start| *at < start))
                .filter(|at| end.is_none_or(|end| *at >= end))
                .collect(),
        }
    }
}

impl History for Lines {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        self.push(&item.command_line);
        let last = self.entries.len().saturating_sub(1);
        Ok(self.item(last).unwrap_or(item))
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        let at = usize::try_from(id.0).ok();
        at.and_then(|at| self.item(at)).ok_or(NOT_THERE)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        let found = self.search(query)?.len();
        Ok(i64::try_from(found).unwrap_or(i64::MAX))
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        let most = query.limit.and_then(|limit| usize::try_from(limit).ok());
        // Each step through the history must show something else.
        let from = query.start_id.and_then(|id| self.load(id).ok());
        let is_new = |item: &HistoryItem| {
            from.as_ref()
                .is_none_or(|from| from.command_line != item.command_line)
        };
        let fits = |item: &HistoryItem| match &query.filter.command_line {
            Some(CommandLineSearch::Prefix(text)) => item.command_line.starts_with(text),
            Some(CommandLineSearch::Substring(text)) => item.command_line.contains(text),
            Some(CommandLineSearch::Exact(text)) => item.command_line == *text,
            None => true,
        };
        let places = self.places(&query).into_iter();
        let items = places.filter_map(|at| self.item(at));
        let found = items.filter(|item| is_new(item) && fits(item));
        Ok(found.take(most.unwrap_or(usize::MAX)).collect())
    }

    fn update(&mut self, _: HistoryItemId, _: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn clear(&mut self) -> Result<()> {
        self.entries.clear();
        Ok(())
    }

    fn delete(&mut self, _: HistoryItemId) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        None
    }
}

const NOT_THERE: ReedlineError = ReedlineError(ReedlineErrorVariants::OtherHistoryError(
    "there is no such entry",
));
const UNSUPPORTED: ReedlineError =
    ReedlineError(ReedlineErrorVariants::HistoryFeatureUnsupported {
        history: "rondo",
        feature: "changing an entry",
    });

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
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    let options = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE);
    let mut file = options.open(&beside)?;
    let lines: Vec<u8> = entries.iter().flat_map(line_of).collect();
    file.write_all(&lines)?;
    std::fs::rename(beside, path)
}

fn line_of(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
