use crate::support::{append, id, journal, said, say};
use rondo_core::ports::{AppendError, Seq};
use rondo_journal::{Body, Options, Store};
use rondo_types::TimeMs;
use std::sync::Arc;

#[tokio::test]
async fn what_was_appended_is_read_back_in_order_by_a_new_process() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(7)).unwrap();
    let batch = vec![said("one"), said("two")];
    assert_eq!(append(&session, Seq(0), batch).await.unwrap(), Seq(2));
    assert_eq!(say(&session, Seq(2), &["three"]).await, Seq(3));
    drop(session);

    let again = Store::open(journal.dir.path(), Options::default()).unwrap();
    let entries = again.read_all(&id("a")).unwrap();
    let seqs: Vec<u64> = entries.iter().map(|it| it.seq.0).collect();
    assert_eq!(seqs, [1, 2, 3]);
    for (entry, text) in entries.iter().zip(["one", "two", "three"]) {
        assert_eq!(
            entry.body().unwrap(),
            Body::Known(Box::new(said(text).body))
        );
    }
    assert_eq!(again.read(&id("a"), Seq(2), 1).unwrap(), entries[1..2]);
    assert!(again.check(&id("a")).unwrap().defect.is_none());
}

#[tokio::test]
async fn an_append_at_another_place_is_refused_whole() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    say(&session, Seq(0), &["one"]).await;
    for wrong in [0, 2] {
        let refused = append(&session, Seq(wrong), vec![said("x"), said("y")]).await;
        assert!(matches!(
            refused,
            Err(AppendError::Conflict { actual: Seq(1), .. })
        ));
    }
    assert_eq!(journal.store.read_all(&id("a")).unwrap().len(), 1);
}

#[tokio::test]
async fn an_empty_append_changes_nothing() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    assert_eq!(append(&session, Seq(0), Vec::new()).await.unwrap(), Seq(0));
    assert!(journal.store.read_all(&id("a")).unwrap().is_empty());
}

#[tokio::test]
async fn a_large_body_is_kept_once_for_all_records_that_hold_it() {
    let journal = journal();
    let large = "x".repeat(100_000);
    for name in ["a", "b"] {
        let session = journal.store.create(&id(name), TimeMs(1)).unwrap();
        say(&session, Seq(0), &[&large, &large]).await;
    }
    let connection = rusqlite::Connection::open(journal.store.path()).unwrap();
    let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(count("SELECT count(*) FROM blobs"), 1);
    assert_eq!(count("SELECT count(*) FROM records WHERE body IS NULL"), 4);
    let read = journal.store.read_all(&id("b")).unwrap();
    assert_eq!(
        read[1].body().unwrap(),
        Body::Known(Box::new(said(&large).body))
    );
}

#[tokio::test]
async fn many_sessions_append_at_once_and_each_stays_dense() {
    let journal = journal();
    let store = Arc::new(journal.store.clone());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let session = store.create(&id(&format!("s{n}")), TimeMs(1)).unwrap();
        tasks.spawn(async move { say(&session, Seq(0), &["1", "2", "3", "4", "5"]).await });
    }
    while let Some(last) = tasks.join_next().await {
        assert_eq!(last.unwrap(), Seq(5));
    }
    for n in 0..200 {
        let report = store.check(&id(&format!("s{n}"))).unwrap();
        assert_eq!((report.sound, report.defect), (5, None));
    }
}

#[tokio::test]
async fn files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    say(&session, Seq(0), &["one"]).await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(journal.dir.path()), 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(journal.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            files += 1;
        }
    }
    assert!(files >= 3, "the database, its log and its index");
}

#[tokio::test]
async fn a_file_of_a_later_version_is_refused_and_left_alone() {
    let journal = journal();
    crate::support::meddle(&journal, "PRAGMA user_version = 99");
    let refused = Store::open(journal.dir.path(), Options::default()).unwrap_err();
    assert!(refused.to_string().contains("version 99"), "{refused}");
}
