//! Files that only the user can read, replaced as a whole.

use rondo_launch::{Readers, replace_file};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Reads a file up to a bound; one that is longer is cut there.
pub(crate) fn read(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file, and makes its directory.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    make_directory(file)?;
    replace_file(file, bytes, Readers::Owner)
}

/// Opens a file that is there to be locked, and makes its directory.
pub(crate) fn open_lock(file: &Path) -> io::Result<File> {
    make_directory(file)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    options.mode(0o600).open(file)
}

fn make_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(parent) => fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent),
        None => Ok(()),
    }
}
