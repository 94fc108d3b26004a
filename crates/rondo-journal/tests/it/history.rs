//! A session's history, from its first record or from a snapshot.

use crate::support::{Journal, append, id, journal, meddle, said};
use rondo_core::history::History;
use rondo_core::ports::{Record, Seq};
use rondo_journal::{OwnedSession, StoreError};
use rondo_types::{Message, TimeMs};

async fn session_of(journal: &Journal, records: u64) -> OwnedSession {
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    go_on(&session, Seq(0), records).await;
    session
}

async fn go_on(session: &OwnedSession, at: Seq, records: u64) {
    let said = |n| said(&format!("message {n}"));
    let batch: Vec<Record> = (at.0 + 1..=at.0 + records).map(said).collect();
    append(session, at, batch).await.unwrap();
}

fn snapshots(journal: &Journal) -> i64 {
    let connection = rusqlite::Connection::open(journal.store.path()).unwrap();
    let count = connection.query_row("SELECT coalesce(max(seq), 0) FROM snapshots", [], |row| {
        row.get(0)
    });
    count.unwrap()
}

fn from_the_first(journal: &Journal) -> History {
    History::of(&journal.store.load(&id("a")).unwrap())
}

#[tokio::test]
async fn a_snapshot_is_made_each_thousand_records_and_changes_nothing() {
    let journal = journal();
    let session = session_of(&journal, 999).await;
    journal.store.history(&id("a")).unwrap();
    assert_eq!(snapshots(&journal), 0);
    go_on(&session, Seq(999), 1).await;
    assert_eq!(
        journal.store.history(&id("a")).unwrap(),
        from_the_first(&journal)
    );
    assert_eq!(snapshots(&journal), 1000);
    for more in [1, 999, 500] {
        let at = journal.store.history(&id("a")).unwrap().head();
        go_on(&session, at, more).await;
        assert_eq!(
            journal.store.history(&id("a")).unwrap(),
            from_the_first(&journal)
        );
    }
    assert_eq!(snapshots(&journal), 2000);
}

#[tokio::test]
async fn a_snapshot_that_does_not_fit_is_not_looked_at() {
    let spoilt = [
        "UPDATE snapshots SET version = 99",
        "UPDATE snapshots SET hash = zeroblob(32)",
        "UPDATE snapshots SET seq = 5000",
        "UPDATE snapshots SET body = '{'",
        "DELETE FROM snapshots",
    ];
    for sql in spoilt {
        let journal = journal();
        let _session = session_of(&journal, 1000).await;
        let history = journal.store.history(&id("a")).unwrap();
        meddle(&journal, sql);
        assert_eq!(journal.store.history(&id("a")).unwrap(), history, "{sql}");
    }
}

#[tokio::test]
async fn a_record_that_was_changed_or_is_missing_is_named() {
    let damages = [
        "UPDATE records SET at_ms = 7 WHERE seq = 4",
        "DELETE FROM records WHERE seq = 4",
    ];
    for sql in damages {
        let journal = journal();
        let _session = session_of(&journal, 9).await;
        meddle(&journal, sql);
        let error = journal.store.history(&id("a")).unwrap_err();
        let named = matches!(error, StoreError::Damaged { seq: 4, .. });
        assert!(named, "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_session_goes_with_its_snapshot_and_a_fork_has_the_same_history() {
    let journal = journal();
    let session = session_of(&journal, 1000).await;
    let history = journal.store.history(&id("a")).unwrap();
    let (one, other) = (id("a"), id("b"));
    journal
        .store
        .fork(&one, Seq(1000), &other, TimeMs(2))
        .unwrap();
    assert_eq!(journal.store.history(&other).unwrap(), history);
    drop(session);
    journal.store.remove(&other).unwrap();
    journal.store.remove(&one).unwrap();
    assert_eq!(snapshots(&journal), 0);
}

#[tokio::test]
async fn large_records_are_followed_too() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    let long = "long ".repeat(20_000);
    append(&session, Seq(0), vec![said(&long)]).await.unwrap();
    let transcript = journal.store.history(&id("a")).unwrap().transcript();
    assert_eq!(transcript[0].as_ref(), &Message::user(long));
}
