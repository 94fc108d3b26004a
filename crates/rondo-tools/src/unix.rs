//! File metadata that only Unix has.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns the id of the user that a path belongs to; none where it cannot be looked at.
pub(crate) fn owner(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|it| it.uid())
}
