//! Checks: budgets that processes share.

use crate::engine::Engine;
use crate::samples::{append_to, id, said};
use rondo_core::ports::{Amount, BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope};
use rondo_types::NanoUsd;
use tokio::task::JoinSet;

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

/// A claim fits up to the bound, a repeated one holds back nothing more, and what was used replaces it.
pub async fn a_claim_fits_up_to_the_bound(engine: Box<dyn Engine>) {
    let store = engine.store();
    let limits = tokens(BudgetScope::Session, 100);
    for (name, tokens, is_granted) in [("a", 99, true), ("b", 2, false), ("c", 1, true)] {
        let refused = store.hold_back(claim("s", name, tokens), limits.clone());
        assert_eq!(refused.await.unwrap().is_none(), is_granted, "{name}");
    }
    let again = store.hold_back(claim("s", "a", 99), limits.clone());
    assert_eq!(again.await.unwrap(), None);
    for _ in 0..2 {
        let (session, used) = (id("s"), amount(9, 7));
        store.settle_held(&session, "a", used).await.unwrap();
    }
    let used = store.committed(BudgetScope::Session, place("s", "/p", 1));
    assert_eq!(used.await.unwrap(), amount(10, 8));
    let beyond = BudgetClaim {
        beyond: true,
        ..claim("s", "d", 1_000)
    };
    assert_eq!(store.hold_back(beyond, limits).await.unwrap(), None);
}

/// A claim that is in the bound of tokens can be beyond that of money, and the limit that it is beyond is named.
pub async fn the_first_limit_that_a_claim_does_not_fit_is_named(engine: Box<dyn Engine>) {
    let store = engine.store();
    let cost = BudgetLimit {
        scope: BudgetScope::Day,
        tokens: None,
        cost: Some(NanoUsd(10)),
    };
    let limits = [tokens(BudgetScope::Session, 100), vec![cost]].concat();
    let held = store.hold_back(claim("s", "a", 10), limits.clone());
    assert_eq!(held.await.unwrap(), None);
    let refused = store.hold_back(claim("s", "b", 1), limits);
    assert_eq!(refused.await.unwrap(), Some(cost));
}

/// A session, a day and a day of a directory count each what belongs to them.
pub async fn each_scope_counts_what_belongs_to_it(engine: Box<dyn Engine>) {
    let store = engine.store();
    for (session, project, day) in [("a", "/p", 1), ("b", "/p", 1), ("a", "/q", 2)] {
        let claim = BudgetClaim {
            id: format!("{project}{day}"),
            place: place(session, project, day),
            ..claim(session, "", 10)
        };
        let (session, name) = (claim.session.clone(), claim.id.clone());
        store.hold_back(claim, Vec::new()).await.unwrap();
        if day == 1 {
            let settled = store.settle_held(&session, &name, amount(1, 2));
            settled.await.unwrap();
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

/// Of claims that are made at the same time, as many are granted as fit.
pub async fn two_processes_cannot_both_take_the_last_of_a_budget(engine: Box<dyn Engine>) {
    let stores = [engine.store(), engine.store()];
    let mut tasks = JoinSet::new();
    for (n, store) in (0..40).zip(stores.iter().cycle()) {
        let store = store.clone();
        tasks.spawn(async move {
            let claim = claim(&format!("s{n}"), "a", 10);
            let refused = store.hold_back(claim, tokens(BudgetScope::Day, 105)).await;
            refused.unwrap().is_none()
        });
    }
    let granted = tasks.join_all().await.into_iter().filter(|it| *it).count();
    assert_eq!(granted, 10);
}

/// Use from before a budget counts once.
pub async fn what_was_used_before_is_counted_once(engine: Box<dyn Engine>) {
    let store = engine.store();
    let (scope, at) = (BudgetScope::Day, place("s", "/p", 7));
    assert!(!store.is_counted(scope, at.clone()).await.unwrap());
    for used in [amount(5, 6), amount(50, 60)] {
        let counted = store.count_before(scope, at.clone(), used);
        counted.await.unwrap();
        assert!(store.is_counted(scope, at.clone()).await.unwrap());
    }
    assert_eq!(store.committed(scope, at).await.unwrap(), amount(5, 6));
    let next = place("s", "/p", 8);
    assert!(!store.is_counted(scope, next).await.unwrap());
}

/// The use of a removed session stays counted for its days.
pub async fn a_removed_session_leaves_its_days_as_they_are(engine: Box<dyn Engine>) {
    let store = engine.store();
    let journal = engine.begin(&id("s")).await;
    let batch = vec![said("x")];
    append_to("s", &*journal, 0, batch, &[]).await.unwrap();
    drop(journal);
    let held = store.hold_back(claim("s", "a", 5), Vec::new());
    held.await.unwrap();
    let (session, used) = (id("s"), amount(5, 5));
    store.settle_held(&session, "a", used).await.unwrap();
    store.remove(&id("s")).unwrap();
    let of = async |scope| {
        let place = place("s", "/p", 20_000);
        store.committed(scope, place).await.unwrap()
    };
    assert_eq!(of(BudgetScope::Session).await, amount(0, 0));
    assert_eq!(of(BudgetScope::Day).await, amount(5, 5));
}

/// A reservation of a process for an existing session stays until that continues; others are given back.
pub async fn what_is_held_back_for_no_session_is_given_back(engine: Box<dyn Engine>) {
    let limits = tokens(BudgetScope::Day, 100);
    let store = engine.store();
    let journal = engine.begin(&id("kept")).await;
    let batch = vec![said("x")];
    append_to("kept", &*journal, 0, batch, &[]).await.unwrap();
    drop(journal);
    for (session, tokens) in [("kept", 30), ("gone", 60)] {
        let held = store.hold_back(claim(session, "a", tokens), limits.clone());
        assert_eq!(held.await.unwrap(), None);
    }
    let other = engine.store();
    let refused = other.hold_back(claim("s", "a", 60), limits.clone());
    assert!(refused.await.unwrap().is_some(), "its process works");
    drop((store, other));
    let Some(engine) = engine.opened_again().await else {
        return;
    };
    let store = engine.store();
    let held = store.hold_back(claim("s", "a", 60), limits);
    assert_eq!(held.await.unwrap(), None);
    let used = store.committed(BudgetScope::Day, place("s", "/p", 20_000));
    assert_eq!(used.await.unwrap(), amount(90, 90));
}
