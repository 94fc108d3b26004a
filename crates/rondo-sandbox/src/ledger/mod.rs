//! Content of a folder's protected files before the commands that run in it now, kept out of reach of commands.
//!
//! The processes that watch a command can be killed, and what it changed cannot always be put back. So the content of
//! the protected files is written down before it starts, and the entry is removed when they have been compared
//! afterwards. An entry that is left says that a person has to look at the folder. While no command runs there is no
//! entry, so that what people change themselves does not count.

mod process;
mod record;
mod repositories;
mod snapshot;

use process::Process;
use record::Record;
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The bound on entries that are read.
const ENTRIES_MAX: usize = 10_000;
/// The bound on differences that are returned.
const DIFFERENCES_MAX: usize = 1_000;
/// The bound on an entry, in bytes: its content, and its list of files.
const ENTRY_BYTES_MAX: u64 = 32 << 20;
/// Suffix of the name of an entry.
const ENDING: &str = ".entry";

/// The entries of all commands, in a directory of Rondo's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger(PathBuf);

/// The entry of one command.
#[derive(Debug)]
#[must_use = "the directories of an entry that is not ended have to be reviewed"]
pub struct Entry {
    file: PathBuf,
    record: Record,
    content: Vec<u8>,
    /// Changes by other commands that were running when this one began; `None` if there were none.
    changed_by_others: Option<Vec<PathBuf>>,
}

/// How a protected file differs from what it was before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It was not there.
    Added,
    /// It held something else, or had another mode.
    Changed,
    /// It is not there any more.
    Removed,
    /// It could not be compared, or was not compared when the command ended.
    Unchecked,
}

/// A protected file that differs from what it was before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The directory that the command worked in.
    pub root: PathBuf,
    /// The file, absolute.
    pub path: PathBuf,
    /// How it differs.
    pub kind: DifferenceKind,
    /// Content before; `None` if it did not exist, or was too large to keep.
    pub before: Option<Vec<u8>>,
    /// Content now; `None` if it does not exist, or is too large to show.
    pub now: Option<Vec<u8>>,
}

impl Ledger {
    /// Returns the ledger in a directory, which need not exist.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Writes down what the protected names of these directories hold. `supervisor` is the id of the process that will
    /// compare them, and the time when it started.
    ///
    /// # Errors
    /// When the entry cannot be written.
    pub fn begin(
        &self,
        key: &str,
        supervisor: (u32, u64),
        roots: &[PathBuf],
        protected: &[&str],
    ) -> io::Result<Entry> {
        let mut directory = fs::DirBuilder::new();
        directory.recursive(true).mode(0o700).create(&self.0)?;
        let (pid, start_time) = supervisor;
        let mut content = Vec::new();
        let began = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let snapshot = Snapshot::take(roots, protected, &mut content);
        let mut entry = Entry {
            file: self.0.join(format!("{pid}-{start_time}-{key}{ENDING}")),
            record: Record::new(Process { pid, start_time }, began, protected, snapshot),
            content,
            // After the snapshot: what changes from now on differs from it.
            changed_by_others: self.changed_by_running(roots),
        };
        let changed = entry.changed_by_others.as_deref().unwrap_or_default();
        entry.record.doubt(changed);
        entry.write()?;
        Ok(entry)
    }

    /// Returns how the protected files of these directories, of those above them and of those below them differ from what
    /// they were before commands that are over. The entries of commands that left no difference are removed.
    #[must_use]
    pub fn differences(&self, roots: &[PathBuf]) -> Vec<Difference> {
        let mut entries = self.entries(roots);
        entries.sort_by_key(|entry| entry.record.began_us);
        let mut found = BTreeMap::new();
        for entry in entries {
            if entry.record.is_running() {
                continue;
            }
            let differences = entry.differences();
            if differences.is_empty() {
                let _ = fs::remove_file(&entry.file);
            }
            for difference in differences {
                // The person knows what a file held before the first of several commands.
                found.entry(difference.path.clone()).or_insert(difference);
            }
        }
        found.into_values().take(DIFFERENCES_MAX).collect()
    }

    /// Removes the entries of these directories, of those above them and of those below them, if their commands are over:
    /// a person has seen the differences.
    ///
    /// # Errors
    /// When an entry cannot be removed.
    pub fn accept(&self, roots: &[PathBuf]) -> io::Result<()> {
        let entries = self.entries(roots).into_iter();
        for entry in entries.filter(|it| !it.record.is_running()) {
            fs::remove_file(&entry.file)?;
        }
        Ok(())
    }

    /// Returns the changes of the commands that run in these directories, in those above them and in those below them;
    /// none if no command runs there.
    fn changed_by_running(&self, roots: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let mut running = self.entries(roots);
        running.retain(|it| it.record.is_running());
        let differences = running.iter().flat_map(|it| it.differences_of_files().0);
        (!running.is_empty()).then(|| differences.map(|it| it.path).collect())
    }

    /// Returns the entries of these directories, of those above them and of those below them. A file that is not an entry,
    /// such as one that a power failure cut short, says nothing about any directory.
    fn entries(&self, roots: &[PathBuf]) -> Vec<Entry> {
        let listed = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let files = listed.map(|it| it.path()).take(ENTRIES_MAX);
        let files = files.filter(|it| it.to_string_lossy().ends_with(ENDING));
        files
            .filter_map(|file| Entry::read(file).ok())
            .filter(|entry| entry.record.is_about(roots))
            .collect()
    }
}

impl Entry {
    /// Compares the protected files when the command and everything that it started have ended, and removes the entry if
    /// nothing differs. `not_restored` are paths that were changed and could not be put back. Returns whether nothing
    /// differs.
    ///
    /// # Errors
    /// When the entry can be neither removed nor written.
    pub fn end(mut self, not_restored: &[PathBuf]) -> io::Result<bool> {
        let doubtful = not_restored.iter().filter(|it| self.is_doubtful(it));
        let doubtful: Vec<&Path> = doubtful.map(PathBuf::as_path).collect();
        self.record.end(not_restored, &doubtful);
        if self.differences().is_empty() {
            fs::remove_file(&self.file)?;
            return Ok(true);
        }
        self.write()?;
        Ok(false)
    }

    /// Returns whether a path was perhaps not what it should be when the command began: another command ran, which had
    /// changed it or can have. To make it what it was then is not to put it back.
    #[must_use]
    pub fn is_doubtful(&self, path: &Path) -> bool {
        let Some(changed) = &self.changed_by_others else {
            return false;
        };
        let is_changed = changed.iter().any(|it| it.starts_with(path));
        // Of what no snapshot has, nothing is planted where nothing is.
        is_changed || !self.record.snapshot.has(path) && path.symlink_metadata().is_ok()
    }

    fn read(file: PathBuf) -> io::Result<Self> {
        let mut bytes = Vec::new();
        fs::File::open(&file)?
            .take(ENTRY_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        let line = bytes.iter().position(|byte| *byte == b'\n');
        let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
        let content = bytes.split_off(line.saturating_add(1));
        Ok(Self {
            file,
            record: serde_json::from_slice(&bytes)?,
            content,
            changed_by_others: None,
        })
    }

    /// Puts the entry into its place as a whole, so that no reader sees half of it.
    fn write(&self) -> io::Result<()> {
        let partial = self.file.with_extension("part");
        let mut bytes = serde_json::to_vec(&self.record)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.content);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        file.write_all(&bytes)?;
        fs::rename(partial, &self.file)
    }

    fn differences(&self) -> Vec<Difference> {
        let record = &self.record;
        let (mut differences, now) = self.differences_of_files();
        let known = |path: &Path| record.snapshot.has(path) || now.has(path);
        let unchecked = record.unchecked(known);
        differences.extend(unchecked.map(|path| self.unchecked(path)));
        if differences.is_empty() && !record.is_settled() {
            let roots = record.roots().into_iter();
            differences.extend(roots.map(|root| self.unchecked(root)));
        }
        differences
    }

    /// Returns how the protected files differ, and what they are now.
    fn differences_of_files(&self) -> (Vec<Difference>, Snapshot) {
        let record = &self.record;
        let now = Snapshot::now(&record.roots(), &record.protected());
        let before = &record.snapshot;
        let differences = before.differences(&self.content, record.began_us, &now);
        (differences, now)
    }

    fn unchecked(&self, path: PathBuf) -> Difference {
        Difference {
            root: self.record.root_of(&path),
            now: snapshot::shown(&path),
            path,
            kind: DifferenceKind::Unchecked,
            before: None,
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
