//! Checks: sessions found by name, lineage, directory and state, and their records read in parts.

use crate::engine::Engine;
use crate::samples::{all_said, append_to, at, body, ended, id, is_unknown, said, started, with};
use rondo_core::ports::{Entry, Record, RecordBody, Seq};
use rondo_core::session_store::{LateTurn, NewSession, SessionInfo, SessionState, StoreError};
use rondo_types::{SessionId, StopReason, TimeMs, TurnId};
use std::ops::ControlFlow;

/// Records of a session that is longer than what an engine may hold at once.
const MANY: usize = 600;

fn ids(infos: Vec<SessionInfo>) -> Vec<SessionId> {
    infos.into_iter().map(|info| info.id).collect()
}

/// The records of a turn of its own.
fn turn(number: u32) -> Vec<Record> {
    let mut records = vec![started(), said("x"), ended()];
    for record in &mut records {
        record.turn = TurnId::new(format!("t{number}"));
        if let RecordBody::TurnStarted { turn_number, .. } = &mut record.body {
            *turn_number = number;
        }
    }
    records
}

/// A session is named by its id, by a prefix that fits one alone, or as the latest.
pub async fn a_session_is_found_by_what_names_it_alone(engine: Box<dyn Engine>) {
    let store = engine.store();
    for (name, time) in [("ab", 10), ("abc", 30), ("abd", 20)] {
        drop(with(&*engine.sessions(), name, vec![at(time, said("x"))]).await);
    }
    for (text, found) in [
        ("ab", "ab"),
        ("abc", "abc"),
        ("abd", "abd"),
        ("latest", "abc"),
    ] {
        assert_eq!(store.resolve(text).unwrap(), id(found), "{text}");
    }
    let ambiguous = store.resolve("a");
    assert!(matches!(
        ambiguous,
        Err(StoreError::Ambiguous { candidates, .. }) if candidates == ["ab", "abc", "abd"]
    ));
    assert!(is_unknown(&store.resolve("abcd")));
    assert!(is_unknown(&store.resolve("b")));
}

/// A session that a call started is listed below its parent alone, and removed with it.
pub async fn children_belong_to_their_parent(engine: Box<dyn Engine>) {
    let (store, sessions) = (engine.store(), engine.sessions());
    let children = ["p.r00000001", "p.r00000002"];
    let grandchild = "p.r00000001.r00000003";
    for name in ["p", children[1], children[0], grandchild, "other.r00000001"] {
        drop(with(&*sessions, name, vec![at(10, started())]).await);
    }
    assert_eq!(ids(store.children(&id("p"), 9).unwrap()), children.map(id));
    assert_eq!(ids(store.children(&id("p"), 1).unwrap()), [id(children[0])]);
    assert_eq!(
        ids(store.children(&id(children[0]), 9).unwrap()),
        [id(grandchild)]
    );
    let mut listed = ids(store.sessions(9).unwrap());
    listed.sort_unstable();
    assert_eq!(
        listed,
        ["other.r00000001", "p"].map(id),
        "a name alone is no parent"
    );
    let mut cut_off = ids(store.cut_off().unwrap());
    cut_off.sort_unstable();
    assert_eq!(cut_off, listed);
    assert_eq!(store.resolve("p").unwrap(), id("p"));
    let owned = store.take(&id(grandchild)).unwrap();
    assert!(matches!(
        store.remove(&id("p")),
        Err(StoreError::InUse { .. })
    ));
    drop(owned);
    store.remove(&id("p")).unwrap();
    assert_eq!(ids(store.sessions(9).unwrap()), [id("other.r00000001")]);
    assert!(is_unknown(&store.session(&id(grandchild))));
}

/// A directory has the session that was last written of those that work in it.
pub async fn a_directory_has_its_latest_session(engine: Box<dyn Engine>) {
    let store = engine.store();
    for (name, directory, time) in [("a", "/x", 10), ("b", "/x", 30), ("c", "/y", 40)] {
        let new = NewSession {
            directory: directory.to_owned(),
            ..NewSession::new(id(name), TimeMs(1))
        };
        let journal = engine.sessions().begin(new).unwrap();
        let batch = vec![at(time, said("x"))];
        append_to(name, &*journal, 0, batch, &[]).await.unwrap();
    }
    let latest = |directory| store.latest_in(directory).unwrap().map(|it| it.id);
    assert_eq!(latest("/x"), Some(id("b")));
    assert_eq!(latest("/y"), Some(id("c")));
    assert_eq!(latest("/"), None);
    store.set_directory(&id("c"), "/x").unwrap();
    assert_eq!(store.session(&id("c")).unwrap().directory, "/x");
    assert_eq!((latest("/x"), latest("/y")), (Some(id("c")), None));
    assert!(is_unknown(&store.set_directory(&id("d"), "/x")));
}

/// A turn without an end that no process works on is cut off, unless it is parked.
pub async fn turns_that_were_cut_off_are_listed(engine: Box<dyn Engine>) {
    let (store, sessions) = (engine.store(), engine.sessions());
    let parked = body(RecordBody::Parked {
        questions: Vec::new(),
    });
    for (name, records) in [
        ("done", vec![started(), ended()]),
        ("parked", vec![started(), parked]),
        ("open", vec![started()]),
    ] {
        drop(with(&*sessions, name, records).await);
    }
    let running = with(&*sessions, "running", vec![started()]).await;
    assert!(store.is_in_use(&id("running")) && !store.is_in_use(&id("open")));
    assert_eq!(ids(store.cut_off().unwrap()), [id("open")]);
    drop(running);
    assert!(!store.is_in_use(&id("running")));
    assert_eq!(ids(store.cut_off().unwrap()), ["open", "running"].map(id));
    let begun = sessions
        .begin(NewSession::new(id("begun"), TimeMs(1)))
        .unwrap();
    assert!(store.is_in_use(&id("begun")), "it has no record yet");
    drop(begun);
    let state = store.session(&id("parked")).unwrap().state;
    assert_eq!(state, SessionState::Parked);
}

/// The end of the last turn is known without all records; a turn that continues has none.
pub async fn the_end_of_the_last_turn_is_known(engine: Box<dyn Engine>) {
    let store = engine.store();
    let cells = Record {
        turn: TurnId::new(""),
        ..body(RecordBody::CellsRepeated {
            repeated: 1,
            not_restored: 0,
        })
    };
    let records = [turn(1), vec![cells]].concat();
    let journal = with(&*engine.sessions(), "a", records).await;
    let end = || store.last_end(&id("a")).unwrap();
    assert_eq!(end(), Some(StopReason::Complete));
    append_to("a", &*journal, 4, vec![started()], &[])
        .await
        .unwrap();
    assert_eq!(end(), None);
    assert!(is_unknown(&store.last_end(&id("b"))));
}

/// A late turn is the first that lies within the last records, and none if these are all.
pub async fn a_late_turn_begins_within_the_last_records(engine: Box<dyn Engine>) {
    let store = engine.store();
    let records = (1..=20).flat_map(turn).collect();
    drop(with(&*engine.sessions(), "a", records).await);
    let late = |records| store.late_turn(&id("a"), records).unwrap();
    let begin = |number: u32| LateTurn {
        number,
        first: Seq(u64::from(number) * 3 - 2),
    };
    assert_eq!(late(4), Some(begin(20)));
    assert_eq!(late(7), Some(begin(19)));
    assert_eq!(late(60), None);
    assert_eq!(late(u64::MAX), None);
    assert!(is_unknown(&store.late_turn(&id("b"), 4)));
}

/// All records are passed on in their order, those before a fork included, until that is enough.
pub async fn records_are_visited_in_order_until_that_is_enough(engine: Box<dyn Engine>) {
    let store = engine.store();
    let texts: Vec<_> = (0..MANY).map(|n| said(&n.to_string())).collect();
    drop(with(&*engine.sessions(), "a", texts.clone()).await);
    let last = Seq(MANY as u64);
    store.fork(&id("a"), last, &id("b"), TimeMs(1)).unwrap();
    let journal = store.take(&id("b")).unwrap();
    let batch = all_said(["own"]);
    append_to("b", &*journal, last.0, batch, &[]).await.unwrap();
    let all = [&texts[..], &[said("own")]].concat();

    let mut seen = Vec::new();
    let visited = store.each(&id("b"), Seq(1), |entry| {
        seen.push(entry.seq);
        assert_eq!(entry.into_record().as_ref(), all.get(seen.len() - 1));
        Ok::<_, StoreError>(())
    });
    visited.unwrap();
    assert!(seen.into_iter().eq((1..=last.0 + 1).map(Seq)));

    let mut checked = Vec::new();
    let mut take = |record| {
        checked.push(record);
        match checked.len() < 500 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    store.visit_checked(&id("b"), &mut take).unwrap();
    assert_eq!(checked.len(), 500);
    assert!(checked.iter().eq(all.iter().take(500)));

    let mut count = 0;
    let mut take = |_: Entry| {
        count += 1;
        ControlFlow::Break(())
    };
    store.visit(&id("b"), Seq(7), &mut take).unwrap();
    assert_eq!(count, 1);
    let mut take = |_: Entry| ControlFlow::Continue(());
    assert!(is_unknown(&store.visit(&id("c"), Seq(1), &mut take)));
}
