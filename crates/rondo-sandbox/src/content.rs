//! Content of a directory entry, read within a bound, so that it can be restored.

use crate::directory::Directory;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;

/// The bits of a mode that can be set.
const MODE_BITS: u32 = 0o7777;

/// Content of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// No entry.
    Absent,
    /// A link, and where it leads.
    Link(CString),
    /// A file.
    File { bytes: Vec<u8>, mode: u32 },
    /// A directory with all that is below it.
    Directory {
        entries: BTreeMap<OsString, Content>,
        mode: u32,
    },
    /// A pipe, a socket or a device.
    Other,
}

/// How much may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) bytes: u64,
    pub(crate) entries: u32,
}

impl Content {
    /// Reads an entry without following a link.
    ///
    /// # Errors
    /// When it cannot be read, or is more than the budget allows.
    pub(crate) fn read(place: &Directory, name: &OsStr, budget: &mut Budget) -> io::Result<Self> {
        let Some(found) = place.stat(name)? else {
            return Ok(Self::Absent);
        };
        budget.entries = budget.entries.checked_sub(1).ok_or_else(too_much)?;
        let mode = found.st_mode & MODE_BITS;
        match kind(&found) {
            FileType::Symlink => Self::read_link(place, name),
            FileType::RegularFile => {
                let bytes = place.read(name, budget.bytes)?.unwrap_or_default();
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                budget.bytes = budget.bytes.checked_sub(length).ok_or_else(too_much)?;
                Ok(Self::File { bytes, mode })
            }
            FileType::Directory => {
                let below = place.open_below(name)?;
                let mut entries = BTreeMap::new();
                let mut names = Vec::new();
                below.list(|name, _, _| names.push(name.to_owned()))?;
                for name in names {
                    let content = Self::read(&below, &name, budget)?;
                    entries.insert(name, content);
                }
                Ok(Self::Directory { entries, mode })
            }
            _ => Ok(Self::Other),
        }
    }

    /// Reads the target of a link.
    ///
    /// # Errors
    /// When it is not a link.
    pub(crate) fn read_link(place: &Directory, name: &OsStr) -> io::Result<Self> {
        let target = rustix::fs::readlinkat(place.as_fd(), name, Vec::new())?;
        Ok(Self::Link(target))
    }

    /// Makes it as an entry that does not exist.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn write(&self, place: &Directory, name: &OsStr) -> io::Result<()> {
        match self {
            Self::Absent | Self::Other => Ok(()),
            Self::Link(target) => Ok(rustix::fs::symlinkat(
                target.as_c_str(),
                place.as_fd(),
                name,
            )?),
            Self::File { bytes, mode } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let private = Mode::RUSR | Mode::WUSR;
                let opened = rustix::fs::openat(place.as_fd(), name, flags, private)?;
                let mut file = File::from(opened);
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(*mode))
            }
            Self::Directory { entries, mode } => {
                rustix::fs::mkdirat(place.as_fd(), name, Mode::RWXU)?;
                let below = place.open_below(name)?;
                for (name, content) in entries {
                    content.write(&below, name)?;
                }
                let mode = Mode::from_raw_mode(*mode);
                // A descriptor that is only a place has no mode to change.
                Ok(rustix::fs::chmodat(
                    below.as_fd(),
                    c".",
                    mode,
                    AtFlags::empty(),
                )?)
            }
        }
    }
}

pub(crate) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn too_much() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "too many files are protected to keep copies of them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn budget(bytes: u64, entries: u32) -> Budget {
        Budget { bytes, entries }
    }

    fn open(place: &tempfile::TempDir) -> Directory {
        Directory::open(&place.path().canonicalize().unwrap()).unwrap()
    }

    #[test]
    fn what_was_read_is_written_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/file"), "text").unwrap();
        fs::set_permissions(folder.join("a/file"), Permissions::from_mode(0o750)).unwrap();
        fs::set_permissions(folder.join("a/b"), Permissions::from_mode(0o711)).unwrap();
        symlink("nowhere", folder.join("a/link")).unwrap();
        let held = open(&place);
        let name = OsStr::new("folder");
        let read = || Content::read(&held, name, &mut budget(100, 100)).unwrap();
        let before = read();
        fs::rename(&folder, place.path().join("away")).unwrap();
        assert_eq!(read(), Content::Absent);
        before.write(&held, name).unwrap();
        assert_eq!(read(), before);
    }

    #[test]
    fn no_more_is_read_than_the_budget_allows() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        fs::write(place.path().join("folder/file"), "text").unwrap();
        let held = open(&place);
        let read = |bytes, entries| {
            Content::read(&held, OsStr::new("folder"), &mut budget(bytes, entries))
        };
        assert!(read(4, 2).is_ok());
        assert!(read(5, 3).is_ok());
        assert!(read(3, 2).is_err());
        assert!(read(4, 1).is_err());
    }
}
