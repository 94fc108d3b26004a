//! Room that is kept so that sessions can be removed from a disk that is full.
//!
//! SQLite writes what it removes to its log first, and needs an index of that: without any room nothing
//! could be removed that would make some.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The file in the journal's directory.
const FILE_NAME: &str = "journal.reserve";
/// Its bytes: the index of a log, and the pages that a removal changes.
const BYTES: usize = 256 << 10;

/// Makes the reserve if it is missing and the disk has room for it.
pub(crate) fn make(dir: &Path) {
    let path = dir.join(FILE_NAME);
    let mut options = OpenOptions::new();
    let Ok(mut file) = options.create_new(true).write(true).mode(0o600).open(&path) else {
        return;
    };
    if file.write_all(&vec![0xff; BYTES]).is_err() {
        let _ = fs::remove_file(path);
    }
}

/// Gives its room away, and returns whether there was any.
pub(crate) fn release(dir: &Path) -> bool {
    fs::remove_file(dir.join(FILE_NAME)).is_ok()
}
