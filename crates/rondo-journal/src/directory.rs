//! Directories that the loss of power does not take back.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf, absolute};

/// Syncs the names of a directory and of all above it: without them, what is synced in a new directory is not
/// found again after a loss of power. It blocks for the disk.
///
/// # Errors
/// When the path is empty.
pub fn sync_above(dir: &Path) -> io::Result<()> {
    for above in above(dir)? {
        // A user who may not open a directory has made nothing in it, and some file systems have nothing to sync here.
        let _ = File::open(above).and_then(|it| it.sync_all());
    }
    Ok(())
}

/// All of them: the creator of `dir` may have made any of those.
fn above(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = absolute(dir)?;
    Ok(dir.ancestors().skip(1).map(Path::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_above_is_synced_up_to_the_root() {
        let of = |dir: &str| above(Path::new(dir)).unwrap();
        assert_eq!(of("/a/b/c"), ["/a/b", "/a", "/"].map(PathBuf::from));
        let here = std::env::current_dir().unwrap();
        assert_eq!(of("a/b")[..2], [here.join("a"), here]);
        assert!(above(Path::new("")).is_err());
    }
}
