//! Files in the journal's place, before it is opened and while it is used.

use crate::support::{append, id, journal, said, three};
use rondo_core::ports::{AppendError, Seq};
use rondo_journal::{JournalError, Options, Store};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[tokio::test]
async fn nothing_is_appended_to_a_journal_that_is_gone() {
    for another in [false, true] {
        let journal = journal();
        let session = three(&journal, "a").await;
        let path = journal.store.path();
        fs::rename(&path, path.with_extension("old")).unwrap();
        if another {
            fs::write(&path, "").unwrap();
        }
        let refused = append(&session, Seq(3), vec![said("four")]).await;
        assert!(matches!(refused, Err(AppendError::Io(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn what_is_no_journal_is_refused_and_left_as_it_is() {
    for (bytes, is_refused) in [("", true), ("x", true)] {
        let journal = journal();
        drop(three(&journal, "a").await);
        let (path, dir) = (journal.store.path(), journal.dir);
        drop(journal.store);
        fs::write(&path, bytes).unwrap();
        let opened = Store::open(dir.path(), Options::default());
        assert_eq!(
            matches!(opened, Err(JournalError::NotAJournal { .. })),
            is_refused
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
    }
}

#[test]
fn a_pipe_in_the_journals_place_is_refused_and_not_waited_for() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("journal.db");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let refused = Store::open(dir.path(), Options::default());
    assert!(matches!(refused, Err(JournalError::NotAJournal { .. })));
}

#[test]
fn an_empty_file_where_no_session_was_is_a_new_journal() {
    let dir = tempfile::TempDir::new().unwrap();
    fs::write(dir.path().join("journal.db"), "").unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(store.sessions(9).unwrap(), []);
}

/// SQLite does not wait for other processes while it makes a new file one with a log.
#[test]
fn a_new_journal_that_another_process_writes_to_is_opened() {
    for _ in 0..20 {
        let dir = tempfile::TempDir::new().unwrap();
        let other = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        let is_open = AtomicBool::new(false);
        let opened = thread::scope(|scope| {
            let is_open = &is_open;
            scope.spawn(move || {
                while !is_open.load(Ordering::Relaxed) {
                    let _ = other.execute_batch("BEGIN IMMEDIATE; ROLLBACK;");
                }
            });
            let opened = Store::open_to_read(dir.path(), Options::default());
            is_open.store(true, Ordering::Relaxed);
            opened
        });
        assert_eq!(opened.unwrap().sessions(9).unwrap(), []);
    }
}

#[tokio::test]
async fn a_session_from_the_future_is_not_the_latest_for_ever() {
    let journal = journal();
    let ahead = three(&journal, "ahead").await;
    let mut record = said("from the future");
    record.at_ms = rondo_types::TimeMs(u64::MAX >> 2);
    append(&ahead, Seq(3), vec![record]).await.unwrap();
    drop(three(&journal, "b").await);
    assert_eq!(journal.store.resolve("latest").unwrap(), id("b"));
    // Written again, it has the time of that.
    let mut record = said("now");
    record.at_ms = rondo_types::TimeMs(5_000);
    append(&ahead, Seq(4), vec![record]).await.unwrap();
    assert_eq!(journal.store.resolve("latest").unwrap(), id("ahead"));
}

/// Lines of the kernel's locks that this process holds on a file.
#[cfg(target_os = "linux")]
fn locks_of(path: &std::path::Path) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let file = format!(":{} ", fs::metadata(path).unwrap().ino());
    let process = format!(" {} ", std::process::id());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let is_held = |line: &&str| line.contains(&file) && line.contains(&process);
    locks.lines().filter(is_held).count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_second_open_keeps_the_locks_of_the_first() {
    let dir = tempfile::TempDir::new().unwrap();
    let first = Store::open(dir.path(), Options::default()).unwrap();
    let path = first.path();
    assert!(locks_of(&path) > 0);
    let second = Store::open(dir.path(), Options::default()).unwrap();
    assert!(locks_of(&path) > 0);
    drop(second);
    assert!(locks_of(&path) > 0);
    assert_eq!(first.unknown_file_system().unwrap(), None);
}
