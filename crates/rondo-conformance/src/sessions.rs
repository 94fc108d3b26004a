//! Checks: sessions begun, taken, listed, forked and removed.

use crate::engine::Engine;
use crate::samples::{
    accepted, all_said, append_to, at, body, ended, id, is_in_use, is_unknown, keys, message, said,
    started, with,
};
use rondo_core::history::History;
use rondo_core::ports::{AppendError, Record, RecordBody, Seq};
use rondo_core::session_store::{
    ID_BYTES_MAX, NewSession, SessionInfo, SessionState, SessionStore, StoreError, TITLE_CHARS_MAX,
};
use rondo_types::{Question, QuestionId, QuestionKind, SessionId, TimeMs, TurnId};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Sessions that are taken at once.
const TAKEN: usize = 100;

fn listed(store: &dyn SessionStore) -> Vec<SessionId> {
    let listed = store.sessions(usize::MAX).unwrap();
    listed.into_iter().map(|info| info.id).collect()
}

/// One that never gets records leaves nothing behind.
pub async fn a_session_is_there_from_its_first_records_on(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let new = NewSession::new(id("a"), TimeMs(1));
    let journal = store.begin(new.clone()).unwrap();
    assert_eq!(listed(&*store), []);
    assert!(is_unknown(&store.session(&id("a"))));
    drop(journal);
    assert!(is_unknown(&store.take(&id("a")).map(drop)));
    let journal = store.begin(new).unwrap();
    let batch = vec![said("x")];
    append_to("a", &*journal, 0, batch, &[]).await.unwrap();
    assert_eq!(listed(&*store), [id("a")]);
}

/// An id is one session's, and can be shown.
pub async fn an_id_is_had_once_and_is_no_nonsense(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let journal = with(&*store, "a", vec![said("x")]).await;
    let again = NewSession::new(id("a"), TimeMs(2));
    assert!(is_in_use(&store.begin(again.clone()).map(drop)));
    drop(journal);
    let refused = store.begin(again).map(drop);
    assert!(matches!(refused, Err(StoreError::Exists { session }) if session == id("a")));
    for bad in [
        String::new(),
        "a\nb".to_owned(),
        "x".repeat(ID_BYTES_MAX + 1),
    ] {
        let refused = store.begin(NewSession::new(id(&bad), TimeMs(1)));
        assert!(matches!(refused.map(drop), Err(StoreError::BadId { .. })));
        let refused = store.fork(&id("a"), Seq(1), &id(&bad), TimeMs(1));
        assert!(matches!(refused, Err(StoreError::BadId { .. })));
    }
    let longest = "x".repeat(ID_BYTES_MAX);
    drop(with(&*store, &longest, vec![said("x")]).await);
}

/// An owner has its session until it is dropped; the next one has a higher epoch and continues where it was.
pub async fn a_session_has_one_owner_at_a_time(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let first = with(&*store, "a", vec![said("x")]).await;
    assert!(is_in_use(&engine.sessions().take(&id("a")).map(drop)));
    let epoch = first.epoch();
    drop(first);
    let second = store.take(&id("a")).unwrap();
    assert!(second.epoch() > epoch);
    assert_eq!(second.at(), Seq(1));
    assert!(is_in_use(&store.take(&id("a")).map(drop)));
    let batch = vec![said("y")];
    append_to("a", &*second, 1, batch, &[]).await.unwrap();
    assert!(is_unknown(&store.take(&id("b")).map(drop)));
    let Some(newer) = engine.take_over(&id("a")).await else {
        return;
    };
    let refused = append_to("a", &*second, 2, vec![said("z")], &[]).await;
    assert!(matches!(refused, Err(AppendError::Fenced { .. })));
    assert_eq!(newer.at(), Seq(2));
}

/// A list says of each session what is known without its records.
pub async fn a_list_says_what_is_known_and_the_latest_is_first(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let new = NewSession {
        title: "given".to_owned(),
        directory: "/work".to_owned(),
        ..NewSession::new(id("a"), TimeMs(5))
    };
    let open = store.begin(new).unwrap();
    let batch = vec![started(), ended(), at(3000, started())];
    append_to("a", &*open, 0, batch, &[]).await.unwrap();
    drop(with(&*store, "b", vec![started(), said("first  words"), ended()]).await);
    let expected = SessionInfo {
        id: id("a"),
        created: TimeMs(5),
        updated: TimeMs(3000),
        head: Seq(3),
        parent: None,
        title: "given".to_owned(),
        directory: "/work".to_owned(),
        turns: 2,
        state: SessionState::Running,
        imported: false,
        lost_end: false,
    };
    assert_eq!(store.session(&id("a")).unwrap(), expected);
    drop(open);
    let cut_off = SessionInfo {
        state: SessionState::CutOff,
        ..expected
    };
    let done = SessionInfo {
        id: id("b"),
        created: TimeMs(1),
        updated: TimeMs(1000),
        title: "first words".to_owned(),
        directory: String::new(),
        turns: 1,
        state: SessionState::Done,
        ..cut_off.clone()
    };
    let all = store.sessions(9).unwrap();
    assert_eq!(all, [cut_off.clone(), done]);
    assert_eq!(store.sessions(1).unwrap(), [cut_off]);
}

/// A turn that waits for answers differs from one that was cut off, also if records of no turn follow.
pub async fn a_session_that_waits_for_answers_says_so(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let questions = vec![Question {
        id: QuestionId("q".to_owned()),
        call: None,
        child: None,
        kind: QuestionKind::Approval,
        prompt: "may it?".to_owned(),
        hash: "00".to_owned(),
        expires: None,
        offers: Vec::new(),
        reasons: Vec::new(),
        subject: rondo_types::QuestionSubject::default(),
    }];
    let parked = body(RecordBody::Parked { questions });
    let cells = Record {
        turn: TurnId::new(""),
        ..body(RecordBody::CellsRepeated {
            repeated: 1,
            not_restored: 0,
        })
    };
    let resumed = body(RecordBody::Resumed { downtime_ms: 1 });
    let state = || store.session(&id("a")).unwrap().state;
    let journal = with(&*store, "a", vec![started(), parked, cells]).await;
    assert_eq!(state(), SessionState::Running);
    drop(journal);
    assert_eq!(state(), SessionState::Parked);
    let journal = store.take(&id("a")).unwrap();
    append_to("a", &*journal, 3, vec![resumed], &[])
        .await
        .unwrap();
    drop(journal);
    assert_eq!(state(), SessionState::CutOff);
}

/// A title is one line, however long what was given.
pub async fn a_renamed_session_has_one_bounded_line(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    drop(with(&*store, "a", vec![said("x")]).await);
    let title = || store.session(&id("a")).unwrap().title;
    store.set_title(&id("a"), " two\n lines ").unwrap();
    assert_eq!(title(), "two lines");
    let long = "x".repeat(TITLE_CHARS_MAX + 1);
    store.set_title(&id("a"), &long).unwrap();
    assert_eq!(title(), long[1..]);
    store.set_title(&id("a"), "").unwrap();
    assert_eq!(title(), "");
    assert!(is_unknown(&store.set_title(&id("b"), "x")));
}

/// Records come with their places, as many as asked for.
pub async fn records_are_read_from_a_place_on(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let _journal = with(&*store, "a", all_said(["one", "two", "three"])).await;
    let read = |from, limit| {
        let entries = store.read(&id("a"), Seq(from), limit).unwrap().into_iter();
        let records = entries.map(|entry| (entry.seq, entry.into_record().unwrap()));
        records.collect::<Vec<_>>()
    };
    let three = (Seq(3), said("three"));
    assert_eq!(read(2, 9), [(Seq(2), said("two")), three.clone()]);
    assert_eq!(read(2, 1), [(Seq(2), said("two"))]);
    assert_eq!(read(0, 9), read(1, 9));
    assert_eq!(read(3, 9), [three]);
    assert_eq!(read(4, 9), []);
    assert!(is_unknown(&store.read(&id("b"), Seq(1), 9)));
}

/// A history is what the records lead to.
pub async fn a_history_follows_the_records(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let records = vec![started(), said("x"), ended(), started(), said("y")];
    drop(with(&*store, "a", records.clone()).await);
    assert_eq!(store.history(&id("a")).unwrap(), History::of(&records));
    assert!(is_unknown(&store.history(&id("b"))));
}

/// Parent and fork have the same records up to the place, and each its own from there.
pub async fn a_fork_shares_the_beginning_and_goes_its_own_way(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let parent = with(&*store, "a", vec![started(), said("x"), ended(), started()]).await;
    store.fork(&id("a"), Seq(3), &id("b"), TimeMs(7)).unwrap();
    let fork = store.take(&id("b")).unwrap();
    assert_eq!(fork.at(), Seq(3));
    append_to("b", &*fork, 3, vec![said("b")], &[])
        .await
        .unwrap();
    append_to("a", &*parent, 4, vec![said("a")], &[])
        .await
        .unwrap();
    let shared = [started(), said("x"), ended()];
    let ours = [&shared[..], &[said("b")]].concat();
    let theirs = [&shared[..], &[started(), said("a")]].concat();
    assert_eq!(engine.recorded(&id("b")).await, ours);
    assert_eq!(engine.recorded(&id("a")).await, theirs);
    assert_eq!(store.history(&id("b")).unwrap(), History::of(&ours));
    let info = store.session(&id("b")).unwrap();
    assert_eq!(info.parent, Some((id("a"), Seq(3))));
    assert_eq!((info.turns, info.state), (1, SessionState::Done));
    assert_eq!((info.created, info.title.as_str()), (TimeMs(7), "x"));
}

/// A fork needs a session, a record and an id of its own.
pub async fn what_is_not_there_is_not_forked(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    drop(with(&*store, "a", vec![said("x")]).await);
    drop(with(&*store, "b", vec![said("y")]).await);
    let fork = |of, seq, to| store.fork(&id(of), Seq(seq), &id(to), TimeMs(1));
    assert!(is_unknown(&fork("c", 1, "d")));
    for (seq, last) in [(0, 1), (2, 1)] {
        let refused = fork("a", seq, "d");
        assert!(matches!(
            refused,
            Err(StoreError::NoSuchRecord { seq: at, last: end, .. }) if (at, end) == (seq, last)
        ));
    }
    let refused = fork("a", 1, "b");
    assert!(matches!(refused, Err(StoreError::Exists { .. })));
    assert_eq!(engine.recorded(&id("b")).await, [said("y")]);
    assert!(is_unknown(&store.session(&id("d"))));
}

/// A removed session is gone for all, with its mail and its keys; its id is free.
pub async fn a_removed_session_takes_its_mail_along(engine: Box<dyn Engine>) {
    let (store, mailbox) = (engine.sessions(), engine.mailbox());
    drop(with(&*store, "a", vec![said("x")]).await);
    for session in ["a", "b"] {
        accepted(&*mailbox, message(session, "1", "x")).await;
    }
    store.remove(&id("a")).unwrap();
    assert_eq!(listed(&*engine.sessions()), []);
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
    assert!(is_unknown(&store.remove(&id("a"))));
    accepted(&*mailbox, message("a", "1", "y")).await;
    drop(with(&*store, "a", vec![said("y")]).await);
    assert_eq!(engine.recorded(&id("a")).await, [said("y")]);
    assert_eq!(keys(&*mailbox, "a").await, ["1"]);
}

/// An owner keeps its session, and a fork its parent.
pub async fn what_is_owned_or_has_forks_is_not_removed(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let journal = with(&*store, "a", vec![said("x")]).await;
    assert!(is_in_use(&store.remove(&id("a"))));
    drop(journal);
    store.fork(&id("a"), Seq(1), &id("b"), TimeMs(1)).unwrap();
    let refused = store.remove(&id("a"));
    assert!(matches!(
        refused,
        Err(StoreError::HasForks { children, .. }) if children == ["b"]
    ));
    store.remove(&id("b")).unwrap();
    store.remove(&id("a")).unwrap();
    assert_eq!(listed(&*store), []);
}

/// Each of many sessions that are taken at the same time is owned, and continues where it was.
pub async fn many_sessions_are_taken_at_once(engine: Box<dyn Engine>) {
    let store = engine.sessions();
    let names: Vec<_> = (0..TAKEN).map(|n| format!("s{n}")).collect();
    for name in &names {
        drop(with(&*store, name, vec![said(name)]).await);
    }
    let mut taking = JoinSet::new();
    for name in names {
        let store = Arc::clone(&store);
        taking.spawn(async move {
            let journal = store.take(&id(&name)).unwrap();
            let batch = vec![said("more")];
            append_to(&name, &*journal, 1, batch, &[]).await.unwrap()
        });
    }
    assert_eq!(taking.join_all().await, vec![Seq(2); TAKEN]);
}
