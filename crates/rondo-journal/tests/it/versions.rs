//! Every version of the format that was ever written, against today's reader and writer. A new
//! version adds a folder to `fixtures/journal` and a row to [`VERSIONS`].

use crate::support::{Journal, append, id, journal, meddle, said};
use rondo_core::ports::{Interception, Record, RecordBody, Seq};
use rondo_core::session_store::StoreError;
use rondo_core::storage::{ExportedSession, export::EXPORT_VERSION};
use rondo_journal::{
    Body, ChainHash, Entry, JournalError, Options, RECORD_VERSION, SessionState, Store,
};
use rondo_types::{TimeMs, TurnId};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A session's name, its turns, and the messages that its next turn begins with.
pub(crate) type RecordedSession = (&'static str, u32, usize);

/// Each version's folder, and its sessions. The turn of a session `open-` was cut off.
pub(crate) const VERSIONS: [(&str, &[RecordedSession]); 10] = [
    (
        "v1",
        &[
            ("plain", 2, 8),
            ("resumed", 2, 8),
            ("forked", 2, 8),
            ("compacted", 4, 9),
        ],
    ),
    (
        "v2",
        &[
            ("plain", 2, 8),
            ("resumed", 2, 8),
            ("forked", 2, 8),
            ("compacted", 4, 9),
            ("celled", 2, 8),
        ],
    ),
    ("v2-last", V2_LAST),
    ("v3", &[("parked", 2, 6), ("open-parked", 1, 3)]),
    ("v3-amended", &[("intercepted", 2, 7), ("reserved", 1, 3)]),
    ("v3-equipped", &[("equipped", 1, 6)]),
    ("v3-ruled", &[("ruled", 1, 4)]),
    ("v3-script", &[("scripted", 1, 2)]),
    ("v4", &[("parked", 2, 6), ("open-parked", 1, 3)]),
    ("v4-folder", &[("asked-folder", 2, 4)]),
];

const V2_LAST: &[RecordedSession] = &[
    ("attached", 2, 6),
    ("brought", 2, 14),
    ("cancelled", 3, 9),
    ("celled", 1, 4),
    ("compacted", 4, 9),
    ("cut", 1, 4),
    ("doubted", 1, 6),
    ("dropped", 4, 9),
    ("failed", 4, 10),
    ("faulted", 2, 1),
    ("few", 3, 8),
    ("forked", 2, 8),
    ("given-up", 2, 5),
    ("guarded", 1, 20),
    ("judged", 2, 13),
    ("limited", 2, 10),
    ("plain", 2, 8),
    ("resumed", 2, 6),
    ("several", 1, 4),
    ("steered", 1, 6),
    ("summed-up", 4, 5),
    ("typed", 1, 6),
    ("worded", 3, 10),
    ("open-answered", 1, 3),
    ("open-asked", 1, 3),
    ("open-between", 1, 3),
    ("open-cancelled", 1, 3),
    ("open-fallback", 1, 1),
    ("open-in-doubt", 1, 3),
    ("open-look", 1, 3),
    ("open-move-done", 1, 3),
    ("open-move-not-done", 1, 3),
    ("open-move-running", 1, 3),
    ("open-move-unknown", 1, 3),
    ("open-put", 1, 3),
    ("open-repeated", 1, 1),
    ("open-reply", 1, 1),
    ("open-request", 2, 3),
    ("open-resumed", 1, 3),
    ("open-second", 1, 3),
    ("open-send", 1, 3),
    ("open-steered", 1, 5),
    ("open-wipe", 1, 3),
];

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/journal")
        .join(version)
}

fn exported_file(version: &str, name: &str) -> String {
    fs::read_to_string(folder(version).join(format!("{name}.jsonl"))).unwrap()
}

/// A copy of the store that a version wrote.
pub(crate) fn kept(version: &str) -> Journal {
    let dir = TempDir::new().unwrap();
    fs::copy(
        folder(version).join("journal.db"),
        dir.path().join("journal.db"),
    )
    .unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    Journal { dir, store }
}

fn exported(store: &Store, name: &str) -> String {
    let mut file = Vec::new();
    store.export(&id(name), &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

/// Leaves out what the first line says of the file's end, which older files do not say.
fn unannounced(file: &str) -> String {
    let (header, records) = file.split_once('\n').unwrap();
    let header = match header.split_once(",\"records\":") {
        Some((header, _)) => format!("{header}}}"),
        None => header.to_owned(),
    };
    format!("{header}\n{records}")
}

/// Returns an export as a file of that version says it.
fn exported_as(file: &str, store: &Store, name: &str) -> String {
    let now = exported(store, name);
    match file == unannounced(file) {
        true => unannounced(&now),
        false => now,
    }
}

#[test]
fn todays_reader_opens_what_each_version_wrote_and_loses_nothing() {
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        let store = &kept.store;
        assert_eq!(store.sessions(99).unwrap().len(), sessions.len());
        for (name, turns, messages) in sessions {
            let info = store.session(&id(name)).unwrap();
            let state = match *name {
                "open-parked" => SessionState::Parked,
                name if name.starts_with("open-") => SessionState::CutOff,
                _ => SessionState::Done,
            };
            assert_eq!((info.turns, info.state), (*turns, state), "{name}");
            let report = store.check(&id(name)).unwrap();
            assert_eq!((report.sound, report.defect), (info.head.0, None), "{name}");
            let history = store.history(&id(name)).unwrap();
            assert_eq!(history.transcript().len(), *messages, "{name}");
            let records = store.load(&id(name)).unwrap();
            assert_eq!(records.len() as u64, info.head.0, "{name}");
            let file = exported_file(version, name);
            assert_eq!(exported_as(&file, store, name), file, "{name}");
            let read = ExportedSession::read(&mut file.as_bytes()).unwrap();
            assert_eq!(read.records, records, "{name}");
        }
    }
}

#[test]
fn todays_reader_imports_what_each_version_exported() {
    for (version, sessions) in VERSIONS {
        let journal = journal();
        let store = &journal.store;
        for (name, turns, _) in sessions {
            let file = exported_file(version, name);
            store.import(&mut file.as_bytes(), None).unwrap();
            assert_eq!(store.session(&id(name)).unwrap().turns, *turns, "{name}");
            // The file names the origin of a fork; the copy is a session of its own.
            let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(lines(&exported(store, name)), lines(&file), "{name}");
        }
    }
}

#[tokio::test]
async fn todays_writer_appends_to_what_each_version_wrote_and_forks_hold() {
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        let store = &kept.store;
        for (name, ..) in sessions {
            let head = store.session(&id(name)).unwrap().head;
            let before = unannounced(&exported(store, name));
            let owned = store.own(&id(name)).unwrap();
            append(&owned, head, vec![said("and today")]).await.unwrap();
            let now = unannounced(&exported(store, name));
            assert!(now.starts_with(&before), "{name}");
            let fork = format!("{name}-fork");
            store.fork(&id(name), head, &id(&fork), TimeMs(1)).unwrap();
            let other = store.own(&id(&fork)).unwrap();
            append(&other, head, vec![said("elsewhere")]).await.unwrap();
        }
        for info in store.sessions(99).unwrap() {
            assert_eq!(store.check(&info.id).unwrap().defect, None, "{}", info.id);
        }
        let parent = |name: &str| store.session(&id(name)).unwrap().parent.unwrap().0;
        match version {
            "v3-ruled" => assert_eq!(parent("ruled-fork"), id("ruled")),
            "v3-script" => assert_eq!(parent("scripted-fork"), id("scripted")),
            "v3-equipped" => assert_eq!(parent("equipped-fork"), id("equipped")),
            "v3-amended" => assert_eq!(parent("reserved-fork"), id("reserved")),
            "v4-folder" => assert_eq!(parent("asked-folder-fork"), id("asked-folder")),
            "v3" | "v4" => assert_eq!(parent("parked-fork"), id("parked")),
            _ => assert_eq!(parent("forked"), id("plain")),
        }
    }
}

/// Adds a record to a file, which has one a line behind its first, as a later version would write it.
fn with(file: &str, version: u32, json: &str) -> String {
    let last: serde_json::Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    let hash = last
        .get("hash")
        .and_then(serde_json::Value::as_str)
        .unwrap();
    let mut entry = Entry {
        seq: Seq(file.lines().count() as u64),
        version,
        epoch: 1,
        turn: TurnId::new("t-9"),
        step: 0,
        at: TimeMs(1_795_000_001_000),
        json: json.to_owned(),
        hash: ChainHash::GENESIS,
    };
    entry.hash = entry.chained(ChainHash::from_hex(hash).unwrap());
    let Entry { seq, hash, .. } = &entry;
    format!(
        "{file}{{\"seq\":{},\"version\":{version},\"epoch\":1,\"turn\":\"t-9\",\"step\":0,\
         \"at_ms\":1795000001000,\"hash\":\"{hash}\",\"body\":{json}}}\n",
        seq.0
    )
}

const UNKNOWN_KIND: &str = r#"{"kind":"dreamt","of":["sheep"]}"#;
const UNKNOWN_FIELD: &str = r#"{"kind":"resumed","downtime_ms":7,"mood":{"is":"good"}}"#;

#[tokio::test]
async fn what_a_newer_minor_version_adds_is_kept_and_passed_over() {
    let file = exported_file("v1", "plain");
    let file = with(&file, RECORD_VERSION + 1, UNKNOWN_KIND);
    let file = with(&file, RECORD_VERSION + 1, UNKNOWN_FIELD);
    let journal = journal();
    let store = &journal.store;
    let records = store.import(&mut file.as_bytes(), None).unwrap().records;
    assert_eq!(store.check(&id("plain")).unwrap().defect, None);
    let entries = store.read_all(&id("plain")).unwrap();
    let [.., unknown, known] = &entries[..] else {
        panic!("{entries:?}")
    };
    let kind = "dreamt".to_owned();
    assert_eq!(unknown.body().unwrap(), Body::Unknown { kind });
    let downtime_ms = 7;
    let body = Box::new(RecordBody::Resumed { downtime_ms });
    assert_eq!(known.body().unwrap(), Body::Known(body));
    let history = store.history(&id("plain")).unwrap();
    assert_eq!(history.head(), Seq(records));
    assert_eq!(store.load(&id("plain")).unwrap().len() as u64, records - 1);
    // Today's writer continues behind it, and nothing of it is lost.
    let owned = store.own(&id("plain")).unwrap();
    append(&owned, Seq(records), vec![said("and today")])
        .await
        .unwrap();
    let records = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    let now = records(&exported(store, "plain"));
    assert!(now.starts_with(&records(&file)));
    assert_eq!(store.check(&id("plain")).unwrap().defect, None);
}

#[test]
fn from_version_3_on_an_unknown_kind_is_passed_over_and_a_known_one_is_read() {
    let file = exported_file("v1", "plain");
    let journal = journal();
    let store = &journal.store;
    let unknown = with(&file, 3, UNKNOWN_KIND);
    store.import(&mut unknown.as_bytes(), None).unwrap();
    let last = store.read_all(&id("plain")).unwrap().pop().unwrap();
    let kind = "dreamt".to_owned();
    assert_eq!(last.body().unwrap(), Body::Unknown { kind });
    let broken = with(&file, 3, r#"{"kind":"resumed","downtime_ms":"long"}"#);
    let other = id("other");
    let refused = store.import(&mut broken.as_bytes(), Some(&other));
    assert!(matches!(
        refused,
        Err(JournalError::Store(StoreError::BadExport { .. }))
    ));
}

#[test]
fn a_kind_that_its_own_version_does_not_have_is_damage() {
    let file = with(&exported_file("v1", "plain"), 2, UNKNOWN_KIND);
    let journal = journal();
    let store = &journal.store;
    let refused = store.import(&mut file.as_bytes(), None).unwrap_err();
    let line = file.lines().count();
    let is_named = matches!(&refused, JournalError::Store(StoreError::BadExport { line: at, .. }) if *at == line);
    assert!(is_named, "{refused}");
}

#[test]
fn a_newer_major_version_is_refused_by_its_name_and_left_as_it_is() {
    let journal = kept("v1");
    meddle(&journal, "PRAGMA user_version = 2");
    let before = fs::read(journal.store.path()).unwrap();
    let refused = Store::open(journal.dir.path(), Options::default()).unwrap_err();
    let is_named = matches!(
        refused,
        JournalError::TooNew {
            found: 2,
            known: 1,
            ..
        }
    );
    assert!(is_named, "{refused}");
    assert_eq!(fs::read(journal.store.path()).unwrap(), before);
    let newer = format!("{{\"rondo_session\":{}", EXPORT_VERSION + 1);
    let file = exported_file("v1", "plain").replacen("{\"rondo_session\":1", &newer, 1);
    let refused = ExportedSession::read(&mut file.as_bytes()).unwrap_err();
    assert!(matches!(refused, StoreError::BadExport { line: 1, .. }));
}

/// The first version keeps the cells of the second and skips them, like any kind of a later version
/// in the matrix above.
#[test]
fn cells_are_recorded_as_a_later_versions_kind_and_by_no_turn() {
    let kept = kept("v2");
    let entries = kept.store.read_all(&id("celled")).unwrap();
    let cells = entries.iter().filter(|it| it.kind().starts_with("cell_"));
    let kinds: Vec<_> = cells.clone().map(Entry::kind).collect();
    let pair = ["cell_started", "cell_finished"];
    assert_eq!(kinds, [&pair[..], &pair, &pair[..1]].concat());
    for cell in cells {
        assert_eq!((cell.version, cell.turn.as_str()), (2, ""));
    }
    let head = entries.len() as u64;
    let history = kept.store.history(&id("celled")).unwrap();
    assert_eq!((history.head(), history.open_turn()), (Seq(head), None));
}

/// A record that the fixtures must hold, so that the matrix is about something.
#[test]
fn the_kept_sessions_hold_what_they_are_kept_for() {
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        let store = &kept.store;
        let has = |name: &str, is: fn(&RecordBody) -> bool| {
            let records: Vec<Record> = store.load(&id(name)).unwrap();
            records.iter().any(|it| is(&it.body))
        };
        if version == "v3-ruled" {
            let has_sets = |it: &RecordBody| matches!(it, RecordBody::TurnStarted { profile, .. } if !profile.rule_sets.is_empty());
            assert!(has("ruled", has_sets));
            continue;
        }
        if version == "v3-script" {
            let is_call = |it: &RecordBody| matches!(it, RecordBody::ScriptCallFinished { .. });
            assert!(has("scripted", is_call));
            continue;
        }
        if version == "v3-equipped" {
            let is_changed = |it: &RecordBody| matches!(it, RecordBody::ToolsChanged { .. });
            assert!(has("equipped", is_changed));
            continue;
        }
        if version == "v3-amended" {
            let is_spent =
                |it: &RecordBody| matches!(it, RecordBody::Reserved(it) if it.refused.is_some());
            assert!(has("reserved", is_spent));
            let is_stopped = |it: &RecordBody| {
                matches!(it, RecordBody::Intercepted(Interception::Stopped { .. }))
            };
            assert!(has("intercepted", is_stopped));
            continue;
        }
        if version == "v4-folder" {
            let is_answered = |it: &RecordBody| matches!(it, RecordBody::FolderAnswered { .. });
            assert!(has("asked-folder", is_answered));
            let history = store.history(&id("asked-folder")).unwrap();
            assert_eq!(history.folder_question().unwrap().hash, "3");
            continue;
        }
        if version == "v3" || version == "v4" {
            let is_asked = |it: &RecordBody| matches!(it, RecordBody::Asked { .. });
            assert_eq!(has("open-parked", is_asked), version == "v4");
            assert!(has("parked", |it| matches!(it, RecordBody::Parked { .. })));
            assert!(has("parked", |it| matches!(
                it,
                RecordBody::Answered { .. }
            )));
            continue;
        }
        assert!(has("resumed", |it| matches!(
            it,
            RecordBody::Resumed { .. }
        )));
        assert!(has("resumed", |it| matches!(
            it,
            RecordBody::ToolInDoubt { .. }
        )));
        assert!(has("compacted", |it| matches!(
            it,
            RecordBody::Compacted(_)
        )));
        let large = |entry: &Entry| entry.json.len() > 16 << 10;
        let mut entries = sessions
            .iter()
            .flat_map(|it| store.read_all(&id(it.0)).unwrap());
        assert!(entries.any(|it| large(&it)), "a body beside the records");
    }
}
