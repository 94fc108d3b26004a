use crate::support::{append, id, journal, said, say, three};
use rondo_core::ports::{Record, RecordBody, Seq};
use rondo_core::profile;
use rondo_core::session_store::StoreError;
use rondo_journal::{JournalError, NewSession, SessionState};
use rondo_types::{SessionId, StopReason, TimeMs};

#[tokio::test]
async fn the_session_written_last_is_the_latest() {
    let journal = journal();
    let (a, b) = (three(&journal, "a").await, three(&journal, "b").await);
    assert_eq!(journal.store.resolve("latest").unwrap(), id("b"));
    let mut record = said("later");
    record.at_ms = TimeMs(5000);
    append(&a, Seq(3), vec![record]).await.unwrap();
    assert_eq!(journal.store.resolve("latest").unwrap(), id("a"));
    let listed: Vec<SessionId> = journal
        .store
        .sessions(10)
        .unwrap()
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(listed, [id("a"), id("b")]);
    drop(b);
}

#[test]
fn a_prefix_names_a_session_when_only_one_begins_with_it() {
    let journal = journal();
    for name in ["ab1", "ab2", "b", "b%"] {
        drop(journal.store.create(&id(name), TimeMs(1)).unwrap());
    }
    assert_eq!(journal.store.resolve("ab1").unwrap(), id("ab1"));
    assert_eq!(journal.store.resolve("ab2").unwrap(), id("ab2"));
    // A whole id wins over one that it is the beginning of.
    assert_eq!(journal.store.resolve("b").unwrap(), id("b"));
    assert_eq!(journal.store.resolve("b%").unwrap(), id("b%"));
    let error = journal.store.resolve("ab").unwrap_err().to_string();
    assert_eq!(error, "`ab` is ambiguous: it matches ab1, ab2");
    for none in ["", "c", "%", "AB1"] {
        assert!(journal.store.resolve(none).is_err(), "{none}");
    }
}

#[test]
fn an_empty_journal_has_no_latest() {
    let journal = journal();
    assert!(matches!(
        journal.store.resolve("latest"),
        Err(JournalError::Store(StoreError::Unknown { .. }))
    ));
}

#[tokio::test]
async fn a_title_is_one_bounded_line() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let long = format!("how many\n\tfiles {}", "x".repeat(1000));
    journal.store.set_title(&id("a"), &long).unwrap();
    let title = journal.store.session(&id("a")).unwrap().title;
    assert!(title.starts_with("how many files xxx"));
    assert_eq!(title.chars().count(), 120);
}

#[tokio::test]
async fn removal_takes_what_only_that_session_held() {
    let journal = journal();
    let large = "x".repeat(50_000);
    for name in ["a", "b"] {
        let session = journal.store.create(&id(name), TimeMs(1)).unwrap();
        say(&session, Seq(0), &[&large]).await;
    }
    journal.store.remove(&id("a")).unwrap();
    assert!(journal.store.read_all(&id("a")).is_err());
    assert_eq!(journal.store.read_all(&id("b")).unwrap().len(), 1);
    journal.store.remove(&id("b")).unwrap();
    let connection = rusqlite::Connection::open(journal.store.path()).unwrap();
    let left: i64 = connection
        .query_row("SELECT count(*) FROM blobs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_session_in_use_is_not_removed() {
    let journal = journal();
    let owned = three(&journal, "a").await;
    let refused = journal.store.remove(&id("a"));
    assert!(matches!(
        refused,
        Err(JournalError::Store(StoreError::InUse { .. }))
    ));
    drop(owned);
    journal.store.remove(&id("a")).unwrap();
}

#[tokio::test]
async fn pruning_spares_the_young_and_the_used_and_takes_forks_before_parents() {
    let journal = journal();
    drop(three(&journal, "parent").await);
    let child = id("child");
    journal
        .store
        .fork(&id("parent"), Seq(2), &child, TimeMs(1))
        .unwrap();
    let used = three(&journal, "used").await;
    let young = journal.store.create(&id("young"), TimeMs(9000)).unwrap();
    drop(young);
    let mut removed = journal.store.prune(TimeMs(2000)).unwrap();
    removed.sort();
    assert_eq!(removed, [child, id("parent")]);
    assert_eq!(journal.store.sessions(10).unwrap().len(), 2);
    drop(used);
}

fn started() -> RecordBody {
    RecordBody::TurnStarted {
        profile: profile::builtin("default").unwrap().into(),
        seed: 1,
        tools_hash: String::new(),
        addresses: vec![],
        models: Vec::new(),
        turn_number: 1,
        history: 0,
        initial_history: Vec::new(),
        unbegun_not_run: true,
    }
}

fn of_turns(bodies: Vec<RecordBody>) -> Vec<Record> {
    let record = |body| Record { body, ..said("") };
    bodies.into_iter().map(record).collect()
}

#[tokio::test]
async fn a_list_says_how_many_turns_there_are_and_where_the_last_one_stands() {
    let journal = journal();
    let new = NewSession {
        title: "what\n is  it".into(),
        directory: "/work".into(),
        ..NewSession::new(id("a"), TimeMs(1))
    };
    let owned = journal.store.begin(new).unwrap();
    assert!(
        journal.store.sessions(9).unwrap().is_empty(),
        "no record yet"
    );
    let ended = || RecordBody::Final {
        stop_reason: StopReason::Complete,
        text: String::new(),
        degraded: false,
        process: None,
    };
    let stands = || {
        let info = journal.store.latest_in("/work").unwrap().unwrap();
        assert_eq!((info.id.as_str(), info.title.as_str()), ("a", "what is it"));
        (info.turns, info.state)
    };
    let begun = of_turns(vec![started(), ended(), started()]);
    append(&owned, Seq(0), begun).await.unwrap();
    assert_eq!(stands(), (2, SessionState::Running));
    drop(owned);
    assert_eq!(stands(), (2, SessionState::CutOff));
    assert_eq!(journal.store.last_end(&id("a")).unwrap(), None);
    journal
        .store
        .fork(&id("a"), Seq(2), &id("f"), TimeMs(0))
        .unwrap();
    let fork = journal.store.session(&id("f")).unwrap();
    assert_eq!((fork.turns, fork.state), (1, SessionState::Done));
    let owned = journal.store.own(&id("a")).unwrap();
    append(&owned, Seq(3), of_turns(vec![ended()]))
        .await
        .unwrap();
    assert_eq!(stands(), (2, SessionState::Done));
    let end = |name: &str| journal.store.last_end(&id(name)).unwrap();
    assert_eq!(
        (end("a"), end("f")),
        (Some(StopReason::Complete), Some(StopReason::Complete))
    );
    assert_eq!(journal.store.latest_in("/elsewhere").unwrap(), None);
    let last = |name: &str| journal.store.last_record(&id(name)).unwrap();
    assert_eq!(
        [last("a"), last("f"), last("none")],
        [Some(Seq(4)), Some(Seq(2)), None]
    );

    let mut file = Vec::new();
    journal.store.export(&id("a"), &mut file).unwrap();
    journal
        .store
        .import(&mut &file[..], Some(&id("i")))
        .unwrap();
    assert_eq!(journal.store.session(&id("i")).unwrap().turns, 2);
}

#[test]
fn a_session_in_use_is_refused_with_the_process_that_has_it() {
    let journal = journal();
    let _owned = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    let error = journal.store.own(&id("a")).unwrap_err().to_string();
    let expected = format!(
        "session `a` is in use by this process ({})",
        std::process::id()
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_session_that_a_call_started_stands_below_its_parent_and_goes_with_it() {
    let journal = journal();
    let store = &journal.store;
    let names = [
        "ab",
        "ab.r00100100",
        "ab.r00100101",
        "ab.r00100100.r00100100",
        // As the conversations of a script are named.
        "ab.r28b9c916bd43e4f21e94",
    ];
    for name in names
        .into_iter()
        .chain(["abc", "x.r20261124", "ab.xr0010010"])
    {
        drop(three(&journal, name).await);
    }
    let ids = |infos: Vec<rondo_journal::SessionInfo>| {
        let mut ids: Vec<String> = infos.into_iter().map(|it| it.id.to_string()).collect();
        ids.sort_unstable();
        ids
    };
    // One that is only named like that has no parent.
    assert_eq!(
        ids(store.sessions(10).unwrap()),
        ["ab", "ab.xr0010010", "abc", "x.r20261124"]
    );
    assert_eq!(store.resolve("latest").unwrap(), id("ab.xr0010010"));
    assert_eq!(
        ids(store.children(&id("ab"), 10).unwrap()),
        ["ab.r00100100", "ab.r00100101", "ab.r28b9c916bd43e4f21e94"]
    );
    assert_eq!(ids(store.children(&id("ab"), 1).unwrap()), ["ab.r00100100"]);
    assert_eq!(
        ids(store.children(&id("ab.r00100100"), 10).unwrap()),
        ["ab.r00100100.r00100100"]
    );
    let resolve = |text: &str| store.resolve(text).map(|it| it.to_string());
    assert_eq!(resolve("ab").unwrap(), "ab");
    assert_eq!(
        resolve("ab.").unwrap_err().to_string(),
        "`ab.` is ambiguous: it matches ab.r00100100, ab.r00100101, ab.r28b9c916bd43e4f21e94, ab.xr0010010"
    );
    assert_eq!(resolve("ab.r00100101").unwrap(), "ab.r00100101");
    assert_eq!(resolve("x").unwrap(), "x.r20261124");
    let held = store.own(&id("ab.r00100101")).unwrap();
    assert!(matches!(
        store.remove(&id("ab")),
        Err(JournalError::Store(StoreError::InUse { .. }))
    ));
    drop(held);
    store.remove(&id("ab")).unwrap();
    for name in names {
        assert!(store.session(&id(name)).is_err(), "{name}");
    }
    assert_eq!(
        ids(store.sessions(10).unwrap()),
        ["ab.xr0010010", "abc", "x.r20261124"]
    );
}
