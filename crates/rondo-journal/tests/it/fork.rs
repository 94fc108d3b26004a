use crate::support::{append, id, journal, say, three};
use rondo_core::Journal as _;
use rondo_core::ports::{CellEnding, CodeChange, Record, RecordBody, Seq};
use rondo_core::session_store::StoreError;
use rondo_journal::{Entry, JournalError};
use rondo_types::{TimeMs, TurnId};

/// Text of each record, in order.
fn bodies(entries: &[Entry]) -> Vec<&'static str> {
    let words = ["one", "two", "three", "four", "left", "right"];
    let said = |entry: &Entry| words.into_iter().find(|word| entry.json.contains(word));
    entries.iter().filter_map(said).collect()
}

#[tokio::test]
async fn a_fork_shares_the_past_and_goes_its_own_way() {
    let journal = journal();
    let parent = three(&journal, "parent").await;
    let (store, fork) = (&journal.store, id("fork"));
    store.fork(&id("parent"), Seq(2), &fork, TimeMs(9)).unwrap();
    let child = store.own(&fork).unwrap();
    assert_eq!(child.at(), Seq(2));
    say(&child, Seq(2), &["left"]).await;
    say(&parent, Seq(3), &["right"]).await;

    let read = store.read_all(&fork).unwrap();
    assert_eq!(bodies(&read), ["one", "two", "left"]);
    let read = store.read_all(&id("parent")).unwrap();
    assert_eq!(bodies(&read), ["one", "two", "three", "right"]);
    for name in ["parent", "fork"] {
        assert_eq!(store.check(&id(name)).unwrap().defect, None, "{name}");
    }
    let info = store.session(&fork).unwrap();
    assert_eq!(info.parent, Some((id("parent"), Seq(2))));
}

#[tokio::test]
async fn a_fork_of_a_fork_may_begin_in_the_first_ones_past() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    store.fork(&id("a"), Seq(3), &id("b"), TimeMs(1)).unwrap();
    say(&store.own(&id("b")).unwrap(), Seq(3), &["four"]).await;
    store.fork(&id("b"), Seq(1), &id("c"), TimeMs(1)).unwrap();
    say(&store.own(&id("c")).unwrap(), Seq(1), &["left"]).await;
    store.fork(&id("b"), Seq(4), &id("d"), TimeMs(1)).unwrap();

    assert_eq!(bodies(&store.read_all(&id("c")).unwrap()), ["one", "left"]);
    let four = store.read_all(&id("d")).unwrap();
    assert_eq!(bodies(&four), ["one", "two", "three", "four"]);
    assert_eq!(bodies(&store.read(&id("d"), Seq(3), 1).unwrap()), ["three"]);
    for name in ["b", "c", "d"] {
        assert_eq!(store.check(&id(name)).unwrap().defect, None, "{name}");
    }
}

/// A cell and its end are two records, so a fork may lie between them, as a crash may.
#[tokio::test]
async fn a_fork_at_a_cell_has_its_beginning_and_the_session_its_end() {
    let journal = journal();
    let parent = three(&journal, "parent").await;
    let cell = |body| Record {
        turn: TurnId::new(""),
        step: 0,
        at_ms: TimeMs(2000),
        body,
    };
    let started = cell(RecordBody::CellStarted {
        code: "x = 1".to_owned(),
        changed: Some(CodeChange::Redacted),
    });
    let finished = cell(RecordBody::CellFinished {
        ending: CellEnding::Interrupted,
        stdout: "out".to_owned(),
        stderr: String::new(),
        duration_ms: 5,
        is_restarted: true,
        has_read_input: false,
    });
    let at = append(&parent, Seq(3), vec![started.clone()])
        .await
        .unwrap();
    append(&parent, at, vec![finished.clone()]).await.unwrap();
    let (store, fork) = (&journal.store, id("fork"));
    store.fork(&id("parent"), at, &fork, TimeMs(9)).unwrap();
    drop(parent);
    let loaded = store.load(&id("parent")).unwrap();
    assert_eq!(loaded[3..], [started.clone(), finished]);
    assert_eq!(store.load(&fork).unwrap()[3..], [started]);
    let history = store.history(&fork).unwrap();
    assert_eq!((history.head(), history.transcript().len()), (at, 3));
    assert_eq!(store.check(&fork).unwrap().defect, None);
}

#[tokio::test]
async fn a_fork_needs_a_record_to_begin_at_and_a_free_id() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    for at in [0, 4] {
        let refused = store.fork(&id("a"), Seq(at), &id("b"), TimeMs(1));
        assert!(matches!(
            refused,
            Err(JournalError::Store(StoreError::NoSuchRecord {
                last: 3,
                ..
            }))
        ));
    }
    let refused = store.fork(&id("a"), Seq(1), &id("a"), TimeMs(1));
    assert!(matches!(
        refused,
        Err(JournalError::Store(StoreError::Exists { .. }))
    ));
}

#[tokio::test]
async fn a_parent_outlives_its_forks() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    store.fork(&id("a"), Seq(1), &id("b"), TimeMs(1)).unwrap();
    let refused = store.remove(&id("a")).unwrap_err().to_string();
    assert_eq!(refused, "session `a` is the parent of b");
    store.remove(&id("b")).unwrap();
    store.remove(&id("a")).unwrap();
}

#[tokio::test]
async fn forks_in_a_row_are_bounded() {
    let journal = journal();
    drop(three(&journal, "f0").await);
    let fork = |n: u64| {
        let (parent, new) = (format!("f{n}"), format!("f{}", n + 1));
        journal
            .store
            .fork(&id(&parent), Seq(3), &id(&new), TimeMs(1))
    };
    let made = (0..100).take_while(|n| fork(*n).is_ok()).count();
    assert_eq!(made, 63);
    let last = id(&format!("f{made}"));
    assert_eq!(journal.store.read_all(&last).unwrap().len(), 3);
}
