use crate::support::{Journal, id, journal, meddle, say, three};
use rondo_core::ports::Seq;
use rondo_journal::Report;
use rondo_types::TimeMs;

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
            "no hash",
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
    let saved = std::fs::read_to_string(report.saved.unwrap()).unwrap();
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
    assert_eq!((report.sound, report.saved), (3, None));
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
