use crate::support::{Journal, append, id, journal, meddle, said, say, three};
use rondo_core::ports::Seq;
use rondo_core::session_store::StoreError;
use rondo_core::storage::ExportedSession;
use rondo_journal::{JournalError, NewSession};
use rondo_types::TimeMs;

fn exported(journal: &Journal, name: &str) -> Vec<u8> {
    let mut file = Vec::new();
    journal.store.export(&id(name), &mut file).unwrap();
    file
}

#[tokio::test]
async fn an_exported_session_is_read_back_without_a_loss() {
    let (from, to) = (journal(), journal());
    let session = three(&from, "a").await;
    say(&session, Seq(3), &[&"ü\u{1f600}\"\\".repeat(20_000), ""]).await;
    from.store.set_title(&id("a"), "a title").unwrap();
    let file = exported(&from, "a");

    let imported = to.store.import(&mut file.as_slice(), None).unwrap();
    assert_eq!((imported.records, imported.torn), (5, false));
    assert_eq!(exported(&to, "a"), file);
    let read = |journal: &Journal| journal.store.read_all(&id("a")).unwrap();
    assert_eq!(read(&to), read(&from));
    assert_eq!(to.store.check(&id("a")).unwrap().defect, None);
    assert_eq!(to.store.session(&id("a")).unwrap().title, "a title");
    // It continues where it was.
    say(&to.store.own(&id("a")).unwrap(), Seq(5), &["six"]).await;
}

#[tokio::test]
async fn a_fork_is_exported_whole() {
    let (from, to) = (journal(), journal());
    drop(three(&from, "a").await);
    from.store
        .fork(&id("a"), Seq(2), &id("b"), TimeMs(1))
        .unwrap();
    say(&from.store.own(&id("b")).unwrap(), Seq(2), &["left"]).await;
    let file = exported(&from, "b");
    let imported = to
        .store
        .import(&mut file.as_slice(), Some(&id("c")))
        .unwrap();
    assert_eq!(imported.session, id("c"));
    assert_eq!(
        to.store.read_all(&id("c")).unwrap(),
        from.store.read_all(&id("b")).unwrap()
    );
}

#[tokio::test]
async fn a_file_cut_anywhere_keeps_its_whole_lines() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = exported(&from, "a");
    let header_end = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let to = journal();
    for cut in header_end..file.len() {
        let part = &file[..cut];
        let name = id(&format!("cut-{cut}"));
        let imported = to.store.import(&mut &part[..], Some(&name)).unwrap();
        let whole = part.iter().filter(|byte| **byte == b'\n').count() as u64 - 1;
        let ends_whole = part.last() == Some(&b'\n');
        // Only the very last brace may be there without its line end.
        let last_is_whole = part.len() == file.len() - 1 || is_record(&part[header_end..]);
        let expected = whole + u64::from(!ends_whole && last_is_whole);
        assert_eq!(imported.records, expected, "cut at {cut}");
        // What is missing shows, also if the cut is at a line's end.
        assert_eq!(imported.torn, expected < 3, "cut at {cut}");
        assert_eq!(imported.announced, Some(3));
        assert_eq!(to.store.check(&name).unwrap().defect, None);
    }
}

fn is_record(part: &[u8]) -> bool {
    let last = part
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(last).is_ok()
}

#[tokio::test]
async fn a_changed_file_is_refused_with_its_line_and_nothing_is_imported() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = String::from_utf8(exported(&from, "a")).unwrap();
    let lines: Vec<&str> = file.lines().collect();
    let changed = [
        (file.replace("two", "2"), 3),
        (format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]), 3),
        (format!("{}\nnonsense\n{}\n", lines[0], lines[1]), 2),
        (
            file.replace("\"rondo_session\":1", "\"rondo_session\":9"),
            1,
        ),
        (String::new(), 0),
    ];
    let to = journal();
    for (text, line) in changed {
        let refused = to.store.import(&mut text.as_bytes(), None).unwrap_err();
        match refused {
            JournalError::Store(StoreError::BadExport { line: at, .. }) => {
                assert_eq!(at, line, "{refused}")
            }
            other => panic!("{other}"),
        }
    }
    assert!(to.store.sessions(9).unwrap().is_empty());
}

#[tokio::test]
async fn an_import_does_not_replace_a_session() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let file = exported(&journal, "a");
    let refused = journal.store.import(&mut file.as_slice(), None);
    assert!(matches!(
        refused,
        Err(JournalError::Store(StoreError::Exists { .. }))
    ));
}

#[tokio::test]
async fn an_exported_file_is_read_without_a_store() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = exported(&from, "a");
    let read = ExportedSession::read(&mut file.as_slice()).unwrap();
    assert_eq!((read.session, read.torn), (id("a"), false));
    assert_eq!(read.records, from.store.load(&id("a")).unwrap());
    let cut = ExportedSession::read(&mut &file[..file.len() - 5]).unwrap();
    assert_eq!((cut.records.len(), cut.torn), (2, true));
    let changed = String::from_utf8(file).unwrap().replace("two", "owt");
    let refused = ExportedSession::read(&mut changed.as_bytes());
    assert!(matches!(
        refused,
        Err(StoreError::BadExport { line: 3, .. })
    ));
}

#[tokio::test]
async fn the_directory_goes_with_the_session_and_may_be_missing() {
    let (from, to) = (journal(), journal());
    let new = NewSession {
        directory: "/home/me/notes".to_owned(),
        ..NewSession::new(id("a"), TimeMs(1))
    };
    say(&from.store.begin(new).unwrap(), Seq(0), &["one"]).await;
    let file = exported(&from, "a");
    let imported = to.store.import(&mut file.as_slice(), None).unwrap();
    assert_eq!(imported.directory, "/home/me/notes");
    // It is told, and not worked in before a user agrees.
    let works_in = || to.store.session(&id("a")).unwrap().directory;
    assert_eq!(works_in(), "");
    to.store.set_directory(&id("a"), "/home/me/notes").unwrap();
    assert_eq!(works_in(), "/home/me/notes");
    let without = String::from_utf8(file).unwrap();
    let without = without.replace(",\"directory\":\"/home/me/notes\"", "");
    assert!(!without.contains("directory"));
    to.store
        .import(&mut without.as_bytes(), Some(&id("b")))
        .unwrap();
    assert_eq!(to.store.session(&id("b")).unwrap().directory, "");
}

#[tokio::test]
async fn an_id_that_no_session_can_have_is_refused_and_named() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let file = exported(&journal, "a");
    for odd in ["", "two\nlines", &"x".repeat(129)] {
        let refused = journal.store.import(&mut file.as_slice(), Some(&id(odd)));
        assert!(
            matches!(refused, Err(JournalError::Store(StoreError::BadId { .. }))),
            "{odd:?}"
        );
        let refused = journal.store.create(&id(odd), TimeMs(1));
        assert!(
            matches!(refused, Err(JournalError::Store(StoreError::BadId { .. }))),
            "{odd:?}"
        );
    }
    let longest = "x".repeat(128);
    journal
        .store
        .import(&mut file.as_slice(), Some(&id(&longest)))
        .unwrap();
}

/// More than one batch, with bodies of their own place, and a bad line behind them.
#[tokio::test]
async fn a_long_file_is_imported_in_parts_and_whole_or_not_at_all() {
    let (from, to) = (journal(), journal());
    let session = from.store.create(&id("a"), TimeMs(1)).unwrap();
    let batch: Vec<_> = (0..2500).map(|n| said(&format!("{n}"))).collect();
    append(&session, Seq(0), batch).await.unwrap();
    append(&session, Seq(2500), vec![said(&"long ".repeat(10_000))])
        .await
        .unwrap();
    let file = exported(&from, "a");
    let spoilt = [&file[..], b"nonsense\n"].concat();
    let refused = to.store.import(&mut spoilt.as_slice(), None).unwrap_err();
    assert!(matches!(
        refused,
        JournalError::Store(StoreError::BadExport { line: 2503, .. })
    ));
    assert!(to.store.sessions(9).unwrap().is_empty());
    let left = rusqlite::Connection::open(to.store.path()).unwrap();
    let count = "SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM blobs)";
    let rows: i64 = left.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
    let imported = to.store.import(&mut file.as_slice(), None).unwrap();
    assert_eq!(imported.records, 2501);
    assert_eq!(exported(&to, "a"), file);
    let info = |journal: &Journal| journal.store.session(&id("a")).unwrap();
    let expected = rondo_journal::SessionInfo {
        imported: true,
        ..info(&from)
    };
    assert_eq!(info(&to), expected);
}

/// A process that was killed in an import leaves the row, and some of the records.
#[tokio::test]
async fn an_import_that_was_cut_off_is_no_session_and_is_begun_anew() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = exported(&from, "a");
    let cut_off = || {
        let journal = journal();
        journal.store.import(&mut file.as_slice(), None).unwrap();
        meddle(
            &journal,
            "UPDATE sessions SET epoch = 0, head_seq = 0, head_hash = zeroblob(32), open = 1;
             DELETE FROM records WHERE seq = 3",
        );
        journal
    };
    let again = cut_off();
    let gone = again.store.session(&id("a"));
    assert!(
        matches!(gone, Err(JournalError::Store(StoreError::Unknown { .. }))),
        "{gone:?}"
    );
    assert_eq!(again.store.sessions(9).unwrap(), []);
    let owned = again.store.own(&id("a"));
    assert!(matches!(
        owned,
        Err(JournalError::Store(StoreError::Unknown { .. }))
    ));
    assert!(again.store.load(&id("a")).is_err());
    again.store.import(&mut file.as_slice(), None).unwrap();
    assert_eq!(exported(&again, "a"), file);
    let other = cut_off();
    let owned = other.store.create(&id("a"), TimeMs(1)).unwrap();
    say(&owned, Seq(0), &["anew"]).await;
    assert_eq!(other.store.check(&id("a")).unwrap().sound, 1);
}

#[tokio::test]
async fn what_was_imported_is_marked_with_its_forks_and_is_never_the_latest() {
    let (from, to) = (journal(), journal());
    drop(three(&from, "a").await);
    let file = exported(&from, "a");
    to.store.import(&mut file.as_slice(), None).unwrap();
    to.store
        .fork(&id("a"), Seq(2), &id("f"), TimeMs(9_000))
        .unwrap();
    assert!(to.store.resolve("latest").is_err());
    assert_eq!(to.store.latest_in("").unwrap(), None);
    drop(three(&to, "own").await);
    say(&to.store.own(&id("a")).unwrap(), Seq(3), &["later"]).await;
    assert_eq!(to.store.resolve("latest").unwrap(), id("own"));
    let marks = ["a", "f", "own"].map(|name| to.store.session(&id(name)).unwrap().imported);
    assert_eq!(marks, [true, true, false]);
    // It can be named.
    assert_eq!(to.store.resolve("a").unwrap(), id("a"));
}

#[tokio::test]
async fn an_id_in_a_file_that_is_a_path_is_refused() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = String::from_utf8(exported(&from, "a")).unwrap();
    for odd in ["../../x", "/tmp/x", "..", "-c", "latest", "a b"] {
        let text = file.replace("\"id\":\"a\"", &format!("\"id\":\"{odd}\""));
        let to = journal();
        let refused = to.store.import(&mut text.as_bytes(), None);
        assert!(
            matches!(refused, Err(JournalError::Store(StoreError::BadId { .. }))),
            "{odd}"
        );
        assert!(
            ExportedSession::read(&mut text.as_bytes()).is_err(),
            "{odd}"
        );
        let named = to.store.import(&mut text.as_bytes(), Some(&id("b")));
        assert_eq!(named.unwrap().records, 3);
    }
}

#[tokio::test]
async fn an_end_that_is_not_the_announced_one_is_refused() {
    let from = journal();
    drop(three(&from, "a").await);
    let file = String::from_utf8(exported(&from, "a")).unwrap();
    let hash = from.store.read_all(&id("a")).unwrap()[1].hash.to_string();
    let last = from.store.read_all(&id("a")).unwrap()[2].hash.to_string();
    let header_of_two =
        file.replacen(&last, &hash, 1)
            .replacen("\"records\":3", "\"records\":2", 1);
    let another_end = file.replacen(&last, &hash, 1);
    for text in [header_of_two, another_end] {
        let refused = journal().store.import(&mut text.as_bytes(), None);
        assert!(matches!(
            refused,
            Err(JournalError::Store(StoreError::BadExport { .. }))
        ));
    }
    // Earlier files say neither.
    let old =
        file.replace(",\"records\":3", "")
            .replacen(&format!(",\"end_hash\":\"{last}\""), "", 1);
    let imported = journal().store.import(&mut old.as_bytes(), None).unwrap();
    assert_eq!((imported.records, imported.announced), (3, None));
}

#[tokio::test]
async fn a_damaged_session_is_not_exported() {
    let from = journal();
    drop(three(&from, "a").await);
    meddle(&from, "DELETE FROM records WHERE seq = 2");
    let mut file = Vec::new();
    let refused = from.store.export(&id("a"), &mut file);
    assert!(matches!(
        refused,
        Err(JournalError::Store(StoreError::Damaged { seq: 2, .. }))
    ));
    assert_eq!(file, b"");
}

#[tokio::test]
async fn a_time_that_cannot_be_kept_is_refused_at_an_import_and_bounded_at_an_append() {
    let journal = journal();
    let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    let mut late = said("late");
    late.at_ms = TimeMs(u64::MAX);
    append(&session, Seq(0), vec![late]).await.unwrap();
    assert_eq!(journal.store.check(&id("a")).unwrap().defect, None);
    let mut exported = Vec::new();
    journal.store.export(&id("a"), &mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    let kept = exported.replace("9223372036854775807", "9223372036854775808");
    assert_ne!(kept, exported);
    let refused = journal
        .store
        .import(&mut kept.as_bytes(), Some(&id("b")))
        .unwrap_err();
    assert!(
        refused.to_string().contains("its time is larger"),
        "{refused}"
    );
    let imported = journal
        .store
        .import(&mut exported.as_bytes(), Some(&id("b")));
    assert_eq!(imported.unwrap().records, 1);
    assert_eq!(journal.store.check(&id("b")).unwrap().defect, None);
}
