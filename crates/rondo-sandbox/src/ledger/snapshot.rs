//! Content of the protected files of some directories at one time.

use super::{Difference, DifferenceKind};
use crate::stored_path::StoredPath;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The bound on the content of one file that is kept, in bytes. Of a larger file, the hash is kept.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 10;
/// The bound on all that is read for one snapshot, in bytes. Of files over it, identity and times are compared.
const READ_BYTES_MAX: u64 = 16 << 20;
/// The bound on files of one snapshot. Files over it are not compared.
const FILES_MAX: usize = 8_192;
/// The directory of a repository, whose content the commands of `git` change.
const GIT: &str = ".git";
/// Directories in it that these make and remove too; the settings in them are checked as those of repositories are.
const OF_GIT: [&str; 2] = ["modules", "worktrees"];
/// Suffix of hooks that `git` does not run.
const SAMPLE: &str = ".sample";
/// How much later than the latest change of a file a snapshot must be for an equal time to mean equal content, in
/// microseconds: the kernel's clock of files ticks every ten thousand at the slowest.
const SAME_TICK_US: i64 = 50_000;

/// The protected files of some directories.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Snapshot {
    roots: Vec<Root>,
    files: Vec<ProtectedFile>,
}

/// A directory that a command works in.
#[derive(Debug, Serialize, Deserialize)]
struct Root {
    path: StoredPath,
    /// The device and the number of its file; `None` if it is not there.
    identity: Option<(u64, u64)>,
}

/// A protected file.
#[derive(Debug, Serialize, Deserialize)]
struct ProtectedFile {
    path: StoredPath,
    /// The place of its directory in the list of roots.
    root: usize,
    kind: Kind,
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    /// When the kernel noted the latest change, in seconds since 1970 and nanoseconds.
    changed: (i64, i64),
    /// The SHA-256 of the content; `None` if it was not read.
    hash: Option<String>,
    /// How much of the content is kept, in bytes.
    kept_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    File,
    /// A link, and where it leads.
    Link(StoredPath),
    Directory,
    /// A directory whose files do not count.
    Place,
    /// Something that cannot be read.
    Unreadable,
    /// A pipe, a socket or a device.
    Other,
}

impl Snapshot {
    /// Reads the protected names of these directories, and appends what is kept of their content.
    pub(super) fn take(roots: &[PathBuf], protected: &[&str], content: &mut Vec<u8>) -> Self {
        let mut taking = SnapshotWalk {
            found: Self::default(),
            content: Some(content),
            left: READ_BYTES_MAX,
        };
        taking.all(roots, protected);
        taking.found
    }

    /// Reads the current state of the protected names of these directories.
    pub(super) fn now(roots: &[PathBuf], protected: &[&str]) -> Self {
        let mut taking = SnapshotWalk {
            found: Self::default(),
            content: None,
            left: 0,
        };
        taking.all(roots, protected);
        taking.found
    }

    pub(super) fn roots(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|it| it.path.path()).collect()
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        let path = StoredPath::of(path);
        self.files.iter().any(|it| it.path == path)
    }

    /// Returns how the files of a later snapshot differ. `content` is what was kept for this one, and `began_us` when it
    /// was taken.
    pub(super) fn differences(&self, content: &[u8], began_us: u64, now: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (root, later) in self.roots.iter().zip(&now.roots) {
            if root.identity != later.identity {
                let path = root.path.path();
                differences.push(Difference {
                    root: path.clone(),
                    path,
                    kind: DifferenceKind::Unchecked,
                    before: None,
                    now: None,
                });
            }
        }
        let later: HashMap<_, _> = now.files.iter().map(|it| (&it.path, it)).collect();
        let mut start = 0_usize;
        for file in &self.files {
            let end = start.saturating_add(file.kept_bytes);
            let has_content = matches!(file.kind, Kind::File | Kind::Link(_));
            let is_kept = file.kept_bytes > 0 || file.size == 0 && has_content;
            let before = content.get(start..end).filter(|_| is_kept);
            start = end;
            let kind = match later.get(&file.path) {
                None => Some(DifferenceKind::Removed),
                Some(now) => file.difference(now, before, began_us),
            };
            differences.extend(kind.map(|kind| self.difference(file, kind, before)));
        }
        let earlier: HashMap<_, _> = self.files.iter().map(|it| (&it.path, ())).collect();
        let added = now
            .files
            .iter()
            .filter(|it| !earlier.contains_key(&it.path));
        let added = added.filter(|it| it.kind != Kind::Directory);
        differences.extend(added.map(|it| now.difference(it, DifferenceKind::Added, None)));
        differences
    }

    fn difference(
        &self,
        file: &ProtectedFile,
        kind: DifferenceKind,
        before: Option<&[u8]>,
    ) -> Difference {
        let path = file.path.path();
        let root = self.roots.get(file.root).map(|it| it.path.path());
        let content = before.map(<[u8]>::to_vec);
        let before = match &file.kind {
            Kind::Link(target) => Some(link_text(&target.path(), content)),
            _ => content,
        };
        let (before, now) = match kind {
            DifferenceKind::Added => (None, shown(&path)),
            DifferenceKind::Removed => (before, None),
            DifferenceKind::Changed | DifferenceKind::Unchecked => (before, shown(&path)),
        };
        Difference {
            root: root.unwrap_or_default(),
            path,
            kind,
            before,
            now,
        }
    }
}

impl ProtectedFile {
    /// Returns how a file differs later.
    fn difference(
        &self,
        now: &Self,
        before: Option<&[u8]>,
        began_us: u64,
    ) -> Option<DifferenceKind> {
        if self.is_untouched(now, began_us) {
            return None;
        }
        match (&self.kind, &now.kind) {
            (Kind::File, Kind::File) if self.mode != now.mode || self.size != now.size => {
                Some(DifferenceKind::Changed)
            }
            (Kind::File, Kind::File) => self.content_difference(before),
            (Kind::Link(one), Kind::Link(other)) if one == other => self.content_difference(before),
            (Kind::Directory, Kind::Directory) | (Kind::Other, Kind::Other) => None,
            (Kind::Place, Kind::Place) if self.identity() == now.identity() => None,
            (Kind::Unreadable, Kind::Unreadable) if self.identity() == now.identity() => None,
            (_, Kind::Unreadable) => Some(DifferenceKind::Unchecked),
            _ => Some(DifferenceKind::Changed),
        }
    }

    /// Compares the content with that of now.
    fn content_difference(&self, before: Option<&[u8]>) -> Option<DifferenceKind> {
        let path = self.path.path();
        if let Some(before) = before {
            let now = read(&path, FILE_BYTES_MAX);
            let is_same = now.is_ok_and(|now| now == before);
            return (!is_same).then_some(DifferenceKind::Changed);
        }
        let Some(hash) = &self.hash else {
            // It was not read, and is another file or was changed since.
            return match self.kind {
                Kind::Link(_) if !path.is_file() => None,
                Kind::Link(_) => Some(DifferenceKind::Changed),
                _ => Some(DifferenceKind::Unchecked),
            };
        };
        match read(&path, READ_BYTES_MAX).map(|now| hash_of(&now)) {
            Ok(now) if now == *hash => None,
            Ok(_) => Some(DifferenceKind::Changed),
            Err(_) => Some(DifferenceKind::Unchecked),
        }
    }

    fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns whether the kernel notes no change since, if its note is exact enough.
    fn is_untouched(&self, now: &Self, began_us: u64) -> bool {
        let began = i64::try_from(began_us).unwrap_or(i64::MAX);
        let changed = self.changed.0.saturating_mul(1_000_000);
        let changed = changed.saturating_add(self.changed.1 / 1_000);
        self.kind == Kind::File
            && now.kind == Kind::File
            && self.identity() == now.identity()
            && self.changed == now.changed
            && changed.saturating_add(SAME_TICK_US) < began
    }
}

/// A snapshot that is being taken.
struct SnapshotWalk<'a> {
    found: Snapshot,
    /// Destination of the content; `None` if it is not read.
    content: Option<&'a mut Vec<u8>>,
    /// How many bytes may be read still.
    left: u64,
}

impl SnapshotWalk<'_> {
    fn all(&mut self, roots: &[PathBuf], protected: &[&str]) {
        for (index, root) in roots.iter().enumerate() {
            let metadata = root.symlink_metadata().ok();
            self.found.roots.push(Root {
                path: StoredPath::of(root),
                identity: metadata.map(|it| (it.dev(), it.ino())),
            });
            for name in protected {
                self.file(index, &root.join(name));
            }
        }
    }

    fn file(&mut self, root: usize, path: &Path) {
        let Ok(metadata) = path.symlink_metadata() else {
            return self.missing(root, path);
        };
        if self.found.files.len() >= FILES_MAX {
            return;
        }
        let file_type = metadata.file_type();
        let mut kept = ProtectedFile {
            path: StoredPath::of(path),
            root,
            kind: Kind::Other,
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode() & 0o7777,
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            hash: None,
            kept_bytes: 0,
        };
        if file_type.is_symlink() {
            let target = fs::read_link(path).unwrap_or_default();
            kept.kind = Kind::Link(StoredPath::of(&target));
            let leads_to_file = path.metadata().is_ok_and(|it| it.is_file());
            if leads_to_file {
                self.keep(&mut kept, path);
            }
            if self.leads_below(root, path) {
                self.found.files.push(kept);
                return self.entries(root, path);
            }
        } else if file_type.is_file() {
            kept.kind = Kind::File;
            self.keep(&mut kept, path);
        } else if file_type.is_dir() {
            return self.directory(kept, path);
        }
        self.found.files.push(kept);
    }

    /// Records a path as unreadable if its directory does not show whether there is something at it.
    fn missing(&mut self, root: usize, path: &Path) {
        let parent = path.parent().and_then(|it| it.symlink_metadata().ok());
        let is_hidden = path
            .symlink_metadata()
            .is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied);
        if let Some(parent) = parent.filter(|_| is_hidden) {
            self.found.files.push(ProtectedFile {
                path: StoredPath::of(path),
                root,
                kind: Kind::Unreadable,
                device: parent.dev(),
                inode: parent.ino(),
                mode: 0,
                size: 0,
                changed: (0, 0),
                hash: None,
                kept_bytes: 0,
            });
        }
    }

    fn directory(&mut self, mut kept: ProtectedFile, path: &Path) {
        let root = kept.root;
        let name = path.file_name().unwrap_or_default();
        let is_in_git = path.parent().is_some_and(|it| it.ends_with(GIT));
        if is_in_git && OF_GIT.iter().any(|it| name == *it) {
            return;
        }
        let is_listed = name != GIT;
        kept.kind = match is_listed.then(|| fs::read_dir(path)) {
            None => Kind::Place,
            Some(Ok(_)) => Kind::Directory,
            Some(Err(_)) => Kind::Unreadable,
        };
        self.found.files.push(kept);
        if is_listed {
            self.entries(root, path);
        }
    }

    fn entries(&mut self, root: usize, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_name().as_bytes().ends_with(SAMPLE.as_bytes()) {
                self.file(root, &entry.path());
            }
        }
    }

    /// Returns whether a name at the top of a root is a link to a directory that a command there may change.
    fn leads_below(&self, root: usize, link: &Path) -> bool {
        let top = self.found.roots.get(root).map(|it| it.path.path());
        let is_at_top = top.as_deref() == link.parent();
        let target = link.canonicalize().ok();
        let target = target.filter(|it| is_at_top && !link.ends_with(GIT) && it.is_dir());
        let mut roots = self.found.roots.iter().map(|it| it.path.path());
        target.is_some_and(|it| roots.any(|root| it != root && it.starts_with(root)))
    }

    /// Keeps the content of a file, or its hash.
    fn keep(&mut self, kept: &mut ProtectedFile, path: &Path) {
        let Some(read) = self.content(path) else {
            return;
        };
        let is_small = u64::try_from(read.len()).is_ok_and(|it| it <= FILE_BYTES_MAX);
        kept.size = u64::try_from(read.len()).unwrap_or(u64::MAX);
        match self.content.as_mut().filter(|_| is_small) {
            Some(content) => {
                kept.kept_bytes = read.len();
                content.extend_from_slice(&read);
            }
            None => kept.hash = Some(hash_of(&read)),
        }
    }

    /// Reads a file within the remaining budget; `None` if nothing may be read, or it is too much.
    fn content(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.content.as_ref()?;
        let read = read(path, self.left).ok()?;
        let length = u64::try_from(read.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(length);
        Some(read)
    }
}

/// Reads the content of a file that a person is shown: of a link, its target and the content of a file there.
pub(super) fn shown(path: &Path) -> Option<Vec<u8>> {
    let metadata = path.symlink_metadata().ok()?;
    match metadata.is_symlink() {
        true => {
            let target = fs::read_link(path).ok()?;
            Some(link_text(&target, read(path, FILE_BYTES_MAX).ok()))
        }
        false => read(path, FILE_BYTES_MAX).ok(),
    }
}

fn link_text(target: &Path, content: Option<Vec<u8>>) -> Vec<u8> {
    let mut text = format!("a link to {}\n", target.display()).into_bytes();
    text.extend(content.unwrap_or_default());
    text
}

/// Reads a file that is no larger than this.
fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    // A pipe in its place must not block.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = options
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|it| it <= bytes_max) {
        true => Ok(bytes),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

fn hash_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
