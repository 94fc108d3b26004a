//! The repository of a linked worktree, which lies outside of it.

use crate::nested::GIT;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The bound on the files that say where a repository is, in bytes.
const POINTER_BYTES_MAX: u64 = 4_096;
/// What a file begins with that says where the repository of its directory is.
const POINTER: &str = "gitdir:";

/// The repository of a linked worktree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Worktree {
    /// The directory that all worktrees share.
    pub(crate) common: PathBuf,
    /// That of this one, inside of it.
    pub(crate) own: PathBuf,
}

impl Worktree {
    /// Finds the repository of a directory that is a linked worktree.
    ///
    /// What the directory says is not enough, since it may have come with an archive: the repository must name the
    /// directory too.
    pub(crate) fn find(root: &Path) -> Option<Self> {
        let file = root.join(GIT);
        if !file.symlink_metadata().ok()?.is_file() {
            return None;
        }
        let pointer = read(&file)?;
        let own = root.join(pointer.strip_prefix(POINTER)?.trim());
        let own = own.canonicalize().ok()?;
        let named = own.join(read(&own.join("gitdir"))?.trim());
        if named.canonicalize().ok()? != file.canonicalize().ok()? {
            return None;
        }
        let common = own.join(read(&own.join("commondir"))?.trim());
        let common = common.canonicalize().ok()?;
        let is_outside = !common.starts_with(root);
        let is_inside_common = own.parent()? == common.join("worktrees");
        (is_outside && is_inside_common).then_some(Self { common, own })
    }
}

fn read(path: &Path) -> Option<String> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(POINTER_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_repository_is_found_only_where_it_names_the_worktree() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (tree, common) = (place.join("tree"), place.join("main/.git"));
        let own = common.join("worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(Worktree::find(&tree), None);
        fs::write(own.join("gitdir"), format!("{}/.git\n", tree.display())).unwrap();
        let found = Worktree::find(&tree).unwrap();
        assert_eq!((&found.common, &found.own), (&common, &own));
        let other = place.join("other");
        fs::create_dir(&other).unwrap();
        fs::copy(tree.join(".git"), other.join(".git")).unwrap();
        assert_eq!(Worktree::find(&other), None);
        fs::write(own.join("commondir"), "/etc\n").unwrap();
        assert_eq!(Worktree::find(&tree), None);
    }
}
