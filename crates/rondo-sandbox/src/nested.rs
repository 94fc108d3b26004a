//! Repositories below a directory, whose settings and hooks are run by whoever works in them.
//!
//! They are looked for before a command and after it. The second time, a directory that is as it was need not be listed
//! again: its change time tells that, which no program can set. Directories of a repository that hold nothing but its
//! data are passed over, but for a repository that a file named `.git` leads to.

use crate::Unchecked;
use crate::directory::{Directory, Identity, identity};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The bound on directories that are looked at below one directory.
pub(crate) const DIRECTORIES_MAX: usize = 200_000;
/// What makes a directory a repository.
pub(crate) const GIT: &str = ".git";
/// Directories of a repository with nothing but its data.
const DATA: [&str; 4] = ["objects", "refs", "logs", "lfs"];
/// A directory that was changed this long before it was looked at could be changed again without another change time,
/// on systems and file systems whose clock ticks slowly.
const TICK_MAX: Duration = Duration::from_secs(3);

/// A repository, or what leads to one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Found {
    /// Where it is, from the directory that was searched.
    pub(crate) below: PathBuf,
    pub(crate) kind: FoundKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FoundKind {
    /// A directory with the settings of a repository.
    Repository,
    /// A file named `.git`, which names such a directory.
    File,
    /// A link named `.git`.
    Link,
}

/// What was found below a directory.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// Nearest first.
    pub(crate) found: Vec<Found>,
    pub(crate) unchecked: Vec<Unchecked>,
    directories: HashMap<PathBuf, Stamp>,
    /// Whether the directory itself lies in a repository.
    is_in_git: bool,
}

/// What changes when an entry of a directory is made, removed or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    identity: Identity,
    changed: (i64, i64),
    /// Whether a change since might not be seen.
    is_fresh: bool,
}

impl Stamp {
    fn of(found: &Stat, now: Duration) -> Self {
        let changed = (found.st_ctime, found.st_ctime_nsec.cast_signed());
        let seconds = u64::try_from(found.st_ctime).unwrap_or_default();
        Self {
            identity: identity(found),
            changed,
            is_fresh: Duration::from_secs(seconds).saturating_add(TICK_MAX) >= now,
        }
    }
}

/// What the entries of a directory say about it.
#[derive(Default)]
struct Listed {
    directories: Vec<(OsString, u64)>,
    git: Option<(OsString, FileType)>,
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    has_common: bool,
}

impl Listed {
    fn take(&mut self, name: &OsStr, kind: FileType, number: u64) {
        match name.as_bytes() {
            // A file system may take both cases for the same.
            bytes if bytes.eq_ignore_ascii_case(GIT.as_bytes()) => {
                self.git = Some((name.to_owned(), kind));
            }
            bytes if bytes.eq_ignore_ascii_case(b"HEAD") => self.has_head = true,
            bytes if bytes.eq_ignore_ascii_case(b"objects") => self.has_objects = true,
            bytes if bytes.eq_ignore_ascii_case(b"refs") => self.has_refs = true,
            bytes if bytes.eq_ignore_ascii_case(b"commondir") => self.has_common = true,
            _ => {}
        }
        if kind == FileType::Directory {
            self.directories.push((name.to_owned(), number));
        }
    }

    fn is_repository(&self) -> bool {
        self.has_head && (self.has_common || self.has_objects && self.has_refs)
    }
}

impl Search {
    /// Looks below a directory. Links are not followed.
    pub(crate) fn new(root: &Directory, is_in_git: bool) -> Self {
        let mut search = Self {
            is_in_git,
            ..Self::default()
        };
        search.walk(root, vec![PathBuf::new()], DIRECTORIES_MAX, None);
        search
    }

    /// Looks again below the same directory, wherever it is now, and returns all that is found.
    pub(crate) fn again(&self, root: &Directory) -> Self {
        let mut search = Self {
            found: self.found.clone(),
            is_in_git: self.is_in_git,
            ..Self::default()
        };
        let is_same = |path: &Path, was: &Stamp| {
            let found = root.stat_below(path);
            found
                .map(|it| it.map(|it| Stamp::of(&it, Duration::ZERO)))
                .map(|now| {
                    // What took its place is found in the directory above.
                    now.is_none_or(|now| {
                        now.identity != was.identity || now.changed == was.changed && !was.is_fresh
                    })
                })
                .unwrap_or_default()
        };
        let mut changed: Vec<PathBuf> = self
            .directories
            .iter()
            .filter(|(path, was)| !is_same(path, was))
            .map(|(path, _)| path.clone())
            .collect();
        changed.sort_by_key(|it| it.components().count());
        search.walk(root, changed, DIRECTORIES_MAX, Some(&self.directories));
        let mut seen = HashSet::new();
        search.found.retain(|it| seen.insert(it.clone()));
        search
    }

    /// Lists directories and those below them, but for those that are `known` and listed if they have changed.
    fn walk(
        &mut self,
        root: &Directory,
        from: Vec<PathBuf>,
        directories_max: usize,
        known: Option<&HashMap<PathBuf, Stamp>>,
    ) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut next = VecDeque::from(from);
        while let Some(below) = next.pop_front() {
            if self.directories.len() >= directories_max {
                let reason = format!("it has more than {directories_max} directories");
                let path = root.path().to_owned();
                return self.unchecked.push(Unchecked { path, reason });
            }
            let mut listed = Listed::default();
            let shown = root.list_below(&below, |name, kind, number| {
                listed.take(name, kind, number);
            });
            match shown {
                Ok(found) => {
                    let stamp = Stamp::of(&found, now);
                    self.directories.insert(below.clone(), stamp);
                }
                Err(err) => self.pass_over(root, &below, &err),
            }
            let is_in_git = self.is_in_git || below.iter().any(|it| it == GIT);
            let is_repository = listed.is_repository();
            let is_data =
                |name: &OsStr| is_in_git && is_repository && DATA.iter().any(|it| name == *it);
            for (name, number) in &listed.directories {
                let path = below.join(name);
                let was = known.and_then(|it| it.get(&path));
                let is_known = was.is_some_and(|it| it.identity.1 == *number);
                if !is_known && !is_data(name) {
                    next.push_back(path);
                }
            }
            self.take_found(below, &listed);
        }
    }

    fn take_found(&mut self, below: PathBuf, listed: &Listed) {
        if let Some((name, kind)) = &listed.git {
            let kind = match kind {
                FileType::RegularFile => Some(FoundKind::File),
                FileType::Symlink => Some(FoundKind::Link),
                _ => None,
            };
            self.found.extend(kind.map(|kind| Found {
                below: below.join(name),
                kind,
            }));
        }
        let is_git = below
            .file_name()
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(GIT.as_bytes()));
        if is_git || listed.is_repository() {
            let kind = FoundKind::Repository;
            self.found.push(Found { below, kind });
        }
    }

    /// Notes a directory that could not be listed, unless no command can reach what is in it.
    fn pass_over(&mut self, root: &Directory, below: &Path, err: &io::Error) {
        let raw = err.raw_os_error().map(Errno::from_raw_os_error);
        // It was removed, or something else is in its place, since its name was read.
        if matches!(raw, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) {
            return;
        }
        let is_closed = raw == Some(Errno::ACCESS)
            && root.open_below(below).is_ok_and(|it| !it.is_searchable());
        if !is_closed {
            self.unchecked.push(Unchecked {
                path: root.path().join(below),
                reason: format!("it cannot be listed: {err}"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn open(place: &tempfile::TempDir) -> Directory {
        Directory::open(&place.path().canonicalize().unwrap()).unwrap()
    }

    fn paths(search: &Search) -> Vec<&str> {
        let mut paths: Vec<&str> = search
            .found
            .iter()
            .map(|it| it.below.to_str().unwrap())
            .collect();
        paths.sort_unstable();
        paths
    }

    fn make(place: &tempfile::TempDir, folders: &[&str]) {
        for folder in folders {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
    }

    fn make_bare(place: &tempfile::TempDir, name: &str) {
        make(
            place,
            &[&format!("{name}/objects"), &format!("{name}/refs")],
        );
        fs::write(place.path().join(name).join("HEAD"), "").unwrap();
    }

    #[test]
    fn every_shape_of_a_repository_is_found_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        make(&place, &["b/.git", "c/d/.git", "e", "f", "g"]);
        for name in [".git", ".git/modules/a/b", "bare", "h/.bare"] {
            make_bare(&place, name);
        }
        make(
            &place,
            &[
                ".git/objects/x/.git",
                "bare/objects/x/.git",
                ".git/worktrees/w",
            ],
        );
        for file in [
            ".git/worktrees/w/HEAD",
            ".git/worktrees/w/commondir",
            "e/.git",
        ] {
            fs::write(place.path().join(file), "").unwrap();
        }
        for link in ["f/.git", "g/link"] {
            std::os::unix::fs::symlink(place.path().join("c"), place.path().join(link)).unwrap();
        }
        let search = Search::new(&open(&place), false);
        let expected = [
            ".git",
            ".git/modules/a/b",
            ".git/worktrees/w",
            "b/.git",
            "bare",
            "bare/objects/x/.git",
            "c/d/.git",
            "e/.git",
            "f/.git",
            "h/.bare",
        ];
        assert_eq!(paths(&search), expected);
        assert!(search.unchecked.is_empty());
        assert_eq!(paths(&search.again(&open(&place))), expected);
    }

    #[test]
    fn what_was_made_or_moved_since_is_found_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        make(&place, &["a/b/.git", "c/d"]);
        let held = open(&place);
        let mut search = Search::new(&held, false);
        // As if all of it had been made long ago.
        search
            .directories
            .values_mut()
            .for_each(|it| it.is_fresh = false);
        assert_eq!(paths(&search.again(&held)), ["a/b/.git"]);
        fs::rename(place.path().join("a"), place.path().join("c/a")).unwrap();
        make(&place, &["c/d/.git", "e/f/.git"]);
        make_bare(&place, "c/d/bare");
        let found = search.again(&held);
        let found = paths(&found);
        for path in ["c/a/b/.git", "c/d/.git", "c/d/bare", "e/f/.git"] {
            assert!(found.contains(&path), "{path}: {found:?}");
        }
    }

    #[test]
    fn more_directories_than_the_bound_are_said() {
        let place = tempfile::tempdir().unwrap();
        make(&place, &["a", "b", "c"]);
        let count = |max| {
            let mut search = Search::default();
            search.walk(&open(&place), vec![PathBuf::new()], max, None);
            search.unchecked.len()
        };
        assert_eq!((count(3), count(4), count(5)), (1, 0, 0));
    }
}
