//! Mailboxes in the journal's file. Common promises of all engines are checked in `conformance`.

use crate::support::{Journal, id, journal, meddle, said};
use rondo_conformance::samples::{accepted, message, row};
use rondo_core::Journal as _;
use rondo_core::ports::{Append, AppendError, Commit, Mailbox, MailboxError, Seq};
use rondo_journal::{Options, OwnedSession, Store};
use rondo_types::{Message, TimeMs};
use std::time::Duration;
use tempfile::TempDir;

async fn keys(mailbox: &dyn Mailbox, session: &str) -> Vec<String> {
    let mails = mailbox.list(&id(session)).await.unwrap();
    mails.into_iter().map(|mail| mail.key).collect()
}

#[tokio::test]
async fn mail_is_there_for_another_process_and_a_removed_session_has_none() {
    let Journal { store, dir } = journal();
    accepted(&store, message("new", "1", "before it began")).await;
    let session = store.create(&id("a"), TimeMs(1)).unwrap();
    let mail = accepted(&store, message("a", "1", "x")).await;
    let other = Store::open(dir.path(), Options::default()).unwrap();
    let listed = other.list(&id("a")).await.unwrap();
    assert_eq!(listed, [row(mail, message("a", "1", "x"))]);
    drop(session);
    store.remove(&id("a")).unwrap();
    assert_eq!(other.waiting().await.unwrap(), [id("new")]);
    accepted(&other, message("a", "1", "again")).await;
    assert_eq!(keys(&store, "a").await, ["1"]);
}

#[tokio::test]
async fn mail_waits_for_a_session_that_an_import_left_unfinished() {
    let journal = journal();
    accepted(&journal.store, message("a", "1", "x")).await;
    meddle(
        &journal,
        "INSERT INTO sessions (name, created_ms, updated_ms, epoch, head_seq, head_hash)
         VALUES ('a', 1, 1, 0, 0, x'00')",
    );
    let _session: OwnedSession = journal.store.create(&id("a"), TimeMs(1)).unwrap();
    assert_eq!(keys(&journal.store, "a").await, ["1"]);
}

#[tokio::test]
async fn mail_of_a_later_version_stays_and_damaged_mail_is_named() {
    let journal = journal();
    let store = &journal.store;
    accepted(store, message("a", "1", "x")).await;
    meddle(
        &journal,
        "INSERT INTO mail (session, key, kind, actor, at_ms, body)
         VALUES ('a', 'new', 'dream', '', 0, '{\"mail\":\"dream\"}'),
                ('b', 'new', 'dream', '', 0, '{\"mail\":\"dream\"}')",
    );
    assert_eq!(keys(store, "a").await, ["1"]);
    assert_eq!(store.waiting().await.unwrap(), [id("a")]);
    meddle(&journal, "UPDATE mail SET body = '{' WHERE key = '1'");
    let damaged = store.list(&id("a")).await.unwrap_err().to_string();
    let expected =
        "`1` in the mailbox of session `a` is damaged: its body cannot be read from column 1 on";
    assert_eq!(damaged, expected);
    for (n, body) in ["x'ff'", "7", "'\"a secret\"'"].into_iter().enumerate() {
        let damage = format!("UPDATE mail SET body = {body} WHERE key = '1'");
        meddle(&journal, &damage);
        let listed = store.list(&id("a")).await.unwrap_err();
        let session = store.create(&id(&n.to_string()), TimeMs(1)).unwrap();
        let (other, batch) = (id("a"), vec![said("x")]);
        // An append that shares the commit is not in its way.
        let (edited, appended) = tokio::join!(
            store.edit(&other, "1", Message::user("y")),
            session.append(session.fence(), Append::new(Seq(0), batch)),
        );
        assert_eq!(appended.unwrap(), Seq(1));
        for damaged in [listed, edited.unwrap_err()] {
            assert!(matches!(damaged, MailboxError::Damaged { .. }));
            assert!(!damaged.to_string().contains("secret"), "{damaged}");
        }
    }
    assert!(store.withdraw(&id("a"), "1").await.unwrap());
    assert_eq!(store.list(&id("a")).await.unwrap(), []);
}

#[tokio::test]
async fn a_store_from_before_there_were_mailboxes_gets_one() {
    let Journal { dir, store } = journal();
    drop(store.create(&id("a"), TimeMs(1)).unwrap());
    let path = store.path();
    drop(store);
    let before = rusqlite::Connection::open(path).unwrap();
    let drop_all = "DROP TRIGGER mail_of_removed; DROP TABLE mail";
    before.execute_batch(drop_all).unwrap();
    drop(before);
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(store.waiting().await.unwrap(), []);
    accepted(&store, message("a", "1", "x")).await;
    assert_eq!(store.sessions(9).unwrap().len(), 1);
}

#[tokio::test]
async fn a_lock_that_is_held_elsewhere_is_waited_for_and_nothing_is_lost_by_it() {
    let dir = TempDir::new().unwrap();
    let options = Options {
        busy_timeout: Duration::from_millis(20),
        ..Options::default()
    };
    let store = Store::open(dir.path(), options).unwrap();
    let session = store.create(&id("a"), TimeMs(1)).unwrap();
    let first = accepted(&store, message("a", "1", "x")).await;
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.push(message("a", "2", "x")).await;
    assert!(matches!(refused, Err(MailboxError::Io(_))), "{refused:?}");
    let refused = store.edit(&id("a"), "1", Message::user("y")).await;
    assert!(matches!(refused, Err(MailboxError::Io(_))), "{refused:?}");
    let refused = store.withdraw(&id("a"), "1").await;
    assert!(matches!(refused, Err(MailboxError::Io(_))), "{refused:?}");
    let fence = session.fence();
    let append = || {
        session.append(
            fence,
            Append {
                expected: Seq(0),
                batch: vec![said("x")],
                commit: Commit::of(first),
            },
        )
    };
    let refused = append().await;
    assert!(matches!(refused, Err(AppendError::Io(_))), "{refused:?}");
    let listed = store.list(&id("a")).await.unwrap();
    assert_eq!(listed, [row(first, message("a", "1", "x"))]);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(append().await.unwrap(), Seq(1));
    accepted(&store, message("a", "2", "x")).await;
    assert_eq!(keys(&store, "a").await, ["2"]);
}
