//! The journal's file as it was opened: appends to a file that was removed since would be lost.

use crate::error::JournalError;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes that the smallest journal has: one page of the smallest kind.
const BYTES_MIN: u64 = 512;

/// Path of an opened journal, with the identity of the file.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    /// None if it is in memory.
    file: Option<(u64, u64)>,
}

/// Why nothing can be written to the file.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    pub(crate) reason: String,
    /// Set if the problem is permanent.
    pub(crate) is_gone: bool,
}

impl JournalFile {
    /// Records which file is there now.
    pub(crate) fn of(path: &Path) -> Result<Self, JournalError> {
        let metadata = fs::metadata(path).map_err(JournalError::io(path))?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(id(&metadata)),
        })
    }

    /// A journal in memory, which does not go before its process does.
    pub(crate) fn in_memory() -> Self {
        Self {
            path: PathBuf::new(),
            file: None,
        }
    }

    /// Returns an error if that file is not there any more, or cannot be looked at.
    pub(crate) fn check(&self) -> Result<(), WriteFailure> {
        let Some(file) = self.file else {
            return Ok(());
        };
        let path = self.path.display();
        match fs::metadata(&self.path) {
            Ok(metadata) if id(&metadata) == file => Ok(()),
            Ok(_) => Err(WriteFailure {
                reason: format!("`{path}` was meanwhile replaced by another file"),
                is_gone: true,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WriteFailure {
                reason: format!("`{path}` was removed or renamed meanwhile"),
                is_gone: true,
            }),
            Err(error) => Err(WriteFailure {
                reason: format!("failed to inspect `{path}`: {error}"),
                is_gone: false,
            }),
        }
    }
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Refuses what is not a journal before anything waits for it or writes over it. `locks` is the directory
/// of the sessions' locks: if there are any, a journal without a page has lost them.
pub(crate) fn refuse_others(path: &Path, locks: &Path) -> Result<(), JournalError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(JournalError::io(path)(error)),
    };
    let refused = |reason: String| JournalError::NotAJournal {
        path: path.to_owned(),
        reason,
    };
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let bytes = metadata.len();
    let had_sessions = || fs::read_dir(locks).is_ok_and(|mut it| it.next().is_some());
    // Another process may have made its first page, and a session, since the file was looked at.
    let is_still_empty = || fs::metadata(path).is_ok_and(|it| it.len() == 0);
    let is_lost = bytes == 0 && had_sessions() && is_still_empty();
    if (1..BYTES_MIN).contains(&bytes) || is_lost {
        let what = "so its sessions are lost: restore a backup, or move it away to start over";
        return Err(refused(format!("it has {bytes} bytes, {what}")));
    }
    Ok(())
}
