//! Files that only the user can read, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells files apart that are written at once.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Reads a file up to a bound; one that is longer is cut there.
pub(crate) fn read(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file, and makes its directory.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    make_directory(file)?;
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = file.with_extension(format!("{}-{next}.new", std::process::id()));
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&beside).and_then(|mut new| {
        new.write_all(bytes)?;
        new.sync_all()?;
        fs::rename(&beside, file)
    });
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
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
