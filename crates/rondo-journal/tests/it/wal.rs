//! The write-ahead log of a copy is cut: every commit before the cut is there.

use crate::support::{id, said, say};
use rondo_core::Journal as _;
use rondo_core::ports::{Append, Commit, MailBody, Mailbox as _, NewMail, Seq};
use rondo_journal::{Options, Store};
use rondo_types::TimeMs;
use std::fs::{self, OpenOptions};
use std::path::Path;
use tempfile::TempDir;

/// Cuts that are tried, spread evenly and to odd places by a prime step.
const CUTS: u64 = 150;

fn never_copied() -> Options {
    Options {
        checkpoint_pages: 0,
        ..Options::default()
    }
}

#[tokio::test]
async fn every_commit_before_a_cut_is_there() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), never_copied()).unwrap();
    let wal = dir.path().join("journal.db-wal");
    let session = store.create(&id("a"), TimeMs(1)).unwrap();
    let begun = fs::metadata(&wal).unwrap().len();
    // After commit n the log has this length, and n records are durable.
    let mut lengths = vec![begun];
    for n in 0..40 {
        say(&session, Seq(n), &["a record"]).await;
        lengths.push(fs::metadata(&wal).unwrap().len());
    }
    let whole = *lengths.last().unwrap();
    for n in 0..CUTS {
        let cut = begun + (n * 7_919_993) % (whole - begun + 1);
        let durable = lengths.iter().filter(|length| **length <= cut).count() as u64 - 1;
        let copy = copy_cut(dir.path(), cut);
        let store = Store::open(copy.path(), never_copied()).unwrap();
        let report = store.check(&id("a")).unwrap();
        assert_eq!(
            (report.sound, report.defect),
            (durable, None),
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn at_every_cut_what_is_recorded_waits_no_more() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), never_copied()).unwrap();
    let wal = dir.path().join("journal.db-wal");
    let session = store.create(&id("a"), TimeMs(1)).unwrap();
    let begun = fs::metadata(&wal).unwrap().len();
    // After each commit: the log's length, and how many records there are and messages wait.
    let mut states = vec![(begun, 0, 0)];
    for n in 0..20 {
        let mail = NewMail {
            session: id("a"),
            key: n.to_string(),
            actor: String::new(),
            at_ms: TimeMs(1),
            body: MailBody::Cancel,
        };
        let pushed = store.push(mail).await.unwrap();
        states.push((fs::metadata(&wal).unwrap().len(), n, 1));
        let (fence, batch) = (session.fence(), vec![said("a record")]);
        let commit = Commit::of(pushed.id());
        let appended = session
            .append(
                fence,
                Append {
                    expected: Seq(n),
                    batch,
                    commit,
                },
            )
            .await;
        assert_eq!(appended.unwrap(), Seq(n + 1));
        states.push((fs::metadata(&wal).unwrap().len(), n + 1, 0));
    }
    let (whole, ..) = *states.last().unwrap();
    for n in 0..CUTS {
        let cut = begun + (n * 7_919_993) % (whole - begun + 1);
        let before = states.iter().rfind(|(length, ..)| *length <= cut);
        let (_, records, waiting) = *before.unwrap();
        let copy = copy_cut(dir.path(), cut);
        let store = Store::open(copy.path(), never_copied()).unwrap();
        let found = store.session(&id("a")).unwrap().head;
        let mail = store.list(&id("a")).await.unwrap().len();
        assert_eq!((found, mail), (Seq(records), waiting), "cut at {cut}");
    }
}

fn copy_cut(dir: &Path, cut: u64) -> TempDir {
    let copy = TempDir::new().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        fs::copy(dir.join(name), copy.path().join(name)).unwrap();
    }
    let wal = OpenOptions::new()
        .write(true)
        .open(copy.path().join("journal.db-wal"))
        .unwrap();
    wal.set_len(cut).unwrap();
    copy
}
