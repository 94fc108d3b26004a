//! Keeps the state of commands, one directory a session, from growing without bound.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the state of a session's commands is kept: their status and what they printed in full.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// The bound on sessions whose state is kept; the oldest go first.
const SESSIONS_MAX: usize = 200;
/// The bound on directories that one start looks at, since a start must stay quick.
const LOOKED_AT_MAX: usize = 1000;

/// Removes the state of old sessions below `calls`, never that of `current`.
///
/// What cannot be looked at or removed stays: another process may be at it.
pub(crate) fn prune(calls: &Path, current: &str) {
    let Ok(entries) = fs::read_dir(calls) else {
        return;
    };
    let mut others: Vec<PathBuf> = entries
        .flatten()
        .take(LOOKED_AT_MAX)
        .filter(|entry| entry.file_name() != current)
        .map(|entry| entry.path())
        .collect();
    // Session ids begin with the time, so that names sort by age.
    others.sort_unstable();
    let too_many = (others.len() + 1).saturating_sub(SESSIONS_MAX);
    for (index, path) in others.iter().enumerate() {
        if index < too_many || is_old(path) {
            remove(path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT_FOR))
}

fn remove(path: &Path) {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    if let Err(err) = removed {
        tracing::debug!(path = %path.display(), %err, "old state was not removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    #[test]
    fn old_state_goes_and_the_newest_of_many_stays() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("call.json"), "{}").unwrap();
            path
        };
        let old = make("s-000");
        let kept: Vec<_> = (1..SESSIONS_MAX)
            .map(|index| make(&format!("s-{index:03}")))
            .collect();
        let current = make("s-zzz");
        let long_ago = std::time::SystemTime::UNIX_EPOCH + KEPT_FOR;
        let aged = kept.last().unwrap();
        let times = FileTimes::new().set_modified(long_ago);
        File::open(aged).unwrap().set_times(times).unwrap();
        prune(root.path(), "s-zzz");
        assert!(!old.exists(), "one too many");
        assert!(!aged.exists(), "too old");
        assert!(current.exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), SESSIONS_MAX - 1);
    }
}
