//! Checks: messages that wait for sessions.

use crate::engine::Engine;
use crate::samples::{accepted, all_said, answer, append, cancel, id, keys, message, row};
use rondo_core::ports::{
    Append, BODY_BYTES_MAX, CONTROLS_MAX, Fence, KEYS_REMEMBERED, MESSAGES_MAX, Mail, MailId,
    MailboxError, NAME_BYTES_MAX, NewMail, Pushed, Seq, WAITING_BYTES_MAX,
};
use rondo_types::{Commit, Message};
use std::sync::Arc;
use tokio::task::JoinSet;

/// How often a race is run.
const ROUNDS: u64 = 32;

/// Mail is listed whole, in order of arrival, and its sessions with it.
pub async fn mail_is_listed_as_it_was_submitted_in_order(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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
    let newest = mailbox.newest(&id("a")).await.unwrap();
    assert_eq!(newest, expected.last().map(|it| it.id));
    assert!(mailbox.withdraw(&id("a"), "3").await.unwrap());
    let newest = mailbox.newest(&id("a")).await.unwrap();
    assert_eq!(newest, expected.get(1).map(|it| it.id));
    assert_eq!(mailbox.newest(&id("c")).await.unwrap(), None);
}

/// A repeated submission is a duplicate, also after it was taken back.
pub async fn the_same_key_of_a_session_counts_once(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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

/// Of several that submit one key at once one is accepted.
pub async fn of_many_that_submit_one_key_one_is_accepted(engine: Box<dyn Engine>) {
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let mailbox = engine.mailbox();
        let mail = message("a", &(n % 2).to_string(), &n.to_string());
        tasks.spawn(async move { mailbox.push(mail).await.unwrap() });
    }
    let pushed = tasks.join_all().await;
    let is_new = |it: &&Pushed| matches!(it, Pushed::Accepted(_));
    assert_eq!(pushed.iter().filter(is_new).count(), 2);
    assert_eq!(keys(&*engine.mailbox(), "a").await.len(), 2);
}

/// Messages that wait can be changed, and all that waits taken back, once.
pub async fn what_waits_can_be_edited_and_taken_back(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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
    let edited = Mail {
        revision: 1,
        ..row(first, message("a", "1", "uno"))
    };
    let expected = [edited, row(second, message("a", "2", "two"))];
    assert_eq!(mailbox.revision(&session, "1").await.unwrap(), Some(1));
    assert_eq!(mailbox.revision(&session, "2").await.unwrap(), Some(0));
    assert_eq!(mailbox.revision(&session, "3").await.unwrap(), None);
    assert_eq!(mailbox.list(&id("a")).await.unwrap(), expected);
    let get = |key| mailbox.get(&session, key);
    assert_eq!(get("1").await.unwrap().as_ref(), expected.first());
    assert_eq!(get("3").await.unwrap(), None);
    assert_eq!(mailbox.get(&id("b"), "1").await.unwrap(), None);
    assert!(mailbox.withdraw(&id("a"), "1").await.unwrap());
    assert!(!edit("1", "due").await.unwrap());
    assert_eq!(keys(mailbox, "a").await, ["2"]);
}

/// A message that is changed and taken back at once is gone in the end, and was changed whole or not at all.
pub async fn of_an_edit_and_a_withdrawal_neither_is_half_done(engine: Box<dyn Engine>) {
    let (one, other) = (engine.mailbox(), engine.mailbox());
    for round in 0..ROUNDS {
        let key = round.to_string();
        accepted(&*one, message("a", &key, "before")).await;
        let edit = tokio::spawn({
            let (mailbox, key) = (Arc::clone(&one), key.clone());
            async move { mailbox.edit(&id("a"), &key, Message::user("after")).await }
        });
        let withdrawn = other.withdraw(&id("a"), &key).await;
        assert!(withdrawn.unwrap());
        edit.await.unwrap().unwrap();
        assert_eq!(keys(&*one, "a").await, [""; 0]);
        let edited = one.edit(&id("a"), &key, Message::user("late")).await;
        assert!(!edited.unwrap());
    }
}

/// A row that was edited since it was read stays with what it says now, and is done once that was read.
pub async fn what_is_edited_before_it_is_acknowledged_stays(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    let (mailbox, session) = (engine.mailbox(), id("a"));
    let mail = accepted(&*mailbox, message("a", "1", "one")).await;
    let edit = |text| mailbox.edit(&session, "1", Message::user(text));
    assert!(edit("uno").await.unwrap());
    for (at, revision, is_left) in [(0, 0, true), (1, 1, false)] {
        let fence = Fence {
            session: session.clone(),
            epoch: journal.epoch(),
        };
        let commit = Commit::of_unedited(mail, revision);
        let appended = journal.append(
            &fence,
            Append {
                expected: Seq(at),
                batch: all_said(["x"]),
                commit,
            },
        );
        appended.await.unwrap();
        let left = mailbox.get(&session, "1").await.unwrap();
        let said = Mail {
            revision: 1,
            ..row(mail, message("a", "1", "uno"))
        };
        assert_eq!(left, is_left.then_some(said));
    }
    assert!(!edit("due").await.unwrap());
}

/// An append that acknowledges what is taken back at the same time is made, and the row is gone once.
pub async fn what_is_withdrawn_while_it_is_acknowledged_is_gone_once(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    let mailbox = engine.mailbox();
    for round in 0..ROUNDS {
        let key = round.to_string();
        let mail = accepted(&*mailbox, message("a", &key, "x")).await;
        let appending = tokio::spawn({
            let journal = Arc::clone(&journal);
            async move { append(&*journal, round, all_said(["x"]), &[mail]).await }
        });
        mailbox.withdraw(&id("a"), &key).await.unwrap();
        appending.await.unwrap().unwrap();
        assert!(!mailbox.withdraw(&id("a"), &key).await.unwrap());
        let again = mailbox.push(message("a", &key, "x")).await.unwrap();
        assert_eq!(again, Pushed::Duplicate(mail));
    }
    assert_eq!(engine.recorded(&id("a")).await.len() as u64, ROUNDS);
}

/// As many messages wait as may; answers and cancellations have a bound of their own.
pub async fn a_session_holds_so_much_and_can_still_be_stopped(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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

/// Keys, actors, bodies and all bodies together have bounds.
pub async fn what_is_too_long_is_refused(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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

/// A session that is discarded has no mail and no keys left, and others have theirs.
pub async fn a_session_that_is_discarded_has_no_mail(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
    accepted(mailbox, message("a", "1", "x")).await;
    accepted(mailbox, message("a", "2", "x")).await;
    accepted(mailbox, message("b", "1", "x")).await;
    assert!(mailbox.withdraw(&id("a"), "2").await.unwrap());
    assert_eq!(mailbox.discard(&id("a")).await.unwrap(), 1);
    assert_eq!(mailbox.discard(&id("a")).await.unwrap(), 0);
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
    accepted(mailbox, message("a", "2", "x")).await;
}

/// The newest keys of what was taken are remembered, and no number is used again.
pub async fn the_latest_keys_are_remembered_and_numbers_are_never_used_twice(
    engine: Box<dyn Engine>,
) {
    let mailbox = &*engine.mailbox();
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

/// Watchers are told of each kind of change.
pub async fn changes_are_told(engine: Box<dyn Engine>) {
    let mailbox = &*engine.mailbox();
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
