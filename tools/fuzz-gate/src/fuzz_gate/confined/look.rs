//! State of files: mode, owner, size, times, content and attributes.

use anyhow::{Result, bail};
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The most files that are looked at.
const FILES_MAX: usize = 100_000;
/// Bytes that are read of one file.
const BYTES_MAX: u64 = 1 << 20;
/// Permissions to read and enter a directory, for its owner.
const OPEN: u32 = 0o700;
const MODE_BITS: u32 = 0o7777;

/// Files at one time.
pub(super) type Snapshot = BTreeMap<PathBuf, Entry>;

/// One file, directory or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) inode: (u64, u64),
    pub(super) mode: u32,
    owner: (u32, u32),
    size: u64,
    modified: (i64, i64),
    /// Changes with every change, whatever times a program sets.
    changed: (i64, i64),
    links: u64,
    content: u64,
    attributes: u64,
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let (mut size, mut links) = (metadata.len(), metadata.nlink());
        if metadata.is_dir() {
            // Those of a directory say what is in it, which is seen by itself.
            (size, links) = (0, 0);
        }
        Ok(Self {
            inode: (metadata.dev(), metadata.ino()),
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            size,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            links,
            content: content(path, &metadata),
            attributes: attributes(path),
        })
    }

    pub(super) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Describes the difference; nothing if there is none.
    fn difference(&self, now: &Self) -> Option<&'static str> {
        let data = |it: &Self| (it.content, it.size, it.mode & !MODE_BITS);
        let about = |it: &Self| (it.mode, it.owner, it.modified, it.attributes);
        match () {
            () if data(self) != data(now) => Some("content"),
            () if self.inode != now.inode => Some("replaced"),
            () if about(self) != about(now) => Some("about"),
            () if self.links != now.links => Some("links"),
            () if self.changed != now.changed => Some("about"),
            () => None,
        }
    }
}

fn content(path: &Path, metadata: &fs::Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    let kind = metadata.file_type();
    if kind.is_symlink() {
        fs::read_link(path).ok().hash(&mut hasher);
    } else if kind.is_file() {
        let mut bytes = Vec::new();
        let opened = fs::File::open(path).or_else(|_| {
            // Its owner may not read it, and finds out all the same.
            fs::set_permissions(path, Permissions::from_mode(metadata.mode() | 0o400))?;
            let opened = fs::File::open(path);
            fs::set_permissions(path, Permissions::from_mode(metadata.mode()))?;
            opened
        });
        let read = opened.and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        (read.is_ok(), bytes).hash(&mut hasher);
    } else if kind.is_char_device() || kind.is_block_device() {
        metadata.rdev().hash(&mut hasher);
    }
    hasher.finish()
}

fn attributes(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut names = vec![0; 1 << 12];
    let read = rustix::fs::llistxattr(path, &mut names).unwrap_or_default();
    names.truncate(read);
    names.hash(&mut hasher);
    for name in names.split(|it| *it == 0).filter(|it| !it.is_empty()) {
        let mut value = vec![0; 1 << 12];
        let read = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut value);
        value.truncate(read.unwrap_or_default());
        value.hash(&mut hasher);
    }
    hasher.finish()
}

/// Looks at everything in some places. Directories that their owner cannot read are opened up after they were looked at.
///
/// # Errors
/// When there are too many files.
pub(super) fn look(places: &[&str]) -> Result<Snapshot> {
    let mut waiting: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
    let mut found = Snapshot::new();
    while let Some(path) = waiting.pop() {
        // A process that is left may still work.
        let Ok(entry) = Entry::of(&path) else {
            continue;
        };
        if entry.is_directory() {
            if entry.mode & OPEN != OPEN {
                let mode = Permissions::from_mode(entry.mode & MODE_BITS | OPEN);
                let _ = fs::set_permissions(&path, mode);
            }
            let entries = fs::read_dir(&path).into_iter().flatten();
            waiting.extend(entries.filter_map(io::Result::ok).map(|it| it.path()));
        }
        found.insert(path, entry);
        if found.len() > FILES_MAX {
            bail!("there are too many files");
        }
    }
    Ok(found)
}

/// Returns whether two places have the same content, whatever its mode and owner.
pub(super) fn is_same_content(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (Entry::of(one), Entry::of(other)) else {
        return false;
    };
    let data = |it: &Entry| (it.content, it.size, it.mode & !MODE_BITS);
    data(&one) == data(&other)
}

/// One difference of two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    /// `created`, `removed`, `content`, `replaced`, `about` (mode, owner, times, attributes) or `links`.
    pub(super) what: &'static str,
}

/// Returns the differences.
pub(super) fn differences(before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |path: &Path, what| {
        found.push(Difference {
            path: path.to_owned(),
            what,
        });
    };
    for (path, now) in after {
        match before.get(path) {
            None => note(path, "created"),
            Some(was) => {
                if let Some(what) = was.difference(now) {
                    note(path, what);
                }
            }
        }
    }
    for path in before.keys().filter(|it| !after.contains_key(*it)) {
        note(path, "removed");
    }
    found
}

/// State of a protected name: kinds, modes and contents of everything below; `None` if it does not exist.
pub(super) fn fingerprint(snapshot: &Snapshot, path: &Path) -> Option<u64> {
    let top = snapshot.get(path)?;
    let mut hasher = DefaultHasher::new();
    let below = snapshot.range(path.to_owned()..);
    let below = below.take_while(|(it, _)| it.starts_with(path));
    for (it, entry) in below {
        it.strip_prefix(path).ok().hash(&mut hasher);
        (entry.mode, entry.owner, entry.content).hash(&mut hasher);
    }
    top.mode.hash(&mut hasher);
    Some(hasher.finish())
}

/// Returns the parts of a protected name that are obeyed or run: its files and links, their modes and contents. `git`
/// runs no hook whose name ends with `.sample`.
pub(super) fn held(snapshot: &Snapshot, path: &Path) -> Vec<(PathBuf, u32, u64)> {
    let below = snapshot.range(path.to_owned()..);
    let below = below.take_while(|(it, _)| it.starts_with(path));
    let files = below.filter(|(it, entry)| {
        !entry.is_directory() && it.extension() != Some(OsStr::new("sample"))
    });
    let named = files.filter_map(|(it, entry)| {
        let below = it.strip_prefix(path).ok()?;
        Some((below.to_owned(), entry.mode, entry.content))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn changed(change: impl Fn(&Path)) -> Vec<&'static str> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "abc").unwrap();
        symlink("file", place.path().join("link")).unwrap();
        let places = [place.path().to_str().unwrap()];
        let before = look(&places).unwrap();
        change(place.path());
        let mut after = look(&places).unwrap();
        // The directory's own times.
        after.insert(place.path().to_owned(), before[place.path()].clone());
        differences(&before, &after)
            .into_iter()
            .map(|it| it.what)
            .collect()
    }

    #[test]
    fn every_kind_of_change_is_seen_and_reading_is_none() {
        let nothing: [&str; 0] = [];
        assert_eq!(changed(|it| drop(fs::read(it.join("file")))), nothing);
        assert_eq!(
            changed(|it| fs::write(it.join("file"), "abd").unwrap()),
            ["content"]
        );
        assert_eq!(
            changed(|it| fs::write(it.join("new"), "").unwrap()),
            ["created"]
        );
        assert_eq!(
            changed(|it| fs::remove_file(it.join("link")).unwrap()),
            ["removed"]
        );
        let mode = Permissions::from_mode(0o600);
        assert_eq!(
            changed(|it| fs::set_permissions(it.join("file"), mode.clone()).unwrap()),
            ["about"]
        );
        assert_eq!(
            changed(|it| fs::hard_link(it.join("file"), it.join("l")).unwrap()),
            ["links", "created"]
        );
        let attribute = |it: &Path| {
            rustix::fs::setxattr(
                it.join("file"),
                "user.a",
                b"b",
                rustix::fs::XattrFlags::empty(),
            )
            .unwrap();
        };
        assert_eq!(changed(attribute), ["about"]);
    }

    #[test]
    fn the_fingerprint_of_a_name_is_that_of_everything_below_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let now = || fingerprint(&look(&[place.path().to_str().unwrap()]).unwrap(), &folder);
        let empty = now();
        fs::write(folder.join("file"), "").unwrap();
        let one = now();
        fs::write(place.path().join("folder2"), "").unwrap();
        assert!(empty.is_some() && empty != one && one == now());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(now(), None);
    }
}
