//! Replaces a file atomically.

use crate::failure::Failure;
use crate::unix;
use crate::workspace::WorkspacePath;
use cap_fs_ext::{DirExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

/// The bound on the part of a temporary file's name that comes from the call's key.
const KEY_CHARS_MAX: usize = 128;

/// A file about to be written, its directory held open.
pub(crate) struct Target {
    parent: Dir,
    name: PathBuf,
    shown: String,
    before: Option<Metadata>,
}

impl Target {
    /// Resolves a path to the file to write: links beneath the root are followed, so
    /// that the file they lead to is written and not the link replaced.
    pub(crate) fn open(place: &WorkspacePath<'_>, create_parents: bool) -> Result<Self, Failure> {
        let shown = place.shown();
        Self::reach(place, create_parents)?
            .ok_or_else(|| Failure::Failed(format!("the directory of `{shown}` does not exist")))
    }

    /// Resolves a path as [`Self::open`] does, and makes nothing; `None` if its directory is missing.
    pub(crate) fn find(place: &WorkspacePath<'_>) -> Result<Option<Self>, Failure> {
        Self::reach(place, false)
    }

    fn reach(place: &WorkspacePath<'_>, create_parents: bool) -> Result<Option<Self>, Failure> {
        let shown = place.shown();
        let path = match place.writes_through_links {
            true => real_path(place, &shown)?,
            false => named_path(place, &shown)?,
        };
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(Failure::Failed(format!("`{shown}` is a directory")));
        };
        let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
        let opened = match place.writes_through_links {
            true => open_parent(place.dir(), parent, create_parents),
            false => open_named_parent(place.dir(), parent, create_parents),
        };
        let parent = match opened {
            Ok(parent) => parent,
            Err(Closed::Link) => return Err(through_link(&shown)),
            Err(Closed::Io(err)) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(Closed::Io(err)) => {
                return Err(Failure::io("open the directory of", &shown, &err));
            }
        };
        let name = PathBuf::from(name);
        let is_refused = !place.writes_through_links && is_symlink(&parent, &name);
        let before = match is_refused {
            true => return Err(through_link(&shown)),
            false => existing(&parent, &name, &shown)?,
        };
        Ok(Some(Self {
            parent,
            name,
            shown,
            before,
        }))
    }

    /// Returns whether the file is new.
    pub(crate) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Opens what is there.
    pub(crate) fn read(&self) -> Result<(File, Metadata), Failure> {
        crate::workspace::open_regular(&self.parent, &self.name, &self.shown)
    }

    /// Returns whether the file is read-only for all users, by its permission bits.
    pub(crate) fn is_read_only(&self) -> bool {
        self.before.as_ref().is_some_and(unix::is_read_only)
    }

    /// Writes the file as a whole or not at all, keeping its owner, its permissions and its attributes.
    ///
    /// A reader sees the old content or the new, never a part, after a loss of power too. Other
    /// names of the same file (hard links) keep the old content. A file that cannot be replaced like this (another user's,
    /// one that is mounted, or one in a directory that may not be written) is written in place.
    pub(crate) fn write(&self, content: &[u8], idempotency_key: &str) -> Result<(), Failure> {
        let temporary = temporary_name(idempotency_key);
        let written = self
            .write_temporary(&temporary, content)
            .and_then(|()| self.parent.rename(&temporary, &self.parent, &self.name));
        if let Err(err) = written {
            // The reason counts; a temporary file that stays is replaced by the next try.
            let _ = self.parent.remove_file(&temporary);
            let written = match self.before.is_some() && may_be_written_in_place(&err) {
                true => self.write_in_place(content),
                false => Err(err),
            };
            return written.map_err(|err| Failure::io("write", &self.shown, &err));
        }
        // Not every system opens directories, and if one cannot be, it keeps its own order.
        if let Ok(parent) = self.parent.open(".") {
            let _ = parent.sync_all();
        }
        Ok(())
    }

    /// Removes what an interrupted call of that key left.
    pub(crate) fn discard_temporary(&self, idempotency_key: &str) {
        let _ = self.parent.remove_file(temporary_name(idempotency_key));
    }

    fn write_temporary(&self, name: &Path, content: &[u8]) -> io::Result<()> {
        // One of a call that was interrupted: the key is that call's own.
        let _ = self.parent.remove_file(name);
        let Some(before) = &self.before else {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            let mut file = self.parent.open_with(name, &options)?;
            file.write_all(content)?;
            return file.sync_data();
        };
        // No other user sees what only its owner may read.
        let mut file = self.parent.open_with(name, &unix::private())?;
        file.write_all(content)?;
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        let old = self.parent.open_with(&self.name, &options)?;
        unix::take_over(&old, before, &file)?;
        file.sync_data()
    }

    /// Writes over the content of the file that is there.
    fn write_in_place(&self, content: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).nonblock(true);
        let mut file = self.parent.open_with(&self.name, &options)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no longer a regular file"));
        }
        file.write_all(content)?;
        let length = u64::try_from(content.len()).map_err(io::Error::other)?;
        file.set_len(length)?;
        file.sync_data()
    }
}

/// Returns whether a file may be one that can be written and not replaced.
fn may_be_written_in_place(err: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::ResourceBusy,
        io::ErrorKind::CrossesDevices,
        io::ErrorKind::Unsupported,
    ];
    // The confinement's refusals have no number.
    err.raw_os_error().is_some() && kinds.contains(&err.kind())
}

/// Returns the file that a place's links lead to, if it has any; directories that are missing have none.
pub(crate) fn leads_to(place: &WorkspacePath<'_>) -> Option<String> {
    let real = place.relative.ancestors().find_map(|above| {
        let is_root = above.as_os_str().is_empty();
        let real = match is_root {
            true => PathBuf::new(),
            false => place.dir().canonicalize(above).ok()?,
        };
        Some(real.join(place.relative.strip_prefix(above).ok()?))
    })?;
    let parts = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().filter(|it| *it != Component::CurDir);
        parts.map(|it| PathBuf::from(it.as_os_str())).collect()
    };
    (parts(&real) != parts(&place.relative))
        .then(|| place.show(&real.components().collect::<PathBuf>()))
}

fn real_path(place: &WorkspacePath<'_>, shown: &str) -> Result<PathBuf, Failure> {
    match place.dir().canonicalize(&place.relative) {
        Ok(path) => Ok(path),
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            let is_link = place
                .dir()
                .symlink_metadata(&place.relative)
                .is_ok_and(|metadata| metadata.is_symlink());
            if is_link {
                let message = format!("`{shown}` is a broken link");
                return Err(Failure::Failed(message));
            }
            Ok(place.relative.clone())
        }
        Err(err) => Err(Failure::io("resolve", shown, &err)),
    }
}

/// Returns a path without `..`, which leads where it seems to as no link is followed.
fn named_path(place: &WorkspacePath<'_>, shown: &str) -> Result<PathBuf, Failure> {
    let mut path = PathBuf::new();
    for component in place.relative.components() {
        let stays = match component {
            Component::ParentDir => path.pop(),
            Component::Normal(name) => {
                path.push(name);
                true
            }
            _ => true,
        };
        if !stays {
            return Err(Failure::Failed(format!(
                "`{shown}` is outside the allowed directories"
            )));
        }
    }
    Ok(path)
}

/// Why a directory was not opened.
enum Closed {
    /// A link on the way to it, which is not followed.
    Link,
    Io(io::Error),
}

impl From<io::Error> for Closed {
    fn from(err: io::Error) -> Self {
        Self::Io(err)
    }
}

/// Opens a directory one name after the other, none of which may be a link.
fn open_named_parent(root: &Dir, path: Option<&Path>, create: bool) -> Result<Dir, Closed> {
    let mut directory = root.try_clone()?;
    for name in path.into_iter().flat_map(Path::components) {
        let name = Path::new(name.as_os_str());
        if create {
            match directory.create_dir(name) {
                Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err.into()),
                _ => {}
            }
        }
        directory = match directory.open_dir_nofollow(name) {
            Err(_) if is_symlink(&directory, name) => return Err(Closed::Link),
            opened => opened?,
        };
    }
    Ok(directory)
}

fn is_symlink(directory: &Dir, name: &Path) -> bool {
    directory
        .symlink_metadata(name)
        .is_ok_and(|it| it.is_symlink())
}

fn through_link(shown: &str) -> Failure {
    Failure::Failed(format!(
        "`{shown}` leads through a link, and links are not followed if commands run in a sandbox: name the file itself"
    ))
}

fn open_parent(root: &Dir, path: Option<&Path>, create: bool) -> Result<Dir, Closed> {
    let Some(path) = path else {
        return Ok(root.try_clone()?);
    };
    if create {
        root.create_dir_all(path)?;
    }
    Ok(root.open_dir(path)?)
}

fn existing(parent: &Dir, name: &Path, shown: &str) -> Result<Option<Metadata>, Failure> {
    match parent.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(metadata) if metadata.is_dir() => {
            Err(Failure::Failed(format!("`{shown}` is a directory")))
        }
        Ok(_) => Err(Failure::Failed(format!("`{shown}` is not a regular file"))),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Failure::io("look at", shown, &err)),
    }
}

fn temporary_name(idempotency_key: &str) -> PathBuf {
    let safe: Vec<char> = idempotency_key
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    // Keys of one session differ at their end.
    let key: String = safe
        .iter()
        .skip(safe.len().saturating_sub(KEY_CHARS_MAX))
        .collect();
    PathBuf::from(format!(".rondo-{key}.tmp"))
}
