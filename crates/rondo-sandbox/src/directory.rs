//! A directory that is held open, so that what is done in it does not depend on what its path leads to later.
//!
//! A command can move a directory away and put a link to another one in its place. Whatever is done by path then is done
//! in the other directory. So a directory is opened before the command begins, and its entries are reached through the
//! descriptor only, without following any link.

use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, RenameFlags, ResolveFlags, Stat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Suffix of the name of a renamed entry; a number follows.
const REFUSED: &str = ".refused";
/// The bound on things that are renamed from one name.
const REFUSED_MAX: u32 = 100;
/// The mode bits that the owner of a directory needs to list and to change it.
const OWNER: RawMode = 0o700;
/// The bits of a mode that can be set.
const MODE_BITS: RawMode = 0o7777;
/// How directories are opened.
const FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How directories are opened that are listed.
const LISTED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Constraint on paths that are opened from a directory.
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// The device and the number of a file.
pub(crate) type Identity = (u64, u64);

/// A directory that is held open.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    /// Path at the time of opening, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens a directory by its absolute path, in which no part may be a link.
    ///
    /// # Errors
    /// When it is none, or a part of the path is a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let descriptor = open_without_links(CWD, path, FLAGS, ResolveFlags::NO_SYMLINKS)?;
        let path = path.to_owned();
        Ok(Self { descriptor, path })
    }

    /// Opens a directory below this one, in whose relative path no part may be a link.
    ///
    /// # Errors
    /// When it is none, a part of the path is a link, or it lies outside.
    pub(crate) fn open_below(&self, below: impl AsRef<Path>) -> io::Result<Self> {
        let below = below.as_ref();
        let path = self.path.join(below);
        if below.as_os_str().is_empty() {
            let descriptor = self.descriptor.try_clone()?;
            return Ok(Self { descriptor, path });
        }
        match open_without_links(self.as_fd(), below, FLAGS, BELOW) {
            Ok(descriptor) => Ok(Self { descriptor, path }),
            Err(Errno::ACCESS) => self.open_each(below),
            Err(err) => Err(err.into()),
        }
    }

    /// Opens one directory after another, of which each may have lost the permission to be searched.
    fn open_each(&self, below: &Path) -> io::Result<Self> {
        let mut opened = self.open_below("")?;
        for part in below.components() {
            let Component::Normal(name) = part else {
                return Err(Errno::XDEV.into());
            };
            let one = || open_without_links(opened.as_fd(), Path::new(name), FLAGS, BELOW);
            let descriptor = opened.permitted(one)?;
            let path = opened.path.join(name);
            opened = Self { descriptor, path };
        }
        Ok(opened)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Returns the path at which it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path that leads to it wherever it is.
    pub(crate) fn own_path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.descriptor.as_raw_fd().to_string())
    }

    pub(crate) fn own_stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.descriptor)?)
    }

    /// Returns whether it was removed from the file system.
    pub(crate) fn is_removed(&self) -> bool {
        self.own_stat().is_ok_and(|it| it.st_nlink == 0)
    }

    /// Looks at an entry, or at one further down without following links at its end; none if there is nothing.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn stat(&self, name: impl AsRef<Path>) -> io::Result<Option<Stat>> {
        let name = name.as_ref();
        let found = self
            .permitted(|| rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(err) => Err(err.into()),
        }
    }

    /// Looks at something further down, as [`Self::stat`] does, or at the directory itself if the path is empty. Links on
    /// the way are followed: the entry will be compared, or opened without links.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn stat_below(&self, below: &Path) -> io::Result<Option<Stat>> {
        match below.as_os_str().is_empty() {
            true => self.own_stat().map(Some),
            false => self.stat(below),
        }
    }

    /// Shows each entry: its name, its kind and its number.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub(crate) fn list(&self, show: impl FnMut(&OsStr, FileType, u64)) -> io::Result<()> {
        let opened =
            self.permitted(|| rustix::fs::openat(&self.descriptor, c".", LISTED, Mode::empty()))?;
        self.show(opened, show)
    }

    /// Shows each entry of a directory below, as [`Self::list`] does, and returns what that directory is.
    ///
    /// # Errors
    /// When it cannot be opened or listed.
    pub(crate) fn list_below(
        &self,
        below: &Path,
        show: impl FnMut(&OsStr, FileType, u64),
    ) -> io::Result<Stat> {
        if below.as_os_str().is_empty() {
            self.list(show)?;
            return self.own_stat();
        }
        match open_without_links(self.as_fd(), below, LISTED, BELOW) {
            Ok(opened) => {
                let found = rustix::fs::fstat(&opened)?;
                self.show(opened, show)?;
                Ok(found)
            }
            Err(Errno::ACCESS) => {
                let below = self.open_below(below)?;
                below.list(show)?;
                below.own_stat()
            }
            Err(err) => Err(err.into()),
        }
    }

    fn show(&self, opened: OwnedFd, mut show: impl FnMut(&OsStr, FileType, u64)) -> io::Result<()> {
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                let name = OsStr::from_bytes(name.to_bytes());
                show(name, entry.file_type(), entry.ino());
            }
        }
        Ok(())
    }

    /// Reads an entry that is a file, as far as `bytes_max` and one byte more; none if there is nothing.
    ///
    /// # Errors
    /// When it is not a file, or cannot be read.
    pub(crate) fn read(&self, name: &OsStr, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        // If a pipe was put in its place meanwhile, its other end is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened =
            self.permitted(|| rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()));
        let file = match opened {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Ok(None),
            Err(err) => return Err(err.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        file.take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Renames an entry to a name that nothing reads, and returns where it is then. If all such names are taken, which no
    /// work comes to, the entry is removed.
    ///
    /// # Errors
    /// When nothing is there, or it can be neither renamed nor removed.
    pub(crate) fn set_aside(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        for number in 1..=REFUSED_MAX {
            let aside = refused_name(name, number);
            match self.rename(name, self, &aside) {
                Ok(()) => return Ok(Some(self.path.join(aside))),
                Err(Errno::EXIST) => {}
                Err(err) => return Err(err.into()),
            }
        }
        let found = self.stat(name)?.ok_or(io::ErrorKind::NotFound)?;
        let place = self.own_path().join(name);
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => fs::remove_dir_all(place)?,
            _ => fs::remove_file(place)?,
        }
        Ok(None)
    }

    /// Renames an entry to one of another directory that does not exist. If the file system cannot refuse to replace
    /// another one (FUSE, NFS), that is looked up before, and what is made of that name in between is replaced.
    ///
    /// # Errors
    /// When that cannot be done.
    pub(crate) fn rename(&self, from: &OsStr, other: &Self, to: &OsStr) -> Result<(), Errno> {
        match self.rename_with(from, (other, to), RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => match other.stat(to) {
                Ok(None) => self.rename_with(from, (other, to), RenameFlags::empty()),
                Ok(Some(_)) => Err(Errno::EXIST),
                Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            },
            renamed => renamed,
        }
    }

    fn rename_with(
        &self,
        from: &OsStr,
        (other, to): (&Self, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.permitted(|| {
            other.permitted(|| {
                rustix::fs::renameat_with(&self.descriptor, from, &other.descriptor, to, flags)
            })
        })
    }

    /// Does something here. If the mode of the directory is why it fails, the mode is changed for that long: it is the
    /// command that has taken the permission away.
    fn permitted<T>(&self, work: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        let done = work();
        if !matches!(done, Err(Errno::ACCESS)) {
            return done;
        }
        let found = rustix::fs::fstat(&self.descriptor)?;
        let is_own = found.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || found.st_mode & OWNER == OWNER {
            return done;
        }
        let change = |mode| rustix::fs::chmod(self.own_path(), Mode::from_raw_mode(mode));
        change(found.st_mode & MODE_BITS | OWNER)?;
        let done = work();
        change(found.st_mode & MODE_BITS)?;
        done
    }

    /// Returns whether a process of this user can reach what is in it by a name that it knows.
    pub(crate) fn is_searchable(&self) -> bool {
        rustix::fs::accessat(&self.descriptor, c".", Access::EXEC_OK, AtFlags::empty()).is_ok()
    }
}

pub(crate) fn identity(found: &Stat) -> Identity {
    (found.st_dev, found.st_ino)
}

fn open_without_links(
    from: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(from, path, flags, Mode::empty(), resolve) {
        // Some containers refuse the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let place = open_by_parts(from, path, resolve)?;
            rustix::fs::openat(place, c".", flags, Mode::empty())
        }
        opened => opened,
    }
}

fn open_by_parts(
    from: BorrowedFd<'_>,
    path: &Path,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let is_beneath = resolve.contains(ResolveFlags::BENEATH);
    let mut opened = rustix::fs::openat(from, c".", FLAGS, Mode::empty())?;
    for part in path.components() {
        let name = match part {
            Component::CurDir => continue,
            Component::Normal(name) => name,
            Component::RootDir if !is_beneath => OsStr::new("/"),
            _ => return Err(Errno::XDEV),
        };
        opened = rustix::fs::openat(&opened, name, FLAGS, Mode::empty())?;
    }
    Ok(opened)
}

fn refused_name(name: &OsStr, number: u32) -> OsString {
    let mut aside = name.to_owned();
    aside.push(REFUSED);
    if number > 1 {
        aside.push(format!("-{number}"));
    }
    aside
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        (place, path)
    }

    #[test]
    fn no_part_of_a_path_may_be_a_link_whichever_call_opens_it() {
        let (_place, path) = place();
        fs::create_dir_all(path.join("a/b")).unwrap();
        symlink("a", path.join("link")).unwrap();
        let held = Directory::open(&path).unwrap();
        Directory::open(&path.join("link")).unwrap_err();
        held.open_below("a/b").unwrap();
        let open = |below: &str| {
            let resolve = ResolveFlags::BENEATH;
            open_by_parts(held.as_fd(), Path::new(below), resolve)
        };
        open("a/b").unwrap();
        for below in ["link", "link/b", "..", "/"] {
            held.open_below(below).unwrap_err();
            open(below).unwrap_err();
        }
    }

    #[test]
    fn what_is_renamed_stays_in_the_directory_that_was_opened() {
        let (_place, path) = place();
        let (was, other) = (path.join("was"), path.join("other"));
        fs::create_dir(&was).unwrap();
        fs::create_dir(&other).unwrap();
        let held = Directory::open(&was).unwrap();
        fs::rename(&was, path.join("moved")).unwrap();
        symlink(&other, &was).unwrap();
        for place in [&path.join("moved"), &other] {
            fs::write(place.join("name"), "").unwrap();
        }
        held.set_aside(OsStr::new("name")).unwrap();
        assert!(other.join("name").exists());
        assert!(path.join("moved/name.refused").exists());
    }

    #[test]
    fn nothing_is_replaced_on_a_file_system_that_cannot_refuse_it() {
        let (_place, path) = place();
        let (from, at) = (path.join("from"), path.join("at"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&at).unwrap();
        let run = |program: &str, args: &[&OsStr]| {
            let done = std::process::Command::new(program).args(args).status();
            done.is_ok_and(|it| it.success())
        };
        // It returns once the directory is mounted.
        if !run("bindfs", &[from.as_ref(), at.as_ref()]) {
            return;
        }
        let held = Directory::open(&at).unwrap();
        for text in ["one", "two"] {
            fs::write(at.join(".envrc"), text).unwrap();
            held.set_aside(OsStr::new(".envrc")).unwrap();
        }
        fs::create_dir(at.join(".envrc")).unwrap();
        held.set_aside(OsStr::new(".envrc")).unwrap();
        drop(held);
        assert!(run("fusermount", &["-u".as_ref(), at.as_ref()]));
        for (name, text) in [(".envrc.refused", "one"), (".envrc.refused-2", "two")] {
            assert_eq!(fs::read_to_string(from.join(name)).unwrap(), text);
        }
        assert!(from.join(".envrc.refused-3").is_dir() && !from.join(".envrc").exists());
    }

    #[test]
    fn names_that_are_all_taken_save_nothing() {
        let (_place, path) = place();
        for number in 1..=REFUSED_MAX {
            let name = refused_name(OsStr::new(".husky"), number);
            fs::write(path.join(name), "").unwrap();
        }
        fs::create_dir_all(path.join(".husky/_")).unwrap();
        let held = Directory::open(&path).unwrap();
        assert_eq!(held.set_aside(OsStr::new(".husky")).unwrap(), None);
        assert!(!path.join(".husky").exists());
    }
}
