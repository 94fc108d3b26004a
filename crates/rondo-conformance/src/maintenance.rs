//! Checks: sessions checked, exported, imported, and the room that they take.

use crate::engine::Engine;
use crate::samples::{all_said, append_to, at, id, is_unknown, said};
use rondo_core::ports::Seq;
use rondo_core::session_store::{NewSession, StoreError};
use rondo_core::storage::{Report, Retention, Store};
use rondo_types::TimeMs;

/// Makes a store with session `a`, which has a title, a directory and three records.
async fn with_session(engine: &dyn Engine) -> Store {
    let store = engine.store();
    let new = NewSession {
        title: "given".to_owned(),
        directory: "/work".to_owned(),
        ..NewSession::new(id("a"), TimeMs(5))
    };
    let journal = engine.sessions().begin(new).unwrap();
    let batch = all_said(["one", "two", "three"]);
    append_to("a", &*journal, 0, batch, &[]).await.unwrap();
    store
}

fn exported(store: &Store, session: &str) -> Vec<u8> {
    let mut file = Vec::new();
    store.export(&id(session), &mut file).unwrap();
    file
}

/// A check and a repair of a sound session report its records, and change nothing.
pub async fn a_sound_session_is_reported_sound(engine: Box<dyn Engine>) {
    let store = with_session(&*engine).await;
    let sound = Report {
        session: id("a"),
        sound: 3,
        defect: None,
        mended: 0,
        cut: Vec::new(),
    };
    assert_eq!(store.check(&id("a")).unwrap(), sound);
    assert_eq!(store.repair(&id("a")).unwrap(), sound);
    assert_eq!(engine.recorded(&id("a")).await.len(), 3);
    let _owned = store.take(&id("a")).unwrap();
    assert_eq!(store.check(&id("a")).unwrap(), sound);
    let refused = store.repair(&id("a"));
    assert!(matches!(refused, Err(StoreError::InUse { .. })));
    assert!(is_unknown(&store.check(&id("b"))));
    assert!(is_unknown(&store.repair(&id("b"))));
    assert_eq!(store.malformed().unwrap(), None);
}

/// An imported session has the records, the hashes and the title of the exported one, and is marked with its forks.
pub async fn an_exported_session_is_imported_as_it_was(engine: Box<dyn Engine>) {
    let store = with_session(&*engine).await;
    let file = exported(&store, "a");
    let imported = store.import(&mut &file[..], Some(&id("b"))).unwrap();
    assert_eq!((imported.session, imported.records), (id("b"), 3));
    assert_eq!((imported.torn, imported.announced), (false, Some(3)));
    assert_eq!(imported.directory, "/work");
    let all = |name| store.read(&id(name), Seq(1), usize::MAX).unwrap();
    assert_eq!(all("b"), all("a"));
    let info = store.session(&id("b")).unwrap();
    assert!(info.imported && !info.lost_end);
    assert_eq!(
        (info.title.as_str(), info.directory.as_str()),
        ("given", "")
    );
    store.fork(&id("b"), Seq(1), &id("c"), TimeMs(9)).unwrap();
    assert!(store.session(&id("c")).unwrap().imported);
    assert!(!store.session(&id("a")).unwrap().imported);
    assert_eq!(store.resolve("latest").unwrap(), id("a"));
    let refused = store.import(&mut &file[..], None);
    assert!(matches!(refused, Err(StoreError::Exists { session }) if session == id("a")));
    assert!(is_unknown(&store.export(&id("d"), &mut Vec::new())));
}

/// A file whose last line is cut short is imported without it; one with a changed line is not imported.
pub async fn a_torn_file_is_imported_and_a_changed_one_is_not(engine: Box<dyn Engine>) {
    let store = with_session(&*engine).await;
    let file = exported(&store, "a");
    let mut torn = file.clone();
    torn.truncate(file.len() - 9);
    let imported = store.import(&mut &torn[..], Some(&id("b"))).unwrap();
    assert_eq!((imported.torn, imported.records), (true, 2));
    assert_eq!(imported.announced, Some(3));
    assert!(store.session(&id("b")).unwrap().lost_end);
    let changed = String::from_utf8(file).unwrap().replace("two", "too");
    let refused = store.import(&mut changed.as_bytes(), Some(&id("c")));
    assert!(matches!(
        refused,
        Err(StoreError::BadExport { line: 3, .. })
    ));
    assert!(is_unknown(&store.session(&id("c"))));
}

/// The sessions that may go are those last written before a time, the oldest first.
pub async fn what_need_not_be_kept_is_listed_oldest_first(engine: Box<dyn Engine>) {
    let store = engine.store();
    for (name, time) in [("young", 90), ("older", 20), ("oldest", 10)] {
        let journal = engine.begin(&id(name)).await;
        let batch = vec![at(time, said("x"))];
        append_to(name, &*journal, 0, batch, &[]).await.unwrap();
    }
    let retention = |before, keep_bytes| {
        let (before, keep_bytes) = (Some(TimeMs(before)), Some(keep_bytes));
        let surplus = store.surplus(&Retention { before, keep_bytes }).unwrap();
        surplus.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(retention(50, u64::MAX), ["oldest", "older"].map(id));
    assert_eq!(retention(10, u64::MAX), []);
    assert_eq!(retention(0, 0), ["oldest", "older", "young"].map(id));
}

/// The room of removed sessions is returned, and what is left is as it was.
pub async fn room_is_returned_and_the_rest_stays(engine: Box<dyn Engine>) {
    let store = with_session(&*engine).await;
    let long = "x".repeat(1 << 20);
    let journal = engine.begin(&id("b")).await;
    let batch = vec![said(&long)];
    append_to("b", &*journal, 0, batch, &[]).await.unwrap();
    drop(journal);
    store.remove(&id("b")).unwrap();
    assert!(store.vacuum().unwrap());
    let expected = all_said(["one", "two", "three"]);
    assert_eq!(engine.recorded(&id("a")).await, expected);
}

/// Each commit changes the version, also one of another process; reading does not.
pub async fn each_commit_changes_the_version(engine: Box<dyn Engine>) {
    let (store, other) = (engine.store(), engine.store());
    let before = store.version().unwrap();
    assert_eq!(store.version().unwrap(), before);
    let new = NewSession::new(id("a"), TimeMs(1));
    let journal = other.begin(new).unwrap();
    let batch = vec![said("x")];
    append_to("a", &*journal, 0, batch, &[]).await.unwrap();
    let after = store.version().unwrap();
    assert_ne!(after, before);
    store.session(&id("a")).unwrap();
    assert_eq!(store.version().unwrap(), after);
}
