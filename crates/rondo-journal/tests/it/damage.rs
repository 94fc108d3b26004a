use crate::support::{Journal, id, journal, meddle, say, three};
use rondo_core::ports::Seq;
use rondo_journal::Report;
use rondo_types::TimeMs;
use rusqlite::types::Value;

fn check(journal: &Journal, name: &str) -> Report {
    journal.store.check(&id(name)).unwrap()
}

#[tokio::test]
async fn each_kind_of_damage_is_found_at_its_record() {
    let kinds = [
        (
            "UPDATE records SET body = replace(body, 'two', '2') WHERE seq = 2",
            2,
            "changed",
        ),
        ("UPDATE records SET at_ms = 5 WHERE seq = 2", 2, "changed"),
        (
            "UPDATE records SET hash = zeroblob(32) WHERE seq = 3",
            3,
            "changed",
        ),
        (
            "UPDATE records SET hash = x'00' WHERE seq = 3",
            3,
            "malformed",
        ),
        ("DELETE FROM records WHERE seq = 2", 2, "not there"),
        ("DELETE FROM records WHERE seq = 3", 3, "not there"),
        ("UPDATE records SET body = NULL WHERE seq = 1", 1, "no body"),
        (
            "UPDATE sessions SET head_hash = zeroblob(32)",
            3,
            "ends with",
        ),
    ];
    for (sql, seq, reason) in kinds {
        let journal = journal();
        drop(three(&journal, "a").await);
        drop(three(&journal, "b").await);
        meddle(
            &journal,
            &format!(
                "{sql}{}",
                if sql.contains("WHERE") {
                    " AND session = 1"
                } else {
                    " WHERE id = 1"
                }
            ),
        );
        let defect = check(&journal, "a").defect.unwrap();
        assert_eq!(defect.seq, Seq(seq), "{sql}: {}", defect.reason);
        assert!(defect.reason.contains(reason), "{sql}: {}", defect.reason);
        assert_eq!(
            check(&journal, "b").defect,
            None,
            "one bad session stops no other"
        );
    }
}

#[tokio::test]
async fn a_repair_keeps_what_is_sound_and_saves_the_rest() {
    let journal = journal();
    drop(three(&journal, "a").await);
    meddle(
        &journal,
        "UPDATE records SET body = replace(body, 'two', '2') WHERE seq = 2",
    );
    let report = journal.store.repair(&id("a")).unwrap();
    assert_eq!(report.sound, 1);
    let saved = report.cut[0].saved.clone().unwrap();
    let saved = std::fs::read_to_string(saved).unwrap();
    assert_eq!(saved.lines().count(), 2);
    assert!(saved.contains("three"));
    assert_eq!(check(&journal, "a").defect, None);
    say(&journal.store.own(&id("a")).unwrap(), Seq(1), &["again"]).await;
    assert_eq!(check(&journal, "a").sound, 2);
}

#[tokio::test]
async fn a_session_that_is_sound_is_left_alone() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let report = journal.store.repair(&id("a")).unwrap();
    assert_eq!((report.sound, report.mended, report.cut), (3, 0, vec![]));
}

#[tokio::test]
async fn a_fork_at_its_own_first_record_is_repaired_back_to_the_fork() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    store.fork(&id("a"), Seq(2), &id("b"), TimeMs(1)).unwrap();
    say(&store.own(&id("b")).unwrap(), Seq(2), &["left"]).await;
    meddle(&journal, "UPDATE records SET step = 9 WHERE session = 2");
    assert_eq!(store.repair(&id("b")).unwrap().sound, 2);
    assert_eq!(check(&journal, "b").defect, None);
    assert_eq!(check(&journal, "a").defect, None);
}

#[tokio::test]
async fn damage_before_a_fork_is_the_parents_to_repair() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    store.fork(&id("a"), Seq(2), &id("b"), TimeMs(1)).unwrap();
    meddle(&journal, "UPDATE records SET step = 9 WHERE seq = 1");
    let refused = store.repair(&id("b")).unwrap_err().to_string();
    assert!(refused.contains("its parent's"), "{refused}");
}

#[tokio::test]
async fn a_changed_shared_body_is_restored_by_the_next_record_that_holds_it() {
    let journal = journal();
    let large = "shared ".repeat(2_400);
    for name in ["a", "b"] {
        let session = journal.store.create(&id(name), TimeMs(1)).unwrap();
        say(&session, Seq(0), &[&large]).await;
    }
    // Two bits, so that nothing but the same body restores it.
    let changes = [
        "replace(body, 'shared', 'rashed')",
        "CAST(replace(body, 'shared', 'rashed') AS BLOB)",
        "substr(body, 2)",
    ];
    for (number, change) in changes.into_iter().enumerate() {
        meddle(&journal, &format!("UPDATE blobs SET body = {change}"));
        let report = journal.store.repair(&id("a")).unwrap();
        assert_eq!((report.sound, report.cut), (0, Vec::new()), "{change}");
        let reason = report.defect.unwrap().reason;
        assert!(reason.contains("restores it"), "{reason}");
        let next = format!("c{number}");
        let session = journal.store.create(&id(&next), TimeMs(1)).unwrap();
        say(&session, Seq(0), &[&large]).await;
        for name in ["a", "b", &next] {
            assert_eq!(check(&journal, name).defect, None, "{change}: {name}");
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_is_restored_wherever_it_is_in_a_record() {
    let flips = [
        ("records", "body", 60),
        ("records", "turn", 0),
        ("records", "hash", 31),
        ("records", "at_ms", 0),
        ("records", "step", 0),
        ("records", "epoch", 0),
        ("records", "version", 0),
        ("records", "blob", 3),
        ("blobs", "body", 18_000),
        ("blobs", "sha256", 3),
        ("sessions", "head_hash", 8),
        ("sessions", "head_seq", 0),
    ];
    for (table, column, byte) in flips {
        for bit in [0, 3, 7] {
            let journal = journal();
            let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
            say(&session, Seq(0), &["one", &"large".repeat(4_000), "three"]).await;
            drop(session);
            flip(&journal, (table, column, byte), bit);
            let at = format!("{table}.{column} {byte}/{bit}");
            assert_ne!(check(&journal, "a").defect, None, "{at}");
            let report = journal.store.repair(&id("a")).unwrap();
            assert_eq!(
                (report.sound, report.defect, report.cut),
                (3, None, Vec::new()),
                "{at}"
            );
            assert_eq!(report.mended, 1, "{at}");
            assert_eq!(check(&journal, "a").defect, None, "{at}");
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_of_a_text_of_any_length_is_restored() {
    let large = "A text of some length. ".repeat(100_000);
    for (byte, bit) in [(0, 0), (9, 6), (1_234_567, 3), (2_299_999, 7)] {
        let journal = journal();
        let session = journal.store.create(&id("a"), TimeMs(1)).unwrap();
        say(&session, Seq(0), &[&large]).await;
        drop(session);
        flip(&journal, ("blobs", "body", byte), bit);
        let report = journal.store.repair(&id("a")).unwrap();
        assert_eq!((report.sound, report.mended), (1, 1), "{byte}/{bit}");
        assert_eq!(check(&journal, "a").defect, None, "{byte}/{bit}");
    }
}

/// Flips a bit of a column in the first row that has it.
fn flip(journal: &Journal, (table, column, byte): (&str, &str, usize), bit: u32) {
    let connection = rusqlite::Connection::open(journal.store.path()).unwrap();
    let find = format!("SELECT {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 1");
    let value = connection
        .query_row(&find, [], |row| row.get::<_, Value>(0))
        .unwrap();
    let flipped = |mut bytes: Vec<u8>| {
        *bytes.get_mut(byte).unwrap() ^= 1 << bit;
        Value::Blob(bytes)
    };
    let (changed, kind) = match value {
        // Most numbers have the width of a byte.
        Value::Integer(number) if column != "at_ms" => (
            Value::Integer(i64::from(number as i8 ^ (1_i8 << bit))),
            "INTEGER",
        ),
        Value::Integer(number) => (Value::Integer(number ^ (1 << bit)), "INTEGER"),
        Value::Text(text) => (flipped(text.into_bytes()), "TEXT"),
        Value::Blob(bytes) => (flipped(bytes), "BLOB"),
        other => panic!("{other:?}"),
    };
    let set = format!("UPDATE {table} SET {column} = CAST(?1 AS {kind}) WHERE {column} = ?2");
    let before = connection
        .query_row(&find, [], |row| row.get::<_, Value>(0))
        .unwrap();
    let seq = if table == "records" {
        " AND seq = (SELECT min(seq) FROM records WHERE {column} IS NOT NULL)"
    } else {
        ""
    };
    let set = set + &seq.replace("{column}", column);
    assert_eq!(connection.execute(&set, (changed, before)).unwrap(), 1);
}

#[tokio::test]
async fn forks_of_a_repaired_parent_go_on_from_its_last_sound_record() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    for (parent, at, fork) in [("a", 1, "early"), ("a", 3, "late"), ("late", 4, "later")] {
        store
            .fork(&id(parent), Seq(at), &id(fork), TimeMs(1))
            .unwrap();
        say(&store.own(&id(fork)).unwrap(), Seq(at), &["left"]).await;
    }
    meddle(
        &journal,
        "UPDATE records SET body = replace(body, 'two', '2') WHERE session = 1 AND seq = 2",
    );
    let report = store.repair(&id("a")).unwrap();
    let cut: Vec<_> = report.cut.iter().map(|it| it.session.to_string()).collect();
    assert_eq!(cut, ["later", "late", "a"]);
    let saved = report.cut.iter().map(|it| it.saved.clone().unwrap());
    let lines = saved.map(|it| std::fs::read_to_string(it).unwrap().lines().count());
    assert_eq!(lines.collect::<Vec<_>>(), [1, 1, 2]);
    say(
        &store.own(&id("a")).unwrap(),
        Seq(1),
        &["two again", "three", "four"],
    )
    .await;
    for (name, sound, is_cut) in [
        ("a", 4, true),
        ("early", 2, false),
        ("late", 1, true),
        ("later", 1, true),
    ] {
        let report = check(&journal, name);
        assert_eq!((report.sound, report.defect), (sound, None), "{name}");
        let info = store.session(&id(name)).unwrap();
        assert_eq!(info.lost_end, is_cut && name != "a", "{name}");
    }
    say(&store.own(&id("later")).unwrap(), Seq(1), &["goes on"]).await;
    assert_eq!(check(&journal, "later").sound, 2);
}

#[tokio::test]
async fn a_repair_cuts_nothing_while_a_fork_that_shares_the_damage_is_in_use() {
    let journal = journal();
    drop(three(&journal, "a").await);
    let store = &journal.store;
    store.fork(&id("a"), Seq(3), &id("b"), TimeMs(1)).unwrap();
    let used = store.own(&id("b")).unwrap();
    meddle(
        &journal,
        "UPDATE records SET body = replace(body, 'two', '2') WHERE seq = 2",
    );
    let refused = store.repair(&id("a")).unwrap_err().to_string();
    assert!(refused.contains("`b` is in use"), "{refused}");
    drop(used);
    assert_eq!(store.repair(&id("a")).unwrap().cut.len(), 2);
}
