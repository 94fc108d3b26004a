//! Opens files whose names come from the user or a project.

pub use crate::sessions::sync_above;
pub use rondo_launch::{Readers, replace_file};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Returns whether there is something of this name, or may be: also a link that leads nowhere, and what cannot be looked at.
/// So a file that guards something is ignored only if it was never created.
pub fn is_present(path: &Path) -> bool {
    let is_absent = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    for it in path.ancestors() {
        match it.symlink_metadata() {
            // Above the name, a link that leads nowhere stands for a directory that is not there, such as an unmounted one.
            Ok(known) => return it == path || (known.is_symlink() && it.metadata().is_err()),
            Err(err) if is_absent(err.kind()) => {}
            Err(_) => return true,
        }
    }
    false
}

/// Opens a regular file for reading. A pipe or terminal is refused without blocking.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}

/// Reads a regular file of no more than `bytes_max` bytes.
///
/// # Errors
/// When it cannot be opened or read, is not a regular file, is larger, or is not UTF-8 text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

/// Replaces a file of the user's atomically, and creates it and its directories if they are missing.
///
/// # Errors
/// When it cannot be written; the old file is then unchanged.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    replace_file(path, text.as_bytes(), Readers::AsBefore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_wrote_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name)).unwrap();
        std::fs::write(path("file"), "").unwrap();
        link("nowhere", "dangling");
        link("loop", "loop");
        for present in [
            "file",
            "dangling",
            "loop",
            "dangling/file",
            "dangling/more/file",
        ] {
            assert!(is_present(&path(present)), "{present}");
        }
        for absent in ["other", "other/file", "file/below"] {
            assert!(!is_present(&path(absent)), "{absent}");
        }
        assert!(!is_present(Path::new("/dev/null/config.toml")));
    }

    #[test]
    fn a_pipe_is_refused_at_once_and_a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        let kind = |read: io::Result<String>| read.unwrap_err().kind();
        assert_eq!(kind(read_text(&pipe, 9)), io::ErrorKind::InvalidInput);
        assert_eq!(
            kind(read_text(folder.path(), 9)),
            io::ErrorKind::InvalidInput
        );
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "four");
        assert_eq!(kind(read_text(&file, 3)), io::ErrorKind::InvalidData);
    }
}
