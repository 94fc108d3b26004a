//! A session's history, from its first record or from a snapshot.

use crate::support::{Journal, append, id, journal, meddle, said};
use rondo_core::history::History;
use rondo_core::ports::{Record, RecordBody, Seq};
use rondo_core::session_store::StoreError;
use rondo_journal::{JournalError, OwnedSession};
use rondo_types::{CallId, Message, TimeMs, ToolOutcome};

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
        let named = matches!(
            error,
            JournalError::Store(StoreError::Damaged { seq: 4, .. })
        );
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

/// A turn in which one call ends `ends` times, behind as many other records as `before` says.
async fn ended(journal: &Journal, before: u64, ends: usize) {
    let session = session_of(journal, before).await;
    for n in 0..ends as u64 {
        append(&session, Seq(before + n), vec![call_ended()])
            .await
            .unwrap();
        if n == 0 {
            journal.store.history(&id("a")).unwrap();
        }
    }
}

fn call_ended() -> Record {
    Record {
        body: RecordBody::ToolFinished {
            call_id: CallId::new("c1"),
            outcome: ToolOutcome::text("done"),
            duration_ms: 1,
        },
        ..said("")
    }
}

#[tokio::test]
async fn a_call_that_ended_twice_is_damage_to_whoever_reads_it() {
    // Behind 999 others the first end is in a snapshot, and the second behind it.
    for before in [0, 999] {
        let sound = journal();
        ended(&sound, before, 1).await;
        sound.store.history(&id("a")).unwrap();
        let journal = journal();
        ended(&journal, before, 2).await;
        let store = &journal.store;
        let damaged = before + 2;
        let found = store.check(&id("a")).unwrap().defect.unwrap();
        assert_eq!(found.seq.0, damaged);
        assert!(found.reason.contains("ended before"), "{}", found.reason);
        for error in [
            store.history(&id("a")).unwrap_err(),
            store.load(&id("a")).unwrap_err(),
        ] {
            let is_named = matches!(&error, JournalError::Store(StoreError::Damaged { seq, .. }) if *seq == damaged);
            assert!(is_named, "{error}");
        }
        let refused = store.export(&id("a"), &mut Vec::new()).unwrap_err();
        assert!(refused.to_string().contains("ended before"), "{refused}");
    }
}

#[tokio::test]
async fn a_lost_end_is_damage_to_whoever_goes_on() {
    let journal = journal();
    let _session = session_of(&journal, 3).await;
    meddle(&journal, "DELETE FROM records WHERE seq = 3");
    let error = journal.store.history(&id("a")).unwrap_err();
    assert!(
        matches!(
            error,
            JournalError::Store(StoreError::Damaged { seq: 3, .. })
        ),
        "{error}"
    );
}

/// Each record fills a page, so none is read before the one ahead of it was taken.
#[tokio::test]
async fn a_session_is_read_a_page_at_a_time_and_its_file_is_free_meanwhile() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    for n in 0..3 {
        let long = said(&"long ".repeat(300_000));
        append(&session, Seq(n), vec![long]).await.unwrap();
    }
    let mut taken = Vec::new();
    let read = journal.store.each(&id("a"), Seq(1), |entry| {
        taken.push(entry.seq.0);
        // A reader may ask the store, and what lies ahead is not read yet.
        assert_eq!(journal.store.session(&id("a"))?.head, Seq(3));
        meddle(&journal, "DELETE FROM records WHERE seq = 3");
        Ok::<_, JournalError>(())
    });
    assert_eq!(taken, [1, 2]);
    assert!(matches!(
        read,
        Err(JournalError::Store(StoreError::Damaged { seq: 3, .. }))
    ));
    assert_eq!(
        journal.store.history(&id("a")).unwrap_err().to_string(),
        read.unwrap_err().to_string()
    );
}

#[tokio::test]
async fn a_session_that_is_removed_while_it_is_read_is_unknown_and_not_damaged() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    let records = (0..600).map(|_| said("one")).collect();
    append(&session, Seq(0), records).await.unwrap();
    drop(session);
    let mut taken = 0;
    let read = journal.store.each(&id("a"), Seq(1), |_| {
        if taken == 0 {
            journal.store.remove(&id("a"))?;
        }
        taken += 1;
        Ok::<_, JournalError>(())
    });
    assert!(
        matches!(read, Err(JournalError::Store(StoreError::Unknown { .. }))),
        "{read:?}"
    );
    assert!(taken > 0);
}
