//! Notes about entries of commands that were set aside, for other commands that run in the same directories.
//!
//! A command that begins while something is there takes it for what was there before. If it is set aside meanwhile, as
//! another command's, and the first one makes it again, that is new all the same.

use crate::directory::Identity;
use crate::{Readers, replace_file};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The name of the file, in the directory of the ledger.
const NAME: &str = "set-aside";
/// The length from which on it is shortened, and the bound on what is read of it, in bytes.
const LENGTH_MIN: u64 = 1 << 20;
const LENGTH_MAX: u64 = 8 << 20;
/// How long a note is kept: longer than a command may run.
const KEPT_FOR: Duration = Duration::from_hours(48);

/// Something that was set aside: the directory that it was in, its name and what it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SetAsideNote {
    place: Identity,
    hash: u64,
}

impl SetAsideNote {
    pub(crate) fn new(place: Identity, file: &Path, value: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (file, value).hash(&mut hasher);
        let hash = hasher.finish();
        Self { place, hash }
    }
}

/// The notes of all commands, and when one began.
#[derive(Debug)]
pub(crate) struct SetAsideNotes {
    file: PathBuf,
    began: Duration,
}

impl SetAsideNotes {
    /// Returns the notes in the directory of a ledger, for a command that begins now.
    pub(crate) fn new(ledger: &Path) -> Self {
        Self {
            file: ledger.join(NAME),
            began: now(),
        }
    }

    /// Notes the files that are set aside. A note that cannot be written is missing to other commands alone.
    pub(crate) fn add(&self, marks: impl Iterator<Item = SetAsideNote>) {
        let now = now();
        let lines = marks.map(|it| line(now, it));
        let text: String = lines.collect();
        if text.is_empty() {
            return;
        }
        if fs::metadata(&self.file).is_ok_and(|it| it.len() >= LENGTH_MIN) {
            self.shorten(now.saturating_sub(KEPT_FOR));
        }
        if let Some(directory) = self.file.parent() {
            let mut builder = fs::DirBuilder::new();
            let _ = builder.recursive(true).mode(0o700).create(directory);
        }
        let mut options = OpenOptions::new();
        let opened = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.file);
        let _ = opened.and_then(|mut it| it.write_all(text.as_bytes()));
    }

    /// Returns the files set aside since the command began.
    pub(crate) fn since_it_began(&self) -> HashSet<SetAsideNote> {
        let notes = self.read().into_iter();
        let since = notes.filter(|it| it.0 >= self.began);
        since.map(|it| it.1).collect()
    }

    fn read(&self) -> Vec<(Duration, SetAsideNote)> {
        let mut text = String::new();
        let Ok(file) = File::open(&self.file) else {
            return Vec::new();
        };
        // Lines after an unreadable one are read all the same.
        let _ = file.take(LENGTH_MAX).read_to_string(&mut text);
        text.lines().filter_map(note).collect()
    }

    fn shorten(&self, since: Duration) {
        let notes = self.read().into_iter().filter(|it| it.0 >= since);
        let text: String = notes.map(|(at, mark)| line(at, mark)).collect();
        // Notes that cannot be written stay as they are.
        let _ = replace_file(&self.file, text.as_bytes(), Readers::Owner);
    }
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

fn line(at: Duration, mark: SetAsideNote) -> String {
    let SetAsideNote {
        place: (device, inode),
        hash,
    } = mark;
    format!("{} {device} {inode} {hash}\n", at.as_micros())
}

fn note(line: &str) -> Option<(Duration, SetAsideNote)> {
    let mut numbers = line.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let at = Duration::from_micros(next()?);
    let (place, hash) = ((next()?, next()?), next()?);
    Some((at, SetAsideNote { place, hash }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_beside_the_notes_is_gone_after_they_are_shortened() {
        let place = tempfile::tempdir().unwrap();
        let notes = SetAsideNotes::new(place.path());
        notes.add([SetAsideNote::new((1, 2), Path::new("a"), b"x")].into_iter());
        fs::write(place.path().join(format!("{NAME}.new")), "half of it").unwrap();
        notes.shorten(Duration::ZERO);
        let entries = fs::read_dir(place.path()).unwrap();
        let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, [NAME]);
        assert_eq!(notes.since_it_began().len(), 1);
    }

    #[test]
    fn what_was_set_aside_before_a_command_began_is_not_its_concern() {
        let place = tempfile::tempdir().unwrap();
        let ledger = place.path().join("ledger");
        let first = SetAsideNotes::new(&ledger);
        let mark = |name: &str| SetAsideNote::new((1, 2), Path::new(name), b"x");
        assert!(first.since_it_began().is_empty());
        first.add([mark("a"), mark("b")].into_iter());
        fs::write(first.file.with_extension("other"), "").unwrap();
        let found = HashSet::from([mark("a"), mark("b")]);
        assert_eq!(first.since_it_began(), found);
        let later = SetAsideNotes {
            began: first.began + Duration::from_hours(1),
            ..SetAsideNotes::new(&ledger)
        };
        assert!(later.since_it_began().is_empty());
        first.shorten(Duration::ZERO);
        assert_eq!(first.since_it_began(), found);
        first.shorten(later.began);
        assert!(first.since_it_began().is_empty());
        assert_ne!(mark("a"), SetAsideNote::new((1, 2), Path::new("a"), b"y"));
    }
}
