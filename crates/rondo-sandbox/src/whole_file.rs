//! Files that are replaced as a whole.

use rustix::fs::{Gid, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The bound on tries to open the new file: each other writer that finishes meanwhile takes one.
const TRIES_MAX: usize = 64;
/// The mode of a file that only its owner may read.
const PRIVATE: u32 = 0o600;

/// Readers of a replaced file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Only its owner.
    Owner,
    /// As before; if there is no file yet, those that the process's mask admits.
    AsBefore,
}

/// Replaces a file, or creates it: a crash leaves the old content or the new. On return it is on the disk.
///
/// The new content is written beside it, under the same name for all processes, which they lock. So what a killed
/// process leaves there is written over by the next one, and does not stay.
///
/// # Errors
/// When it cannot be written; the file is then unchanged.
pub fn replace_file(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    let beside = beside(path);
    let mut file = open_locked(&beside)?;
    let written = fill(&mut file, path, content, readers).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Returns the path to which the new content of a file is written.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

fn fill(file: &mut File, path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    file.set_len(0)?;
    match readers {
        Readers::Owner => file.set_permissions(Permissions::from_mode(PRIVATE))?,
        Readers::AsBefore => {
            if let Ok(known) = fs::metadata(path) {
                keep_owner(file, &known)?;
                file.set_permissions(known.permissions())?;
            }
        }
    }
    file.write_all(content)?;
    file.sync_all()
}

/// Gives a new file the owner and the group of the one that it replaces. Only root may give a file away, so for others the
/// file is theirs from then on, as it was before unless a directory is shared.
fn keep_owner(file: &File, known: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (known.uid(), known.gid()) {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(known.uid()), Gid::from_raw(known.gid()));
    match rustix::fs::fchown(file, Some(user), Some(group)) {
        Err(Errno::PERM) => Ok(()),
        done => Ok(done?),
    }
}

/// Opens the file that is to become the new one, and locks it against other writers.
fn open_locked(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES_MAX {
        // A link or a pipe that another program put there is not followed, nor waited for.
        let is_file = |it: &fs::Metadata| it.is_file() && it.nlink() == 1;
        if fs::symlink_metadata(path).is_ok_and(|it| !is_file(&it)) {
            fs::remove_file(path)?;
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.custom_flags(flags).open(path)?;
        match file.lock() {
            // The rename alone then keeps readers from seeing half a file.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        // The writer before may have renamed it meanwhile.
        let own = file.metadata()?;
        let named = fs::symlink_metadata(path);
        let is_same = |it: fs::Metadata| (it.dev(), it.ino()) == (own.dev(), own.ino());
        if is_file(&own) && named.is_ok_and(is_same) {
            return Ok(file);
        }
    }
    let message = format!("`{}` is written by too many others", path.display());
    Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::thread;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_a_killed_process_left_is_gone_after_the_next_write() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        fs::write(&path, "old").unwrap();
        fs::write(beside(&path), "half of something longer").unwrap();
        replace_file(&path, b"new", Readers::AsBefore).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(place.path()), ["config.toml"]);
    }

    #[test]
    fn those_who_may_read_it_stay_or_are_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace_file(&path, b"a", Readers::AsBefore).unwrap();
        assert_eq!(mode(&path), 0o640);
        fs::write(beside(&path), "").unwrap();
        replace_file(&path, b"b", Readers::Owner).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn owner_and_group_stay_where_root_replaces_a_users_file() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(1000), Some(33)).unwrap();
        replace_file(&path, b"a", Readers::AsBefore).unwrap();
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid()), (1000, 33));
    }

    #[test]
    fn a_link_in_the_place_of_the_new_file_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("f"), place.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, beside(&path)).unwrap();
        replace_file(&path, b"a", Readers::AsBefore).unwrap();
        fs::hard_link(&other, beside(&path)).unwrap();
        replace_file(&path, b"b", Readers::AsBefore).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(names(place.path()), ["f", "other"]);
    }

    #[test]
    fn of_many_writers_at_once_one_writes_last_and_none_leaves_anything() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let text = |writer: usize| writer.to_string().repeat(10_000);
        thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..8 {
                        replace_file(path, text(writer).as_bytes(), Readers::Owner).unwrap();
                    }
                });
            }
        });
        let last = fs::read_to_string(&path).unwrap();
        assert!((0..8).any(|it| text(it) == last), "{} bytes", last.len());
        assert_eq!(names(place.path()), ["f"]);
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_nothing_beside() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        fs::create_dir(&path).unwrap();
        replace_file(&path, b"a", Readers::AsBefore).unwrap_err();
        assert_eq!(names(place.path()), ["f"]);
    }
}
