//! What waits for sessions, in the journal's file. What all engines have in common is checked in `conformance`.

use crate::support::{Journal, id, journal, meddle};
use rondo_core::ports::{Mail, MailBody, MailId, Mailbox, NewMail, Pushed};
use rondo_core::session::Delivery;
use rondo_journal::{Options, OwnedSession, Store};
use rondo_types::{Message, TimeMs};

fn message(session: &str, key: &str, text: &str) -> NewMail {
    NewMail {
        session: id(session),
        key: key.to_owned(),
        actor: "ann".to_owned(),
        at_ms: TimeMs(5),
        body: MailBody::Message {
            message: Message::user(text),
            delivery: Delivery::Steer,
        },
    }
}

fn row(id: MailId, mail: NewMail) -> Mail {
    Mail {
        id,
        session: mail.session,
        key: mail.key,
        actor: mail.actor,
        at_ms: mail.at_ms,
        body: mail.body,
    }
}

async fn accepted(mailbox: &dyn Mailbox, mail: NewMail) -> MailId {
    match mailbox.push(mail).await.unwrap() {
        Pushed::Accepted(id) => id,
        Pushed::Duplicate(id) => panic!("it was taken for {id}"),
    }
}

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
    let expected = "`1` in the mailbox of session `a` is damaged: its body cannot be read:";
    assert!(damaged.starts_with(expected), "{damaged}");
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
