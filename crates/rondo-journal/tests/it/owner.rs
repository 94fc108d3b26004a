use crate::support::{append, id, journal, said, say, three};
use rondo_core::Journal as _;
use rondo_core::ports::{Append, AppendError, Fence, Head, Seq};
use rondo_core::session_store::StoreError;
use rondo_journal::{Durability, JournalError, NewSession, Options, Store};
use rondo_types::TimeMs;
use std::collections::BTreeMap;
use tempfile::TempDir;

#[tokio::test]
async fn a_session_has_one_owner_at_a_time() {
    let journal = journal();
    let owned = three(&journal, "a").await;
    let other = Store::open(journal.dir.path(), Options::default()).unwrap();
    assert!(matches!(
        other.own(&id("a")),
        Err(JournalError::Store(StoreError::InUse { .. }))
    ));
    // Another session is free all the while.
    drop(other.create(&id("b"), TimeMs(1)).unwrap());

    drop(owned);
    let taken = other.own(&id("a")).unwrap();
    assert_eq!(taken.at(), Seq(3));
    assert_eq!(taken.fence().epoch, 2);
    assert_eq!(say(&taken, Seq(3), &["four"]).await, Seq(4));
}

#[tokio::test]
async fn an_owner_that_lost_the_session_is_fenced() {
    let journal = journal();
    let owned = three(&journal, "a").await;
    // What a second owner does if the lock was not seen, as after a copied lock directory.
    crate::support::meddle(&journal, "UPDATE sessions SET epoch = epoch + 1");
    let lost = owned.lost();
    assert!(!lost.is_cancelled());
    let refused = append(&owned, Seq(3), vec![said("late")]).await;
    assert!(matches!(refused, Err(AppendError::Fenced { .. })));
    assert!(lost.is_cancelled());
    assert_eq!(journal.store.read_all(&id("a")).unwrap().len(), 3);
}

#[tokio::test]
async fn the_head_is_that_of_the_chain_and_shows_another_owner() {
    let journal = journal();
    let begun = NewSession::new(id("new"), TimeMs(1));
    let begun = journal.store.begin(begun).unwrap();
    assert_eq!(begun.head().await.unwrap(), Head::default());
    let owned = three(&journal, "a").await;
    let last = journal.store.read(&id("a"), Seq(3), 1).unwrap();
    let head = Head {
        seq: Seq(3),
        hash: last[0].hash,
    };
    assert_eq!(owned.head().await.unwrap(), head);
    assert!(!owned.lost().is_cancelled());
    crate::support::meddle(&journal, "UPDATE sessions SET epoch = epoch + 1");
    assert_eq!(owned.head().await.unwrap(), head);
    assert!(owned.lost().is_cancelled());
}

#[tokio::test]
async fn a_refused_append_leaves_the_others_of_its_commit_alone() {
    let journal = journal();
    let a = three(&journal, "a").await;
    let b = three(&journal, "b").await;
    let (refused, taken) = tokio::join!(
        append(&a, Seq(9), vec![said("x")]),
        append(&b, Seq(3), vec![said("y")])
    );
    assert!(refused.is_err());
    assert_eq!(taken.unwrap(), Seq(4));
}

#[test]
fn an_id_twice_or_none_or_too_long_is_refused() {
    let journal = journal();
    drop(journal.store.create(&id("a"), TimeMs(1)).unwrap());
    let again = journal.store.create(&id("a"), TimeMs(1));
    assert!(matches!(
        again,
        Err(JournalError::Store(StoreError::Exists { .. }))
    ));
    assert!(journal.store.own(&id("none")).is_err());
    assert!(journal.store.create(&id(""), TimeMs(1)).is_err());
    assert!(
        journal
            .store
            .create(&id(&"x".repeat(1000)), TimeMs(1))
            .is_err()
    );
}

#[test]
fn an_id_cannot_name_a_file_elsewhere() {
    let journal = journal();
    let owned = journal.store.create(&id("../../evil"), TimeMs(1)).unwrap();
    let names: Vec<_> = std::fs::read_dir(journal.dir.path().join("locks"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["%2e%2e%2f%2e%2e%2fevil.lock"]);
    drop(owned);
}

#[tokio::test]
async fn sessions_are_taken_without_a_wait_for_the_disk() {
    const SESSIONS: usize = 1000;
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), options).unwrap();
    for n in 0..SESSIONS {
        drop(store.create(&id(&n.to_string()), TimeMs(1)).unwrap());
    }
    drop(store);
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let take = |n: usize| (n, store.own(&id(&n.to_string())).unwrap());
    let taken: BTreeMap<_, _> = (0..SESSIONS).map(take).collect();
    assert_eq!(store.syncs(), 0);
    let epochs: Vec<u64> = taken.values().map(|it| it.epoch()).collect();
    assert_eq!(epochs, vec![2; SESSIONS]);
    let before = store.syncs();
    let fence = Fence {
        session: id("7"),
        epoch: 2,
    };
    let append = taken[&7].append(&fence, Append::new(Seq(0), vec![said("x")]));
    assert_eq!(append.await.unwrap(), Seq(1));
    assert_eq!(
        store.syncs(),
        before + 1,
        "what follows waits for the disk again"
    );
}

#[tokio::test]
async fn a_journal_in_memory_is_seen_by_its_clones_alone_and_has_one_owner_of_a_session() {
    let [store, other] = [(), ()].map(|()| Store::in_memory().unwrap());
    let session = id("a");
    let owned = store.create(&session, TimeMs(1)).unwrap();
    let refused = store.clone().own(&session).unwrap_err();
    assert!(
        matches!(refused, JournalError::Store(StoreError::InUse { .. })),
        "{refused}"
    );
    assert!(matches!(
        other.session(&session),
        Err(JournalError::Store(StoreError::Unknown { .. }))
    ));
    assert!(store.is_in_use(&session) && !other.is_in_use(&session));
    let fence = owned.fence().clone();
    let before = store.version().unwrap();
    let batch = vec![said("x")];
    let appended = owned.append(&fence, Append::new(Seq(0), batch)).await;
    assert_eq!(appended.unwrap(), Seq(1));
    assert_ne!(store.version().unwrap(), before);
    assert_eq!(store.read(&session, Seq(1), 9).unwrap().len(), 1);
    drop(owned);
    assert!(!store.is_in_use(&session));
    store.own(&session).unwrap();
    store.remove(&session).unwrap();
}

#[tokio::test]
async fn readers_of_a_journal_in_memory_wait_for_its_writer_and_it_for_them() {
    let store = Store::in_memory().unwrap();
    let session = id("a");
    let owned = store.create(&session, TimeMs(1)).unwrap();
    let fence = owned.fence().clone();
    let reading =
        {
            let (store, session) = (store.clone(), session.clone());
            std::thread::spawn(move || {
                while store.read(&session, Seq(1), usize::MAX).unwrap().len() < 200 {}
            })
        };
    for at in 0..200 {
        let batch = vec![said("x")];
        let appended = owned.append(&fence, Append::new(Seq(at), batch));
        assert_eq!(appended.await.unwrap(), Seq(at + 1));
    }
    reading.join().unwrap();
}
