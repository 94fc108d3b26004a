//! Keeps what commands leave in their directory within bounds.

use super::guard::COMMAND_END_MAX;
use super::link::{attach_socket_name, supervisor_of};
use super::protocol::END;
use super::status::{CallStatus, CommandState};
use super::unix;
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// The bound on calls whose files are kept; more than can be in doubt at a time.
const CALLS_MAX: usize = 1024;
/// The bound on all files together, in bytes.
const BYTES_MAX: u64 = 2 << 30;

/// How long commands that are being stopped are waited for.
const END_MAX: Duration = COMMAND_END_MAX.saturating_add(Duration::from_secs(1));
/// How often it is looked for whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The files of one call: its status, its whole output.
#[derive(Default)]
struct CallFiles {
    files: Vec<PathBuf>,
    bytes: u64,
    touched: Option<SystemTime>,
}

/// Removes the files of the oldest calls if there are too many, never of one that runs.
///
/// Entries that cannot be inspected or removed stay.
pub fn remove_oldest(state_dir: &Path) {
    within(state_dir, CALLS_MAX, BYTES_MAX);
}

fn within(state_dir: &Path, calls_max: usize, bytes_max: u64) {
    let mut calls: Vec<(String, CallFiles)> = left(state_dir).into_iter().collect();
    calls.sort_by_key(|(_, left)| left.touched);
    let mut count = calls.len();
    let mut bytes: u64 = calls.iter().map(|(_, left)| left.bytes).sum();
    for (key, left) in calls {
        if count <= calls_max && bytes <= bytes_max {
            return;
        }
        if runs(state_dir, &key) {
            continue;
        }
        for file in left.files {
            let _ = fs::remove_file(file);
        }
        count -= 1;
        bytes -= left.bytes;
    }
}

fn left(state_dir: &Path) -> HashMap<String, CallFiles> {
    let mut calls: HashMap<String, CallFiles> = HashMap::new();
    let Ok(entries) = fs::read_dir(state_dir) else {
        return calls;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let (Some(key), Ok(metadata)) = (key_of(&path), entry.metadata()) else {
            continue;
        };
        if metadata.is_file() {
            let left = calls.entry(key).or_default();
            left.files.push(path);
            left.bytes += metadata.len();
            left.touched = left.touched.max(metadata.modified().ok());
        }
    }
    calls
}

/// Returns the key of the call that a file belongs to; files of others are skipped.
fn key_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    // Only older versions wrote a status file beside its place.
    let key = [".json.part", ".json", ".out"]
        .iter()
        .find_map(|end| name.strip_suffix(end))?;
    Some(key.to_owned())
}

/// Returns whether a command still runs whose agent is gone, or may be.
///
/// Only of commands that outlive their agents: the others have no attach socket there.
#[must_use]
pub fn are_alive(state_dir: &Path) -> bool {
    !living(state_dir).is_empty()
}

/// Ends every command that runs without its agent, and waits for their ends, for a few seconds at
/// most. No process may continue with them meanwhile.
pub fn end_all(state_dir: &Path) {
    let until = Instant::now() + END_MAX;
    for supervisor in living(state_dir) {
        if let Ok(mut called) = unix::connect_to(state_dir, &attach_socket_name(supervisor)) {
            let _ = called.write_all(&[END]);
            unix::resume(supervisor);
        }
    }
    while are_alive(state_dir) && Instant::now() < until {
        sleep(LOOK_EVERY);
    }
}

/// Returns the supervisors whose attach sockets are there, by their process ids.
fn living(state_dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(state_dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let sockets = names.filter_map(|name| supervisor_of(&name));
    sockets.filter(|it| unix::exists(*it)).collect()
}

fn runs(state_dir: &Path, key: &str) -> bool {
    // One whose command has ended may supervise another by now.
    let may_run =
        |status: CallStatus| status.state != CommandState::Ended && status.supervisor_is_alive();
    CallStatus::read(state_dir, key).is_ok_and(|status| status.is_some_and(may_run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    /// Makes the files of four calls, the oldest first; each has ten bytes of output.
    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for age in 0..4 {
            for end in ["json", "out"] {
                let name = format!("key.{age}.{end}");
                let file = File::create(dir.path().join(name)).unwrap();
                file.set_len(if end == "out" { 10 } else { 0 }).unwrap();
                let at = SystemTime::UNIX_EPOCH + Duration::from_secs(age);
                file.set_times(FileTimes::new().set_modified(at)).unwrap();
            }
        }
        fs::write(dir.path().join("another's"), "").unwrap();
        dir
    }

    fn kept(dir: &Path) -> Vec<String> {
        let mut keys: Vec<_> = left(dir).into_keys().collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_oldest_calls_go_where_there_are_too_many_or_they_are_too_large() {
        let all = ["key.0", "key.1", "key.2", "key.3"];
        for (calls_max, bytes_max, first) in [
            (4, 40, 0),
            (5, 41, 0),
            (3, 40, 1),
            (4, 39, 1),
            (4, 20, 2),
            (0, 40, 4),
        ] {
            let dir = dir();
            within(dir.path(), calls_max, bytes_max);
            assert_eq!(kept(dir.path()), all[first..], "{calls_max} {bytes_max}");
            assert!(dir.path().join("another's").exists());
        }
    }

    #[test]
    fn a_call_that_runs_stays_and_one_that_ended_goes_though_its_supervisor_is_there() {
        assert_eq!(kept_in("running"), ["key.0"]);
        assert_eq!(kept_in("ended"), ["key.3"]);
    }

    /// Returns the calls left of four of which one is kept, if the oldest is in that state.
    fn kept_in(state: &str) -> Vec<String> {
        let dir = dir();
        let pid = std::process::id();
        let start_time = unix::start_time(pid).unwrap_or(0);
        let status = serde_json::json!({
            "version": 1, "state": state, "pid": pid, "start_time": start_time, "command": ""
        });
        fs::write(dir.path().join("key.0.json"), format!("{status}\n")).unwrap();
        let at = SystemTime::UNIX_EPOCH;
        let file = File::options()
            .write(true)
            .open(dir.path().join("key.0.json"));
        let times = FileTimes::new().set_modified(at);
        file.unwrap().set_times(times).unwrap();
        within(dir.path(), 1, 1000);
        kept(dir.path())
    }
}
