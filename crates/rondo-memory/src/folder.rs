//! The directory of one scope's files: opened link by link, locked while it is changed, its files replaced whole.
//!
//! A project comes from others, so a link in it could point to any file of the user. Below the directory that the user
//! chose, nothing that is a link is opened.

use crate::error::MemoryError;
use crate::scope::Scope;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The bound on one file, in bytes. A larger one is neither read nor added to.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// The bound on files of one scope that are read: `MEMORY.md`, and the ones whose names sort last.
pub const FILES_MAX: usize = 4096;
/// The bound on the files of one scope together, in bytes; those beyond are left out, the oldest notes first.
pub const FOLDER_BYTES_MAX: u64 = 32 << 20;
/// The file that a session is shown when it begins.
pub(crate) const MAIN_FILE: &str = "MEMORY.md";
/// The bound on names in a directory that are looked at.
const NAMES_MAX: usize = 20_000;
/// The bound on the length of a file's name, in bytes; the temporary file's is a little longer.
const NAME_BYTES_MAX: usize = 200;
/// How often the lock is tried, and how long is waited between two tries: 10 s in all.
const LOCK_TRIES: u32 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The directory of one scope.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) scope: Scope,
    /// A directory that the user chose; links in its path are followed.
    base: PathBuf,
    /// The directories below it.
    below: Vec<String>,
}

/// A directory that is open.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    fd: OwnedFd,
    path: PathBuf,
    scope: Scope,
}

/// A file of a directory, as the directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
}

/// The files of a directory.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// `MEMORY.md` first, then the others, the last name first.
    pub(crate) files: Vec<FileState>,
    /// Files that are not read, with reasons.
    pub(crate) notes: Vec<String>,
}

impl Folder {
    pub(crate) fn new(scope: Scope, base: PathBuf, below: &[&str]) -> Self {
        let below = below.iter().map(|it| (*it).to_owned()).collect();
        Self { scope, base, below }
    }

    pub(crate) fn path(&self) -> PathBuf {
        let below: PathBuf = self.below.iter().collect();
        self.base.join(below)
    }

    /// Opens the directory; `None` if it does not exist.
    pub(crate) fn open(&self) -> Result<Option<OpenFolder>, MemoryError> {
        self.reach(false)
    }

    /// Opens the directory, made if it is missing, and waits for its lock. Dropping it gives the lock back, as does
    /// the end of the process.
    ///
    /// The lock is on the directory itself, so that no file of it lies in a project.
    pub(crate) fn lock(&self) -> Result<OpenFolder, MemoryError> {
        let path = self.path();
        let Some(open) = self.reach(true)? else {
            return Err(MemoryError::NoScope { scope: self.scope });
        };
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&open.fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(open),
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(LOCK_PAUSE),
                Err(err) => return Err(MemoryError::io(path)(err.into())),
            }
        }
        Err(MemoryError::Locked { path })
    }

    fn reach(&self, create: bool) -> Result<Option<OpenFolder>, MemoryError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut path = self.base.clone();
        if create && self.scope != Scope::Project {
            // Rondo's own data directory may not exist yet; a project's does.
            make_private(&path)?;
        }
        let mut fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(err) => return Err(MemoryError::io(path)(err.into())),
        };
        for name in &self.below {
            path.push(name);
            if create {
                let mode = match self.scope {
                    Scope::Project => Mode::from_raw_mode(0o777),
                    Scope::User | Scope::Chat => Mode::RWXU,
                };
                match rustix::fs::mkdirat(&fd, name.as_str(), mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(err) => return Err(MemoryError::io(path)(err.into())),
                }
            }
            fd = match rustix::fs::openat(
                &fd,
                name.as_str(),
                flags | OFlags::NOFOLLOW,
                Mode::empty(),
            ) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                    return Err(MemoryError::NotRegular { path });
                }
                Err(err) => return Err(MemoryError::io(path)(err.into())),
            };
        }
        let scope = self.scope;
        Ok(Some(OpenFolder { fd, path, scope }))
    }
}

impl OpenFolder {
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns its files, within the bounds.
    pub(crate) fn files(&self) -> Result<Files, MemoryError> {
        let failed = |err: Errno| MemoryError::io(&self.path)(err.into());
        let mut found = Files::default();
        let mut looked_at = 0;
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            looked_at += 1;
            if looked_at > NAMES_MAX {
                found.notes.push(format!(
                    "`{}` has more than {NAMES_MAX} files",
                    self.path.display()
                ));
                break;
            }
            let Some(name) = entry.file_name().to_str().ok().filter(|name| is_name(name)) else {
                continue;
            };
            match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if is_regular(&stat) => found.files.push(state(name, &stat)),
                Ok(_) => found.notes.push(format!(
                    "{}",
                    MemoryError::NotRegular {
                        path: self.path_of(name)
                    }
                )),
                // It was removed meanwhile.
                Err(_) => {}
            }
        }
        found.files.sort_by(|one, other| {
            let is_main = |it: &FileState| it.name == MAIN_FILE;
            is_main(other)
                .cmp(&is_main(one))
                .then_with(|| other.name.cmp(&one.name))
        });
        self.bound(&mut found);
        Ok(found)
    }

    fn bound(&self, found: &mut Files) {
        let count = found.files.len();
        let mut room = FOLDER_BYTES_MAX;
        let mut large = Vec::new();
        found.files.retain(|file| {
            if file.bytes > FILE_BYTES_MAX as u64 {
                large.push(file.name.clone());
                return false;
            }
            let left = room.checked_sub(file.bytes);
            room = left.unwrap_or_default();
            left.is_some()
        });
        found.files.truncate(FILES_MAX);
        for name in &large {
            let path = self.path_of(name);
            let bytes_max = FILE_BYTES_MAX;
            found.notes.push(format!(
                "{}, so it is not read",
                MemoryError::TooLarge { path, bytes_max }
            ));
        }
        let left_out = count - found.files.len() - large.len();
        if left_out > 0 {
            let path = self.path.display();
            found.notes.push(format!(
                "`{path}` is too large: its {left_out} oldest files are not read"
            ));
        }
    }

    /// Returns the content of a file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, MemoryError> {
        let path = self.path_of(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO) => {
                return Err(MemoryError::NotRegular { path });
            }
            Err(err) => return Err(MemoryError::io(path)(err.into())),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|err| MemoryError::io(&path)(err.into()))?;
        if !is_regular(&stat) {
            return Err(MemoryError::NotRegular { path });
        }
        let mut bytes = Vec::new();
        let bound = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
        let read = File::from(fd).take(bound + 1).read_to_end(&mut bytes);
        read.map_err(MemoryError::io(&path))?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(MemoryError::TooLarge {
                path,
                bytes_max: FILE_BYTES_MAX,
            });
        }
        Ok(Some(bytes))
    }

    /// Returns the content of a file to change; empty if it does not exist.
    pub(crate) fn read_text(&self, name: &str) -> Result<String, MemoryError> {
        let bytes = self.read(name)?.unwrap_or_default();
        let path = self.path_of(name);
        String::from_utf8(bytes).map_err(|_| MemoryError::NotText { path })
    }

    /// Replaces a file whole or not at all; on return it is on the disk. Only while the lock is held.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<(), MemoryError> {
        let path = self.path_of(name);
        if content.len() > FILE_BYTES_MAX {
            return Err(MemoryError::TooLarge {
                path,
                bytes_max: FILE_BYTES_MAX,
            });
        }
        let temporary = format!(".{name}.tmp");
        let written = self
            .write_temporary(name, &temporary, content)
            .and_then(|()| {
                rustix::fs::renameat(&self.fd, &temporary, &self.fd, name)?;
                Ok(())
            });
        written.map_err(|err| {
            // The reason counts; a temporary file that stays is replaced by the next try.
            let _ = rustix::fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
            MemoryError::io(&path)(err)
        })?;
        // If a directory cannot be synced, the file system keeps its own order.
        let _ = rustix::fs::fsync(&self.fd);
        Ok(())
    }

    fn write_temporary(&self, name: &str, temporary: &str, content: &str) -> std::io::Result<()> {
        // One of a process that was killed while it held the lock.
        let _ = rustix::fs::unlinkat(&self.fd, temporary, AtFlags::empty());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, temporary, flags, self.mode_of(name))?;
        let mut file = File::from(fd);
        file.write_all(content.as_bytes())?;
        file.sync_all()
    }

    /// Keeps the mode of the file that is replaced.
    fn mode_of(&self, name: &str) -> Mode {
        let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        match stat {
            Ok(stat) => Mode::from_raw_mode(stat.st_mode as RawMode & 0o777),
            Err(_) if self.scope == Scope::Project => Mode::from_raw_mode(0o666),
            Err(_) => Mode::RUSR | Mode::WUSR,
        }
    }
}

/// Returns whether a name can be one of a file of memories: `MEMORY.md`, `2026-03-01.md`, or another `.md` file that is
/// not hidden.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '/';
    name.ends_with(".md")
        && !name.starts_with('.')
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(is_plain)
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn state(name: &str, stat: &Stat) -> FileState {
    let seconds = stat.st_mtime;
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    FileState {
        name: name.to_owned(),
        bytes: u64::try_from(stat.st_size).unwrap_or_default(),
        modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        inode: stat.st_ino,
    }
}

fn make_private(path: &Path) -> Result<(), MemoryError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(MemoryError::io(path))
}
