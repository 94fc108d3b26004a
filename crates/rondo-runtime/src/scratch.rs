//! The caches of sandboxed commands, one directory for each session, and their removal.

use crate::calls;
use crate::error::Result;
use crate::paths::Paths;
use crate::tools::private_dir;
use rondo_types::SessionId;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The bound on sessions whose caches are kept; those that were not used for longest are removed first.
const SESSIONS_MAX: usize = 8;
/// Caches of sessions whose last turn began this recently may be in use, and are kept whatever their number.
const USED_FOR: Duration = Duration::from_hours(1);
/// How often a process looks at what other sessions left in a directory. A gateway begins a hundred turns a second, each of
/// which would look at the files of all the others.
const LOOK: Duration = Duration::from_mins(1);
/// The bound on directories of which it is known when they were looked at.
const DIRECTORIES_MAX: usize = 32;

/// When this process looked at which directory.
static LOOKED: Mutex<Vec<(PathBuf, SystemTime)>> = Mutex::new(Vec::new());

/// Returns whether to check now what other sessions left in a directory, and counts it as checked.
pub(crate) fn is_due(directory: &Path) -> bool {
    let now = SystemTime::now();
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    // A clock that was set back makes it due.
    looked.retain(|(_, at)| now.duration_since(*at).is_ok_and(|it| it < LOOK));
    let is_known = looked.iter().any(|(known, _)| known == directory);
    if !is_known && looked.len() < DIRECTORIES_MAX {
        looked.push((directory.to_owned(), now));
    }
    !is_known
}

/// Makes the directory of a session's caches if it is not there, and removes those of old sessions.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn dir(paths: &Paths, session: &SessionId) -> Result<PathBuf> {
    let root = paths.cache.join("sandbox");
    let calls = calls::dir(paths, session);
    let directory = root.join(calls.file_name().unwrap_or_default());
    private_dir(&directory)?;
    // If it fails, they are removed earlier.
    let _ = File::open(&directory).and_then(|it| it.set_modified(SystemTime::now()));
    if is_due(&root) {
        prune(&root, SESSIONS_MAX, USED_FOR);
    }
    Ok(directory)
}

fn prune(root: &Path, sessions_max: usize, used_for: Duration) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut found: Vec<(Duration, PathBuf)> = entries
        .filter_map(|entry| {
            let used = entry.metadata().ok()?.modified().ok()?;
            Some((used.elapsed().unwrap_or_default(), entry.path()))
        })
        .collect();
    found.sort();
    for (unused, path) in found.into_iter().skip(sessions_max) {
        if unused >= used_for {
            // A file that cannot be removed is tried again the next time.
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_left_in_a_directory_is_looked_at_once_in_a_while() {
        let one = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        assert!(is_due(one.path()));
        assert!(!is_due(one.path()));
        assert!(is_due(other.path()));
        let mut looked = LOOKED.lock().unwrap();
        let of_one = looked.iter_mut().find(|it| it.0 == one.path()).unwrap();
        of_one.1 -= LOOK;
        drop(looked);
        assert!(is_due(one.path()));
    }

    #[test]
    fn the_caches_that_were_used_last_are_kept() {
        let root = tempfile::tempdir().unwrap();
        for age in 0..4 {
            let path = root.path().join(age.to_string());
            fs::create_dir_all(path.join("go-build")).unwrap();
            let used = SystemTime::now() - Duration::from_hours(age * 10);
            File::open(&path).unwrap().set_modified(used).unwrap();
        }
        let left = || {
            let names = fs::read_dir(root.path())
                .unwrap()
                .map(|it| it.unwrap().file_name());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        prune(root.path(), 4, Duration::ZERO);
        assert_eq!(left(), ["0", "1", "2", "3"]);
        prune(root.path(), 1, Duration::from_hours(25));
        assert_eq!(left(), ["0", "1", "2"]);
        prune(root.path(), 1, Duration::from_hours(20));
        assert_eq!(left(), ["0", "1"]);
    }
}
