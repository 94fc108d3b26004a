//! Repositories below a directory, whose settings and hooks run for everyone who works in them, and settings of Rondo.
//!
//! They are looked for before a command and after it. The second time, a directory that is as it was need not be listed
//! again: its change time tells that, which no program can set. Directories of a repository that hold nothing but its
//! data are passed over, but for a repository that a file named `.git` leads to.

use crate::Unchecked;
use crate::directory::{Directory, Identity, identity};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The bound on directories that are looked at below one directory.
pub(crate) const DIRECTORIES_MAX: usize = 200_000;
/// Entry that makes a directory a repository.
pub(crate) const GIT: &str = ".git";
/// Directory of Rondo's settings, rules and scripts.
const RONDO: &str = ".rondo";
/// Directories of a repository with nothing but its data.
const DATA: [&str; 4] = ["objects", "refs", "logs", "lfs"];
/// A directory that was changed this long before it was looked at could be changed again without another change time,
/// on systems and file systems whose clock ticks slowly.
const TICK_MAX: Duration = Duration::from_secs(3);

/// A repository, what leads to one, or settings of Rondo.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NestedRepository {
    /// Path relative to the searched directory.
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
    /// A `.rondo` directory further down: Rondo started there obeys it.
    Rondo,
}

/// Findings below a directory.
#[derive(Debug, Default)]
pub(crate) struct Search {
    directories: HashMap<PathBuf, Listing>,
    pub(crate) unchecked: Vec<Unchecked>,
    /// Set if the directory itself lies in a repository.
    is_in_git: bool,
    /// Set if there were too many directories to visit all.
    is_cut_off: bool,
}

/// A directory as it was when it was listed.
#[derive(Debug)]
struct Listing {
    /// None if it could not be listed.
    stamp: Option<Stamp>,
    found: Vec<NestedRepository>,
    sockets: Vec<OsString>,
}

/// Metadata that changes when a file is written, or an entry of a directory is made, removed or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: Identity,
    changed: (i64, i64),
    /// Set if a later change might go unnoticed.
    is_fresh: bool,
}

impl Stamp {
    pub(crate) fn of(found: &Stat, now: Duration) -> Self {
        let changed = (found.st_ctime, found.st_ctime_nsec.cast_signed());
        let seconds = u64::try_from(found.st_ctime).unwrap_or_default();
        Self {
            identity: identity(found),
            changed,
            is_fresh: Duration::from_secs(seconds).saturating_add(TICK_MAX) >= now,
        }
    }
}

impl Stamp {
    /// Returns whether nothing can have changed since this stamp, given the present one.
    pub(crate) fn is_same(&self, now: &Self) -> bool {
        !self.is_fresh && self.identity == now.identity && self.changed == now.changed
    }
}

/// Facts about a directory from its entries.
#[derive(Default)]
struct DirectoryEntries {
    directories: Vec<(OsString, u64)>,
    git: Vec<(OsString, FileType)>,
    rondo: Vec<OsString>,
    sockets: Vec<OsString>,
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    has_common: bool,
}

impl DirectoryEntries {
    fn take(&mut self, name: &OsStr, kind: FileType, number: u64) {
        match name.as_bytes() {
            // A file system may take both cases for the same.
            bytes if bytes.eq_ignore_ascii_case(GIT.as_bytes()) => {
                self.git.push((name.to_owned(), kind));
            }
            bytes if bytes.eq_ignore_ascii_case(RONDO.as_bytes()) => {
                self.rondo.push(name.to_owned());
            }
            bytes if bytes.eq_ignore_ascii_case(b"HEAD") => self.has_head = true,
            bytes if bytes.eq_ignore_ascii_case(b"objects") => self.has_objects = true,
            bytes if bytes.eq_ignore_ascii_case(b"refs") => self.has_refs = true,
            bytes if bytes.eq_ignore_ascii_case(b"commondir") => self.has_common = true,
            _ => {}
        }
        match kind {
            FileType::Directory => self.directories.push((name.to_owned(), number)),
            FileType::Socket => self.sockets.push(name.to_owned()),
            _ => {}
        }
    }

    fn is_repository(&self) -> bool {
        self.has_head && (self.has_common || self.has_objects && self.has_refs)
    }

    /// Returns the repositories that the directory is, or names.
    fn found(&self, below: &Path) -> Vec<NestedRepository> {
        let mut found = Vec::new();
        for (name, kind) in &self.git {
            let kind = match kind {
                FileType::RegularFile => Some(FoundKind::File),
                FileType::Symlink => Some(FoundKind::Link),
                _ => None,
            };
            found.extend(kind.map(|kind| NestedRepository {
                below: below.join(name),
                kind,
            }));
        }
        // At the top it is kept by other means.
        let is_top = below.as_os_str().is_empty();
        found.extend(
            self.rondo
                .iter()
                .filter(|_| !is_top)
                .map(|name| NestedRepository {
                    below: below.join(name),
                    kind: FoundKind::Rondo,
                }),
        );
        let name = below.file_name().unwrap_or_default();
        if self.is_repository() || name.eq_ignore_ascii_case(GIT) {
            found.push(NestedRepository {
                below: below.to_owned(),
                kind: FoundKind::Repository,
            });
        }
        found
    }
}

impl Search {
    /// Looks below a directory. Links are not followed.
    pub(crate) fn new(root: &Directory, is_in_git: bool) -> Self {
        let mut search = Self {
            is_in_git,
            ..Self::default()
        };
        search.walk(root, vec![PathBuf::new()], DIRECTORIES_MAX);
        search
    }

    /// Returns whether it was a search of a directory that lies in a repository.
    pub(crate) fn is_in_git(&self) -> bool {
        self.is_in_git
    }

    /// Looks again below the same directory, wherever it is now.
    pub(crate) fn again(self, root: &Directory) -> Self {
        if self.is_cut_off {
            return Self::new(root, self.is_in_git);
        }
        let mut search = Self {
            is_in_git: self.is_in_git,
            ..Self::default()
        };
        let mut changed = Vec::new();
        for (path, listing) in self.directories {
            let now = root.stat_below(&path);
            let now = now.map(|it| it.map(|it| Stamp::of(&it, Duration::ZERO)));
            match (&listing.stamp, now) {
                (_, Ok(None)) => {}
                // A directory that took its place is found in the directory above.
                (Some(was), Ok(Some(now))) if now.identity != was.identity => {}
                (Some(was), Ok(Some(now))) if now.changed == was.changed && !was.is_fresh => {
                    search.directories.insert(path, listing);
                }
                _ => changed.push((path, listing)),
            }
        }
        changed.sort_by_key(|(path, _)| path.components().count());
        let paths = changed.iter().map(|(path, _)| path.clone()).collect();
        search.directories.extend(changed);
        search.walk(root, paths, DIRECTORIES_MAX);
        search
    }

    /// Returns the results, nearest first.
    pub(crate) fn found(&self) -> Vec<&NestedRepository> {
        let mut found: Vec<&NestedRepository> =
            self.directories.values().flat_map(|it| &it.found).collect();
        found.sort_by_key(|it| (it.below.components().count(), &it.below));
        found
    }

    /// Returns the sockets that have a path, from the directory that was searched.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        let listings = self.directories.iter();
        listings.flat_map(|(below, it)| it.sockets.iter().map(|name| below.join(name)))
    }

    /// Lists directories and those below them, but for those that are known.
    fn walk(&mut self, root: &Directory, from: Vec<PathBuf>, directories_max: usize) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut next = VecDeque::from(from);
        while let Some(below) = next.pop_front() {
            let is_listed_anew = self.directories.contains_key(&below);
            if self.directories.len() >= directories_max && !is_listed_anew {
                self.is_cut_off = true;
                let reason = format!("it has more than {directories_max} directories");
                let path = root.path().to_owned();
                return self.unchecked.push(Unchecked { path, reason });
            }
            let mut listed = DirectoryEntries::default();
            let shown = root.list_below(&below, |name, kind, number| {
                listed.take(name, kind, number);
            });
            let stamp = match shown {
                Ok(found) => Some(Stamp::of(&found, now)),
                Err(err) => {
                    self.pass_over(root, &below, &err);
                    None
                }
            };
            let holds_data = self.holds_data(&below, &listed);
            let is_data = |name: &OsStr| holds_data && DATA.iter().any(|it| name == *it);
            for (name, number) in &listed.directories {
                let path = below.join(name);
                let known = self.directories.get(&path).and_then(|it| it.stamp);
                let is_known = known.is_some_and(|it| it.identity.1 == *number);
                if !is_known && !is_data(name) {
                    next.push_back(path);
                }
            }
            let found = listed.found(&below);
            let listing = Listing {
                stamp,
                found,
                sockets: listed.sockets,
            };
            self.directories.insert(below, listing);
        }
    }

    /// Returns whether a directory is one that `git` keeps its data in, as it does in each `.git`.
    fn holds_data(&self, below: &Path, listed: &DirectoryEntries) -> bool {
        let is_in_git = self.is_in_git || below.iter().any(|it| it == GIT);
        is_in_git && listed.is_repository()
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

    fn paths(search: &Search) -> Vec<String> {
        let found = search.found();
        let paths = found.iter().map(|it| it.below.to_str().unwrap());
        let mut paths: Vec<String> = paths.map(str::to_owned).collect();
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
        let age = |search: &mut Search| {
            let stamps = search.directories.values_mut();
            stamps.for_each(|it| it.stamp.as_mut().unwrap().is_fresh = false);
        };
        age(&mut search);
        search = search.again(&held);
        assert_eq!(paths(&search), ["a/b/.git"]);
        age(&mut search);
        fs::rename(place.path().join("a"), place.path().join("c/a")).unwrap();
        make(&place, &["c/d/.git", "e/f/.git"]);
        make_bare(&place, "c/d/bare");
        search = search.again(&held);
        let expected = ["c/a/b/.git", "c/d/.git", "c/d/bare", "e/f/.git"];
        assert_eq!(paths(&search), expected);
        age(&mut search);
        fs::remove_dir_all(place.path().join("c/d")).unwrap();
        assert_eq!(paths(&search.again(&held)), ["c/a/b/.git", "e/f/.git"]);
    }

    #[test]
    fn more_directories_than_the_bound_are_said() {
        let place = tempfile::tempdir().unwrap();
        make(&place, &["a", "b", "c"]);
        let count = |max| {
            let mut search = Search::default();
            search.walk(&open(&place), vec![PathBuf::new()], max);
            search.unchecked.len()
        };
        assert_eq!((count(3), count(4), count(5)), (1, 0, 0));
    }
}
