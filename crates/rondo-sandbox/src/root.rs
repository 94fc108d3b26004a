//! A directory that commands work in, held by what it is and not by its path.
//!
//! A command can move a directory away and put a link to another one in its place. So a root is looked up once, when a
//! turn begins, and from then on it is that directory or an error.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A directory that commands work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Without links, if it was found.
    #[serde(with = "crate::stored_path")]
    path: PathBuf,
    /// None if it was not found.
    identity: Option<Identity>,
}

/// Identity of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    /// When it was made, in nanoseconds since 1970, if the file system knows that; inodes are used again.
    made: Option<u64>,
}

impl Root {
    /// Looks a directory up. If it is not found, opening it is the error.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let path = path.canonicalize().unwrap_or(path);
        Self {
            identity: Identity::at(&path),
            path,
        }
    }

    /// Returns the path where it was found, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error unless its path still leads to it.
    ///
    /// # Errors
    /// When it was not found, or something else is at its path now.
    pub fn verify(&self) -> io::Result<()> {
        let path = self.path.display();
        let Some(identity) = self.identity else {
            let message = format!("the directory `{path}` does not exist");
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let is_link = self.path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        let is_same = self.path.canonicalize().is_ok_and(|it| it == self.path);
        if !is_link && is_same && Identity::at(&self.path) == Some(identity) {
            return Ok(());
        }
        Err(self.replaced())
    }

    /// Opens it, following no link on the way.
    ///
    /// # Errors
    /// When it was not found, or something else is at its path now.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(&self) -> io::Result<std::os::fd::OwnedFd> {
        let Some(identity) = self.identity else {
            return self.verify().and(Err(io::ErrorKind::NotFound.into()));
        };
        let opened = open_without_links(&self.path).map_err(|_| self.replaced())?;
        let found = rustix::fs::fstat(&opened)?;
        match (found.st_dev, found.st_ino) == (identity.device, identity.inode) {
            true => Ok(opened),
            false => Err(self.replaced()),
        }
    }

    fn replaced(&self) -> io::Error {
        io::Error::other(format!(
            "the directory `{}` was moved or replaced since the turn began, so nothing runs in it; a new turn looks it up again",
            self.path.display()
        ))
    }
}

impl<P: Into<PathBuf>> From<P> for Root {
    fn from(path: P) -> Self {
        Self::new(path)
    }
}

impl Identity {
    fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let found = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        let made = found.created().ok();
        let made = made.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            made: made.and_then(|it| u64::try_from(it.as_nanos()).ok()),
        })
    }
}

/// Opens what is at an absolute path, following no link on the way.
///
/// # Errors
/// When a part of the path is a link, or nothing is there.
#[cfg(target_os = "linux")]
pub(crate) fn open_without_links(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_in_the_place_of_a_root_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("a"), place.path().join("other"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(&other).unwrap();
        let root = Root::new(&path);
        root.verify().unwrap();
        std::fs::rename(&path, place.path().join("b")).unwrap();
        root.verify().unwrap_err();
        symlink(&other, &path).unwrap();
        root.verify().unwrap_err();
        symlink(place.path().join("b"), place.path().join("c")).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let refused = root.verify().unwrap_err().to_string();
        assert!(refused.contains("was moved or replaced"), "{refused}");
    }

    #[test]
    fn a_link_to_the_root_itself_is_an_error_too() {
        let place = tempfile::tempdir().unwrap();
        let (path, moved) = (place.path().join("a"), place.path().join("b"));
        std::fs::create_dir(&path).unwrap();
        let root = Root::new(&path);
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        root.verify().unwrap_err();
    }

    #[test]
    fn what_was_never_there_is_an_error() {
        let missing = Root::new("/nowhere/at/all").verify().unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
