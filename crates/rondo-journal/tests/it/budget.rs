//! Budgets that processes share.

use crate::support::{id, journal, three};
use rondo_core::ports::Amount;
use rondo_journal::{BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope, Options, Store};
use rondo_types::NanoUsd;

fn amount(tokens: u64, cost: u64) -> Amount {
    Amount {
        tokens,
        cost: Some(NanoUsd(cost)),
    }
}

fn place(root: &str, project: &str, day: u32) -> BudgetPlace {
    BudgetPlace {
        root: id(root),
        project: project.to_owned(),
        day,
    }
}

fn claim(session: &str, name: &str, tokens: u64) -> BudgetClaim {
    BudgetClaim {
        session: id(session),
        id: name.to_owned(),
        place: place(session, "/p", 20_000),
        estimate: amount(tokens, tokens),
        beyond: false,
    }
}

fn tokens(scope: BudgetScope, tokens: u64) -> Vec<BudgetLimit> {
    vec![BudgetLimit {
        scope,
        tokens: Some(tokens),
        cost: None,
    }]
}

#[tokio::test]
async fn a_claim_fits_up_to_the_bound_and_what_was_used_takes_its_place() {
    let journal = journal();
    let store = &journal.store;
    let limits = tokens(BudgetScope::Session, 100);
    for (name, tokens, is_granted) in [("a", 99, true), ("b", 2, false), ("c", 1, true)] {
        let refused = store.hold_back(claim("s", name, tokens), limits.clone());
        assert_eq!(refused.await.unwrap().is_none(), is_granted, "{name}");
    }
    // The same claim again holds back nothing more.
    let again = store.hold_back(claim("s", "a", 99), limits.clone());
    assert_eq!(again.await.unwrap(), None);
    store
        .settle_held(&id("s"), "a", amount(9, 7))
        .await
        .unwrap();
    store
        .settle_held(&id("s"), "a", amount(9, 7))
        .await
        .unwrap();
    let used = store.committed(BudgetScope::Session, place("s", "/p", 1));
    assert_eq!(used.await.unwrap(), amount(10, 8));
    let mut beyond = claim("s", "d", 1_000);
    beyond.beyond = true;
    assert_eq!(store.hold_back(beyond, limits).await.unwrap(), None);
}

#[tokio::test]
async fn each_scope_counts_what_belongs_to_it() {
    let journal = journal();
    let store = &journal.store;
    for (session, project, day) in [("a", "/p", 1), ("b", "/p", 1), ("a", "/q", 2)] {
        let claim = BudgetClaim {
            id: format!("{project}{day}"),
            place: place(session, project, day),
            ..claim(session, "", 10)
        };
        let (session, name) = (claim.session.clone(), claim.id.clone());
        store.hold_back(claim, Vec::new()).await.unwrap();
        if day == 1 {
            store
                .settle_held(&session, &name, amount(1, 2))
                .await
                .unwrap();
        }
    }
    for (scope, at, expected) in [
        (BudgetScope::Session, place("a", "", 0), amount(11, 12)),
        (BudgetScope::Session, place("b", "", 0), amount(1, 2)),
        (BudgetScope::Day, place("", "", 1), amount(2, 4)),
        (BudgetScope::Day, place("", "", 2), amount(10, 10)),
        (BudgetScope::ProjectDay, place("", "/p", 1), amount(2, 4)),
        (BudgetScope::ProjectDay, place("", "/q", 2), amount(10, 10)),
        (BudgetScope::ProjectDay, place("", "/p", 2), amount(0, 0)),
    ] {
        let counted = store.committed(scope, at.clone()).await.unwrap();
        assert_eq!(counted, expected, "{scope:?} {at:?}");
    }
}

#[tokio::test]
async fn two_processes_cannot_both_take_the_last_of_a_budget() {
    let journal = journal();
    // A second store on the same file is what another process has.
    let dir = journal.store.path().parent().unwrap().to_owned();
    let stores = [
        journal.store.clone(),
        Store::open(&dir, Options::default()).unwrap(),
    ];
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = stores[n % 2].clone();
        tasks.spawn(async move {
            let claim = claim(&format!("s{n}"), "a", 10);
            let refused = store.hold_back(claim, tokens(BudgetScope::Day, 105)).await;
            refused.unwrap().is_none()
        });
    }
    let granted = tasks.join_all().await.into_iter().filter(|it| *it).count();
    assert_eq!(granted, 10);
}

#[tokio::test]
async fn a_removed_session_leaves_its_days_as_they_are() {
    let journal = journal();
    let store = &journal.store;
    drop(three(&journal, "s").await);
    store
        .hold_back(claim("s", "a", 5), Vec::new())
        .await
        .unwrap();
    store
        .settle_held(&id("s"), "a", amount(5, 5))
        .await
        .unwrap();
    store.remove(&id("s")).unwrap();
    let of = async |scope| {
        let place = place("s", "/p", 20_000);
        store.committed(scope, place).await.unwrap()
    };
    assert_eq!(of(BudgetScope::Session).await, amount(0, 0));
    assert_eq!(of(BudgetScope::Day).await, amount(5, 5));
}

#[tokio::test]
async fn what_a_process_held_back_that_left_no_session_is_given_back() {
    let journal = journal();
    let limits = tokens(BudgetScope::Day, 100);
    // Of a session that is there, what is held back is settled when it goes on.
    drop(three(&journal, "kept").await);
    let kept = journal
        .store
        .hold_back(claim("kept", "a", 30), limits.clone());
    assert_eq!(kept.await.unwrap(), None);
    let other = Store::open(journal.dir.path(), Options::default()).unwrap();
    let held = other.hold_back(claim("gone", "a", 60), limits.clone());
    assert_eq!(held.await.unwrap(), None);
    let refused = || journal.store.hold_back(claim("s", "a", 60), limits.clone());
    assert!(refused().await.unwrap().is_some(), "its process works");
    drop(other);
    assert_eq!(refused().await.unwrap(), None);
    let used = journal
        .store
        .committed(BudgetScope::Day, place("s", "/p", 20_000));
    assert_eq!(used.await.unwrap(), amount(90, 90));
}
