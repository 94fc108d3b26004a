//! Repositories below a directory, whose settings and hooks are run by whoever works in them.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// The bound on entries of directories that are looked at below one directory.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// The bound on repositories that are found.
pub(crate) const REPOSITORIES_MAX: usize = 64;
/// What makes a directory a repository.
pub(crate) const GIT: &str = ".git";

/// Returns each `.git` below the subdirectories of a directory, nearest first, as far as the bounds let it. Links are
/// not followed.
pub(crate) fn find(root: &Path) -> Vec<PathBuf> {
    find_within(root, ENTRIES_MAX)
}

fn find_within(root: &Path, entries_max: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = entries_max;
    let mut next = VecDeque::from([root.to_owned()]);
    while let Some(directory) = next.pop_front() {
        // What cannot be read is passed over.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if left == 0 || found.len() == REPOSITORIES_MAX {
                return found;
            }
            left -= 1;
            let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
            if entry.file_name() != GIT {
                if is_directory {
                    next.push_back(entry.path());
                }
            } else if directory != root {
                found.push(entry.path());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_found_nearest_first_and_within_the_bound() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for folder in [".git/a/.git", "b/.git", "c/d/.git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("c"), root.join("b/link")).unwrap();
        let expected = [root.join("b/.git"), root.join("c/d/.git")];
        assert_eq!(find(root), expected);
        // `.git`, `b`, `c`, `b/.git`, `b/link`, `c/d`, `c/d/.git`.
        assert_eq!(find_within(root, 7), expected);
        assert_eq!(find_within(root, 8), expected);
        assert_eq!(find_within(root, 6), expected[..1]);
    }
}
