//! What is at a path, read within a bound, so that it can be put back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The bits of a mode that can be set.
const MODE_BITS: u32 = 0o7777;

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing.
    Absent,
    /// A link, and where it leads.
    Link(PathBuf),
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
    /// Reads what is at a path, without following a link.
    ///
    /// # Errors
    /// When it cannot be read, or is more than the budget allows.
    pub(crate) fn read(path: &Path, budget: &mut Budget) -> io::Result<Self> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(err) if is_absent(&err) => return Ok(Self::Absent),
            Err(err) => return Err(err),
        };
        budget.entries = budget.entries.checked_sub(1).ok_or_else(too_much)?;
        let mode = metadata.mode() & MODE_BITS;
        let kind = metadata.file_type();
        if kind.is_symlink() {
            return fs::read_link(path).map(Self::Link);
        }
        if kind.is_file() {
            let bytes = read_file(path, budget)?;
            return Ok(Self::File { bytes, mode });
        }
        if !kind.is_dir() {
            return Ok(Self::Other);
        }
        let mut entries = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            entries.insert(entry.file_name(), Self::read(&entry.path(), budget)?);
        }
        Ok(Self::Directory { entries, mode })
    }

    /// Makes it at a path where nothing is.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Absent | Self::Other => Ok(()),
            Self::Link(target) => symlink(target, path),
            Self::File { bytes, mode } => {
                let mut options = fs::OpenOptions::new();
                let mut file = options
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(path)?;
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(*mode))
            }
            Self::Directory { entries, mode } => {
                fs::create_dir(path)?;
                for (name, content) in entries {
                    content.write(&path.join(name))?;
                }
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
        }
    }
}

/// Returns whether nothing is at the path that an error is about.
pub(crate) fn is_absent(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn read_file(path: &Path, budget: &mut Budget) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    // What has become a pipe meanwhile is not waited for.
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut bytes = Vec::new();
    file.take(budget.bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    budget.bytes = budget.bytes.checked_sub(length).ok_or_else(too_much)?;
    Ok(bytes)
}

fn too_much() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        "more is protected than can be kept",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u64, entries: u32) -> Budget {
        Budget { bytes, entries }
    }

    #[test]
    fn what_was_read_is_written_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/file"), "text").unwrap();
        fs::set_permissions(folder.join("a/file"), Permissions::from_mode(0o750)).unwrap();
        symlink("nowhere", folder.join("a/link")).unwrap();
        let read = |path: &Path| Content::read(path, &mut budget(100, 100)).unwrap();
        let before = read(&folder);
        fs::rename(&folder, place.path().join("away")).unwrap();
        assert_eq!(read(&folder), Content::Absent);
        before.write(&folder).unwrap();
        assert_eq!(read(&folder), before);
    }

    #[test]
    fn no_more_is_read_than_the_budget_allows() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "text").unwrap();
        let read = |bytes, entries| Content::read(place.path(), &mut budget(bytes, entries));
        assert!(read(4, 2).is_ok());
        assert!(read(5, 3).is_ok());
        assert!(read(3, 2).is_err());
        assert!(read(4, 1).is_err());
    }
}
