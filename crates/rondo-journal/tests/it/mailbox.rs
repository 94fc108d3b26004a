//! What waits for sessions: each engine runs the same checks, then the file's own.

use crate::support::{Journal, id, journal, meddle, said};
use rondo_core::Journal as _;
use rondo_core::ports::{
    AppendError, BODY_BYTES_MAX, CONTROLS_MAX, Commit, Fence, KEYS_REMEMBERED, MESSAGES_MAX, Mail,
    MailBody, MailId, Mailbox, MailboxError, MemoryJournal, MemoryMailbox, NAME_BYTES_MAX, NewMail,
    NoJournal, Pushed, Seq, WAITING_BYTES_MAX,
};
use rondo_core::session::{Answer, AnswerValue, Delivery, QuestionId};
use rondo_journal::{Options, OwnedSession, Store};
use rondo_types::{Message, TimeMs};
use std::sync::Arc;

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

fn cancel(session: &str, key: &str) -> NewMail {
    NewMail {
        body: MailBody::Cancel,
        ..message(session, key, "")
    }
}

fn answer(session: &str, key: &str) -> NewMail {
    let answer = Answer {
        question: QuestionId("q".to_owned()),
        hash: "00".to_owned(),
        actor: "ann".to_owned(),
        value: AnswerValue::Approve,
    };
    NewMail {
        body: MailBody::Answer { answer },
        ..message(session, key, "")
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

async fn mail_is_listed_as_it_was_submitted_in_order(mailbox: &dyn Mailbox) {
    let mut expected = Vec::new();
    for mail in [message("a", "1", "x"), answer("a", "2"), cancel("a", "3")] {
        let id = accepted(mailbox, mail.clone()).await;
        expected.push(row(id, mail));
        accepted(mailbox, message("b", &id.to_string(), "y")).await;
    }
    assert!(expected.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(mailbox.list(&id("a")).await.unwrap(), expected);
    assert_eq!(mailbox.waiting().await.unwrap(), [id("a"), id("b")]);
    assert_eq!(mailbox.list(&id("c")).await.unwrap(), []);
}

async fn the_same_key_of_a_session_counts_once(mailbox: &dyn Mailbox) {
    let first = accepted(mailbox, message("a", "k", "one")).await;
    let again = mailbox.push(message("a", "k", "other")).await.unwrap();
    assert_eq!(again, Pushed::Duplicate(first));
    let elsewhere = accepted(mailbox, message("b", "k", "one")).await;
    assert_ne!(elsewhere, first);
    let listed = mailbox.list(&id("a")).await.unwrap();
    assert_eq!(listed, [row(first, message("a", "k", "one"))]);
    assert!(mailbox.withdraw(&id("a"), "k").await.unwrap());
    let again = mailbox.push(message("a", "k", "one")).await.unwrap();
    assert_eq!(again, Pushed::Duplicate(first));
    assert_eq!(keys(mailbox, "a").await, [""; 0]);
}

async fn what_waits_can_be_edited_and_taken_back(mailbox: &dyn Mailbox) {
    let first = accepted(mailbox, message("a", "1", "one")).await;
    let second = accepted(mailbox, message("a", "2", "two")).await;
    accepted(mailbox, answer("a", "3")).await;
    let session = id("a");
    let edit = |key, text| mailbox.edit(&session, key, Message::user(text));
    assert!(edit("1", "uno").await.unwrap());
    assert!(!edit("3", "tre").await.unwrap(), "it is an answer");
    assert!(!edit("4", "none").await.unwrap());
    assert!(mailbox.withdraw(&id("a"), "3").await.unwrap());
    assert!(!mailbox.withdraw(&id("a"), "3").await.unwrap());
    assert!(!mailbox.withdraw(&id("b"), "1").await.unwrap());
    let expected = [
        row(first, message("a", "1", "uno")),
        row(second, message("a", "2", "two")),
    ];
    assert_eq!(mailbox.list(&id("a")).await.unwrap(), expected);
    assert!(mailbox.withdraw(&id("a"), "1").await.unwrap());
    assert!(!edit("1", "due").await.unwrap());
    assert_eq!(keys(mailbox, "a").await, ["2"]);
}

async fn a_session_holds_so_much_and_can_still_be_stopped(mailbox: &dyn Mailbox) {
    for n in 0..MESSAGES_MAX {
        accepted(mailbox, message("a", &n.to_string(), "x")).await;
    }
    let full = mailbox.push(message("a", "more", "x")).await;
    assert!(matches!(full, Err(MailboxError::TooMany { max }) if max == MESSAGES_MAX));
    let again = mailbox.push(message("a", "0", "x")).await.unwrap();
    assert!(matches!(again, Pushed::Duplicate(_)));
    for n in 0..CONTROLS_MAX {
        accepted(mailbox, cancel("a", &format!("c{n}"))).await;
    }
    let full = mailbox.push(answer("a", "more")).await;
    assert!(matches!(full, Err(MailboxError::TooMany { max }) if max == CONTROLS_MAX));
    accepted(mailbox, message("b", "0", "x")).await;
    assert!(mailbox.withdraw(&id("a"), "7").await.unwrap());
    accepted(mailbox, message("a", "more", "x")).await;
}

async fn what_is_too_long_is_refused(mailbox: &dyn Mailbox) {
    let too_long = |it: Result<Pushed, _>, part| matches!(it, Err(MailboxError::TooLong { what, .. }) if what == part);
    let long = "k".repeat(NAME_BYTES_MAX + 1);
    assert!(too_long(mailbox.push(cancel("a", &long)).await, "key"));
    let named = NewMail {
        actor: long,
        ..cancel("a", "k")
    };
    assert!(too_long(mailbox.push(named).await, "actor"));
    let empty = mailbox.push(cancel("a", "")).await;
    assert!(matches!(empty, Err(MailboxError::NoKey)));
    let text = "x".repeat(BODY_BYTES_MAX);
    assert!(too_long(
        mailbox.push(message("a", "k", &text)).await,
        "body"
    ));
    let nearly = &text[..BODY_BYTES_MAX - 1000];
    let fit = WAITING_BYTES_MAX / BODY_BYTES_MAX;
    for n in 0..fit {
        accepted(mailbox, message("a", &n.to_string(), nearly)).await;
    }
    accepted(mailbox, message("a", "small", "x")).await;
    let refused = mailbox.push(message("a", "large", nearly)).await;
    assert!(matches!(refused, Err(MailboxError::TooMuch { max }) if max == WAITING_BYTES_MAX));
    let edited = mailbox.edit(&id("a"), "small", Message::user(nearly)).await;
    assert!(matches!(edited, Err(MailboxError::TooMuch { .. })));
    let edited = mailbox.edit(&id("a"), "0", Message::user(nearly)).await;
    assert!(edited.unwrap());
    let edited = mailbox.edit(&id("a"), "0", Message::user(text)).await;
    assert!(matches!(
        edited,
        Err(MailboxError::TooLong { what: "body", .. })
    ));
}

async fn a_session_that_is_discarded_has_no_mail(mailbox: &dyn Mailbox) {
    accepted(mailbox, message("a", "1", "x")).await;
    accepted(mailbox, message("a", "2", "x")).await;
    accepted(mailbox, message("b", "1", "x")).await;
    assert!(mailbox.withdraw(&id("a"), "2").await.unwrap());
    assert_eq!(mailbox.discard(&id("a")).await.unwrap(), 1);
    assert_eq!(mailbox.discard(&id("a")).await.unwrap(), 0);
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
    accepted(mailbox, message("a", "2", "x")).await;
}

async fn changes_are_told(mailbox: &dyn Mailbox) {
    let mut changed = mailbox.changed();
    assert!(!changed.has_changed().unwrap());
    accepted(mailbox, message("a", "1", "x")).await;
    assert!(changed.has_changed().unwrap());
    changed.mark_unchanged();
    let edited = mailbox.edit(&id("a"), "1", Message::user("y")).await;
    assert!(edited.unwrap() && changed.has_changed().unwrap());
    changed.mark_unchanged();
    assert!(mailbox.withdraw(&id("a"), "1").await.unwrap());
    assert!(changed.has_changed().unwrap());
}

async fn of_many_that_submit_one_key_one_is_accepted(mailbox: Arc<dyn Mailbox>) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..16 {
        let mailbox = Arc::clone(&mailbox);
        let mail = message("a", &(n % 2).to_string(), &n.to_string());
        tasks.spawn(async move { mailbox.push(mail).await.unwrap() });
    }
    let pushed = tasks.join_all().await;
    let is_new = |it: &&Pushed| matches!(it, Pushed::Accepted(_));
    assert_eq!(pushed.iter().filter(is_new).count(), 2);
    assert_eq!(keys(mailbox.as_ref(), "a").await.len(), 2);
}

async fn all(new: impl Fn() -> Arc<dyn Mailbox>) {
    mail_is_listed_as_it_was_submitted_in_order(new().as_ref()).await;
    the_same_key_of_a_session_counts_once(new().as_ref()).await;
    what_waits_can_be_edited_and_taken_back(new().as_ref()).await;
    a_session_holds_so_much_and_can_still_be_stopped(new().as_ref()).await;
    what_is_too_long_is_refused(new().as_ref()).await;
    a_session_that_is_discarded_has_no_mail(new().as_ref()).await;
    changes_are_told(new().as_ref()).await;
    of_many_that_submit_one_key_one_is_accepted(new()).await;
}

#[tokio::test]
async fn memory_is_a_mailbox() {
    all(|| Arc::new(MemoryMailbox::default())).await;
}

#[tokio::test]
async fn sqlite_is_a_mailbox() {
    let dirs = std::sync::Mutex::new(Vec::new());
    all(|| {
        let Journal { dir, store } = journal();
        dirs.lock().unwrap().push(dir);
        Arc::new(store)
    })
    .await;
}

async fn records_and_acknowledged_mail_share_a_fate(
    mailbox: &dyn Mailbox,
    journal: &dyn rondo_core::Journal,
    keeps_records: bool,
) {
    let fence = Fence {
        session: id("a"),
        epoch: journal.epoch(),
    };
    let one = accepted(mailbox, message("a", "1", "x")).await;
    let two = accepted(mailbox, message("a", "2", "x")).await;
    let other = accepted(mailbox, message("b", "1", "x")).await;
    let refused = journal
        .append(&fence, Seq(7), vec![said("x")], Commit::of(one))
        .await;
    assert!(matches!(refused, Err(AppendError::Conflict { .. })));
    assert_eq!(keys(mailbox, "a").await, ["1", "2"]);
    if keeps_records {
        let stale = Fence {
            epoch: fence.epoch + 1,
            ..fence.clone()
        };
        let refused = journal
            .append(&stale, Seq(0), vec![said("x")], Commit::of(one))
            .await;
        assert!(matches!(refused, Err(AppendError::Fenced { .. })));
        assert_eq!(keys(mailbox, "a").await, ["1", "2"]);
    }
    let changed = mailbox.changed();
    let appended = journal
        .append(&fence, Seq(0), vec![said("x")], Commit::of(one))
        .await;
    assert_eq!(appended.unwrap(), Seq(1));
    assert!(changed.has_changed().unwrap());
    assert_eq!(keys(mailbox, "a").await, ["2"]);
    // Neither what is gone nor what is another session's is in the way of the records, and no record is needed.
    let ack = vec![one, other, MailId(99)];
    let appended = journal
        .append(&fence, Seq(1), vec![said("y")], Commit { ack })
        .await;
    assert_eq!(appended.unwrap(), Seq(2));
    let appended = journal
        .append(&fence, Seq(2), Vec::new(), Commit::of(two))
        .await;
    assert_eq!(appended.unwrap(), Seq(2));
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
    assert!(!mailbox.withdraw(&id("a"), "1").await.unwrap());
    let again = mailbox.push(message("a", "1", "x")).await.unwrap();
    assert_eq!(again, Pushed::Duplicate(one));
}

#[tokio::test]
async fn memory_acknowledges_mail_with_its_records() {
    let mailbox = MemoryMailbox::default();
    let journal = MemoryJournal::default().with_mailbox(mailbox.clone());
    records_and_acknowledged_mail_share_a_fate(&mailbox, &journal, true).await;
    let next = journal.taken_over();
    let three = accepted(&mailbox, message("a", "3", "x")).await;
    let fence = Fence {
        session: id("a"),
        epoch: next.epoch(),
    };
    next.append(&fence, Seq(2), Vec::new(), Commit::of(three))
        .await
        .unwrap();
    assert_eq!(keys(&mailbox, "a").await, [""; 0]);

    let mailbox = MemoryMailbox::default();
    let journal = NoJournal::with_mailbox(mailbox.clone());
    records_and_acknowledged_mail_share_a_fate(&mailbox, &journal, false).await;
}

#[tokio::test]
async fn sqlite_acknowledges_mail_with_its_records() {
    let Journal { store, dir } = journal();
    let session = store.create(&id("a"), TimeMs(1)).unwrap();
    records_and_acknowledged_mail_share_a_fate(&store, &session, true).await;
    drop((session, store));
    let again = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(again.waiting().await.unwrap(), [id("b")]);
    let pushed = again.push(message("a", "1", "x")).await.unwrap();
    assert!(matches!(pushed, Pushed::Duplicate(_)), "{pushed:?}");
}

#[tokio::test]
async fn the_latest_keys_are_remembered_and_numbers_are_never_used_twice() {
    let Journal { store, dir: _dir } = journal();
    let memory = MemoryMailbox::default();
    for mailbox in [&store as &dyn Mailbox, &memory] {
        let mut last = MailId(0);
        for n in 0..=KEYS_REMEMBERED {
            last = accepted(mailbox, cancel("a", &n.to_string())).await;
            let withdrawn = mailbox.withdraw(&id("a"), &n.to_string()).await;
            assert!(withdrawn.unwrap());
        }
        let newest = mailbox.push(cancel("a", "1")).await.unwrap();
        assert!(matches!(newest, Pushed::Duplicate(_)));
        assert!(accepted(mailbox, cancel("a", "0")).await > last);
        assert_eq!(mailbox.discard(&id("a")).await.unwrap(), 1);
        assert!(accepted(mailbox, cancel("a", "2")).await > last);
    }
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
