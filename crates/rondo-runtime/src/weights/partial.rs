//! A file that is not whole yet: written beside its place, hashed on the way, and put there only
//! when the hash is right.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use data_encoding::HEXLOWER;
use rondo_types::units::size;
use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Bytes hashed at once.
const READ_BYTES: usize = 1 << 20;
/// Room on the disk beyond the file itself, in which a piece of an index lies twice: as an archive
/// and unpacked. Pieces have at most the 100 MB that indexes take.
const SPARE_BYTES: u64 = 256 << 20;

/// The one download of a file: other processes wait for it.
pub(super) struct PartialDownload {
    target: PathBuf,
    path: PathBuf,
    file: File,
    length: u64,
    hash: Sha256,
    _lock: File,
}

impl PartialDownload {
    /// Opens the partial file of `target`, once no other process has it. The existing part is
    /// read for its hash. Blocks.
    ///
    /// # Errors
    /// When a file or directory cannot be made.
    pub(super) fn open(target: &Path) -> Result<Self> {
        let parent = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|err| failed("make", parent, err))?;
        let lock = lock(&beside(target, "lock"))?;
        let path = beside(target, "part");
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(|err| failed("open", &path, err))?;
        let (hash, length) = read_hash(&mut file).map_err(|err| failed("read", &path, err))?;
        Ok(Self {
            target: target.to_owned(),
            path,
            file,
            length,
            hash,
            _lock: lock,
        })
    }

    /// Returns how many bytes are there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the file's place next to which pieces may be kept.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.target, suffix)
    }

    /// Keeps only the first `length` bytes.
    ///
    /// # Errors
    /// When the file cannot be cut or read again.
    pub(super) fn truncate(&mut self, length: u64) -> Result<()> {
        if length >= self.length {
            return Ok(());
        }
        let cut = self.file.set_len(length);
        let read = cut.and_then(|()| read_hash(&mut self.file));
        (self.hash, self.length) = read.map_err(|err| failed("cut", &self.path, err))?;
        Ok(())
    }

    /// Appends more of the file.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|err| failed("write", &self.path, err))?;
        self.hash.update(bytes);
        self.length += u64::try_from(bytes.len()).unwrap_or_default();
        Ok(())
    }

    /// Checks that what is still to come fits on the disk.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check_space(&self, total: u64) -> Result<()> {
        let Ok(disk) = rustix::fs::statvfs(self.path.as_path()) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let needed = total
            .saturating_sub(self.length)
            .saturating_add(SPARE_BYTES);
        if free >= needed {
            return Ok(());
        }
        let parent = self.target.parent().unwrap_or(Path::new("."));
        Err(SetupError::new(
            SetupErrorKind::Other,
            format_args!(
                "the weights need {} more on the disk of `{}`, and {} are free",
                size(needed),
                parent.display(),
                size(free)
            ),
        )
        .hint("free some space, or point `XDG_CACHE_HOME` to another disk"))
    }

    /// Puts the file in its place, if it is the one that was wanted; removes it otherwise.
    ///
    /// # Errors
    /// When a byte is wrong, or the file cannot be renamed.
    pub(super) fn finish(mut self, sha256: Option<&str>) -> Result<PathBuf> {
        let found = HEXLOWER.encode(&self.hash.finalize_reset());
        if let Some(wanted) = sha256.filter(|wanted| *wanted != found) {
            let _ = std::fs::remove_file(&self.path);
            return Err(SetupError::new(
                SetupErrorKind::Other,
                format_args!(
                    "the download is not `{}`: its SHA-256 is {found} and not {wanted}; it was removed",
                    self.target.display()
                ),
            ));
        }
        let synced = self.file.sync_all();
        let placed = synced.and_then(|()| std::fs::rename(&self.path, &self.target));
        placed.map_err(|err| failed("place", &self.target, err))?;
        Ok(self.target.clone())
    }
}

impl Drop for PartialDownload {
    /// Leaves nothing behind if nothing came: another process was faster, or no source had it.
    /// The lock is still held, so no other process can have begun.
    fn drop(&mut self) {
        if self.length == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).map_err(|err| failed("open", path, err))?;
    file.lock().map_err(|err| failed("lock", path, err))?;
    Ok(file)
}

fn read_hash(file: &mut File) -> std::io::Result<(Sha256, u64)> {
    let mut hash = Sha256::new();
    let mut length = 0;
    let mut buffer = vec![0; READ_BYTES];
    file.seek(SeekFrom::Start(0))?;
    loop {
        let count = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok((hash, length));
        };
        hash.update(bytes);
        length += u64::try_from(count).unwrap_or_default();
    }
}

fn failed(what: &str, path: &Path, err: std::io::Error) -> SetupError {
    let context = format!("failed to {what} `{}`", path.display());
    SetupError::because(SetupErrorKind::Other, context, err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of `hello`.
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[test]
    fn an_interrupted_file_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("deep/file");
        PartialDownload::open(&target)
            .unwrap()
            .append(b"hexx")
            .unwrap();
        let mut partial = PartialDownload::open(&target).unwrap();
        assert_eq!(partial.length(), 4);
        partial.truncate(2).unwrap();
        partial.append(b"llo").unwrap();
        assert!(!target.exists());
        partial.finish(Some(HELLO)).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"hello");
        assert!(!beside(&target, "part").exists());
    }

    #[test]
    fn who_waited_for_another_download_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("file");
        let mut first = PartialDownload::open(&target).unwrap();
        let waiting = std::thread::spawn({
            let target = target.clone();
            move || drop(PartialDownload::open(&target).unwrap())
        });
        first.append(b"hello").unwrap();
        first.finish(Some(HELLO)).unwrap();
        waiting.join().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"hello");
        assert!(!beside(&target, "part").exists());
    }

    #[test]
    fn a_wrong_byte_is_refused_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("file");
        let mut partial = PartialDownload::open(&target).unwrap();
        partial.append(b"hellO").unwrap();
        let error = partial.finish(Some(HELLO)).unwrap_err();
        assert!(error.line().contains(HELLO), "{}", error.line());
        assert!(!target.exists() && !beside(&target, "part").exists());
    }

    #[test]
    fn a_disk_that_is_too_small_is_told_before() {
        let dir = tempfile::tempdir().unwrap();
        let partial = PartialDownload::open(&dir.path().join("file")).unwrap();
        partial.check_space(1_000).unwrap();
        let error = partial.check_space(u64::MAX / 2).unwrap_err();
        assert!(error.line().contains("are free"), "{}", error.line());
    }
}
