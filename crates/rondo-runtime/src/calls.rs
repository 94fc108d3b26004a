//! The files of commands (status and full output), one directory for each session, and their removal.

use crate::paths::Paths;
use crate::scratch;
use data_encoding::HEXUPPER;
use rondo_core::session_store::{SessionState, StoreError};
use rondo_core::storage::Store;
use rondo_exec::supervisor;
use rondo_types::SessionId;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long the files of a session's commands are kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// The bound on sessions whose files are kept; the oldest are removed first.
const SESSIONS_MAX: usize = 200;
/// How long the files of a session that is not in this journal are kept, whatever their number: the session
/// may be in another journal, or just starting.
const UNKNOWN_FOR: Duration = Duration::from_secs(24 * 3600);
/// The bound on directories that are examined at one start, to keep it fast.
const LOOKED_AT_MAX: usize = 1000;
/// The bound on a directory's name, in bytes; a file name has room for more.
const NAME_MAX: usize = 128;

/// Prefix of the names of directories of ids that cannot be file names.
const HASHED: &str = "%";

/// Returns the directory of a session's commands. An id that is not a plain name, as an import may bring, is
/// replaced by its hash.
pub fn dir(paths: &Paths, session: &SessionId) -> PathBuf {
    root(paths).join(name(session))
}

fn root(paths: &Paths) -> PathBuf {
    paths.state.join("calls")
}

fn name(session: &SessionId) -> String {
    let id = session.as_str();
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.:@+".contains(&it);
    let is_name = (1..=NAME_MAX).contains(&id.len()) && !id.starts_with('.');
    match is_name && id.bytes().all(is_plain) {
        true => id.to_owned(),
        false => format!("{HASHED}{}", HEXUPPER.encode(&Sha256::digest(id))),
    }
}

/// Removes the files of old sessions, except those of `current`, of interrupted sessions, of sessions that a
/// process owns, and of running commands.
///
/// Files that cannot be read or removed stay.
pub(crate) fn prune(paths: &Paths, current: &SessionId, store: &Store) {
    // Sessions in memory have no files, and their journal knows no others.
    let root = root(paths);
    if store.is_in_memory() || !scratch::is_due(&root) {
        return;
    }
    prune_below(&root, &name(current), &|session| state(store, session));
}

/// Ends the running commands of a session that was removed, and removes its files.
pub fn forget(paths: &Paths, session: &SessionId) {
    let dir = dir(paths, session);
    if dir.is_dir() {
        supervisor::end_all(&dir);
        remove(&dir);
    }
}

/// Returns the state of a session in the journal; `None` if there is no such session. One that a process owns or that
/// cannot be read counts as running.
fn state(store: &Store, session: &SessionId) -> Option<SessionState> {
    if store.is_in_use(session) {
        return Some(SessionState::Running);
    }
    match store.session(session) {
        Ok(info) => Some(info.state),
        Err(StoreError::Unknown { .. }) => None,
        Err(_) => Some(SessionState::Running),
    }
}

fn prune_below(calls: &Path, current: &str, state: &dyn Fn(&SessionId) -> Option<SessionState>) {
    let Ok(entries) = fs::read_dir(calls) else {
        return;
    };
    let others = entries.flatten().filter(|it| it.file_name() != current);
    let mut others: Vec<(Duration, PathBuf)> = others
        .take(LOOKED_AT_MAX)
        .filter_map(|it| Some((age(&it)?, it.path())))
        .collect();
    others.sort_unstable_by(|a, b| b.cmp(a));
    let mut surplus = (others.len() + 1).saturating_sub(SESSIONS_MAX);
    for (age, path) in others {
        if surplus == 0 && age <= KEPT_FOR {
            return;
        }
        if may_go(&path, age, state) {
            remove(&path);
            surplus = surplus.saturating_sub(1);
        }
    }
}

fn may_go(path: &Path, age: Duration, state: &dyn Fn(&SessionId) -> Option<SessionState>) -> bool {
    // No session is found by a hash, whose directory stays its time.
    let name = path.file_name().and_then(|it| it.to_str());
    let is_over = match name.and_then(|it| state(&SessionId::new(it))) {
        Some(SessionState::Done) => true,
        Some(SessionState::Running | SessionState::CutOff | SessionState::Parked) => false,
        None => age > UNKNOWN_FOR,
    };
    is_over && !supervisor::are_alive(path)
}

/// Returns for how long no call has begun in a directory.
fn age(entry: &DirEntry) -> Option<Duration> {
    let modified = entry.metadata().ok()?.modified().ok()?;
    Some(
        SystemTime::now()
            .duration_since(modified)
            .unwrap_or_default(),
    )
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

    const HOUR: Duration = Duration::from_secs(3600);

    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn make(&self, name: &str, age: Duration) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("call.json"), "{}").unwrap();
            let times = FileTimes::new().set_modified(SystemTime::now() - age);
            File::open(&path).unwrap().set_times(times).unwrap();
            path
        }

        /// Makes as many as are kept, beside the current one.
        fn fill(&self) -> Vec<PathBuf> {
            let made = (0..SESSIONS_MAX - 1).map(|index| self.make(&format!("s-{index:03}"), HOUR));
            made.collect()
        }

        fn prune(&self, state: &dyn Fn(&str) -> Option<SessionState>) {
            prune_below(self.0.path(), "current", &|it| state(it.as_str()));
        }
    }

    #[test]
    fn the_oldest_of_too_many_goes_and_what_is_too_old() {
        let root = Root::new();
        let kept = root.fill();
        let current = root.make("current", KEPT_FOR * 2);
        let surplus = root.make("s-999", HOUR * 2);
        let old = root.make("s-zzz", KEPT_FOR + HOUR);
        root.prune(&|_| Some(SessionState::Done));
        assert!(!surplus.exists() && !old.exists());
        assert!(current.exists() && kept.iter().all(|it| it.exists()));
    }

    #[test]
    fn what_is_needed_stays_however_old_it_is() {
        let root = Root::new();
        let kept = root.fill();
        let needed = root.make("needed", KEPT_FOR * 2);
        let newer = root.make("newer", HOUR * 3);
        root.prune(&|name| match name {
            "needed" => Some(SessionState::CutOff),
            _ => Some(SessionState::Done),
        });
        assert!(needed.exists());
        assert!(!newer.exists(), "one goes in its place");
        assert_eq!(kept.iter().filter(|it| !it.exists()).count(), 1);
    }

    #[test]
    fn what_the_journal_does_not_know_stays_for_a_day() {
        let root = Root::new();
        root.fill();
        let fresh = root.make("fresh", HOUR * 23);
        let stale = root.make("stale", HOUR * 25);
        root.prune(&|name| match name {
            "fresh" | "stale" => None,
            _ => Some(SessionState::Done),
        });
        assert!(fresh.exists() && !stale.exists());
    }

    /// A process of that id is there: it is this one.
    #[test]
    fn what_runs_stays() {
        let root = Root::new();
        let alive = root.make("alive", KEPT_FOR * 2);
        let door = format!("{}.sock", std::process::id());
        fs::write(alive.join(door), "").unwrap();
        let dead = root.make("dead", KEPT_FOR * 2);
        fs::write(dead.join(format!("{}.sock", i32::MAX)), "").unwrap();
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        for path in [&alive, &dead] {
            File::open(path).unwrap().set_times(times).unwrap();
        }
        root.prune(&|_| Some(SessionState::Done));
        assert!(alive.exists() && !dead.exists());
    }

    #[test]
    fn no_id_leads_out_of_the_directory() {
        let paths = Paths {
            config: PathBuf::new(),
            data: PathBuf::new(),
            state: PathBuf::from("/state"),
            cache: PathBuf::new(),
        };
        let below = |id: &str| dir(&paths, &SessionId::new(id));
        for id in ["s-1_a", "Mine.2", "a:b@c+d"] {
            assert_eq!(below(id), Path::new("/state/calls").join(id));
        }
        let long = "a".repeat(NAME_MAX + 1);
        for id in [
            "", ".", "..", "../x", "/tmp", "a/b", "\u{e4}", "a\0", "%41", &long,
        ] {
            let dir = below(id);
            assert_eq!(dir.parent(), Some(Path::new("/state/calls")), "{id}");
            let name = dir.file_name().unwrap().to_str().unwrap();
            let hash = name.strip_prefix(HASHED).unwrap();
            assert!(
                hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit()),
                "{id}"
            );
        }
    }
}
