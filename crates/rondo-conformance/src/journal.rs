//! Checks: appends, fences, and mail that is acknowledged with records.

use crate::engine::Engine;
use crate::samples::{accepted, all_said, append, append_to, id, keys, message, said};
use rondo_core::Journal;
use rondo_core::ports::{AppendError, Head, MailId, Mailbox, Pushed, Seq};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Owners that append at once.
const SESSIONS: u32 = 64;
/// Batches that each of them appends.
const BATCHES: u64 = 5;

/// Records are dense and in order, and an empty append changes nothing.
pub async fn records_are_kept_in_order(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    assert!(journal.keeps_records());
    assert_eq!(journal.at(), Seq(0));
    let at = append(&*journal, 0, Vec::new(), &[]).await;
    assert_eq!(at.unwrap(), Seq(0));
    let at = append(&*journal, 0, all_said(["one", "two"]), &[]).await;
    assert_eq!(at.unwrap(), Seq(2));
    let at = append(&*journal, 2, all_said(["three"]), &[]).await;
    assert_eq!((at.unwrap(), journal.at()), (Seq(3), Seq(3)));
    let expected = all_said(["one", "two", "three"]);
    assert_eq!(engine.recorded(&id("a")).await, expected);
}

/// A batch at another place than its writer expects is refused with the place where the journal is.
pub async fn another_place_is_refused_whole(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    append(&*journal, 0, all_said(["one"]), &[]).await.unwrap();
    for wrong in [0, 2, 9] {
        let refused = append(&*journal, wrong, all_said(["x", "y"]), &[]).await;
        assert!(matches!(
            refused,
            Err(AppendError::Conflict { expected, actual: Seq(1) }) if expected == Seq(wrong)
        ));
    }
    assert_eq!(journal.at(), Seq(1));
    assert_eq!(engine.recorded(&id("a")).await, all_said(["one"]));
}

/// An owner that was replaced can append no more, and its token fires then at the latest.
pub async fn an_owner_that_was_replaced_is_fenced_and_told(engine: Box<dyn Engine>) {
    let first = engine.begin(&id("a")).await;
    let lost = first.lost();
    append(&*first, 0, all_said(["one"]), &[]).await.unwrap();
    assert!(!lost.is_cancelled());
    let Some(second) = engine.take_over(&id("a")).await else {
        return;
    };
    assert!(second.epoch() > first.epoch());
    assert_eq!(second.at(), Seq(1));
    let late = append(&*first, 1, all_said(["late"]), &[]).await;
    assert!(matches!(late, Err(AppendError::Fenced { session }) if session == id("a")));
    assert!(lost.is_cancelled() && first.lost().is_cancelled());
    assert!(!second.lost().is_cancelled());
    append(&*second, 1, all_said(["two"]), &[]).await.unwrap();
    assert_eq!(engine.recorded(&id("a")).await, all_said(["one", "two"]));
}

/// Of several appends that expect the same place one is made.
pub async fn of_writers_at_the_same_place_one_wins(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let journal = Arc::clone(&journal);
        writers.spawn(async move {
            let batch = vec![said(&n.to_string())];
            append(&*journal, 0, batch, &[]).await.is_ok()
        });
    }
    let won = writers.join_all().await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    assert_eq!(engine.recorded(&id("a")).await.len(), 1);
}

/// Sessions do not disturb each other, and each keeps the order of its own.
pub async fn sessions_that_append_at_once_stay_dense(engine: Box<dyn Engine>) {
    let mut writers = JoinSet::new();
    for n in 0..SESSIONS {
        let name = format!("s{n}");
        let journal = engine.begin(&id(&name)).await;
        writers.spawn(async move {
            for at in 0..BATCHES {
                let batch = vec![said(&format!("{name} {at}"))];
                let appended = append_to(&name, &*journal, at, batch, &[]).await;
                assert_eq!(appended.unwrap(), Seq(at + 1));
            }
        });
    }
    writers.join_all().await;
    for n in 0..SESSIONS {
        let said = |at| said(&format!("s{n} {at}"));
        let expected: Vec<_> = (0..BATCHES).map(said).collect();
        assert_eq!(engine.recorded(&id(&format!("s{n}"))).await, expected);
    }
}

/// A reader sees all of a batch or nothing of it.
pub async fn a_batch_is_there_whole_or_not_at_all(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    let batch = all_said(["1", "2", "3", "4", "5", "6", "7"]);
    let whole = batch.len();
    let writer = tokio::spawn(async move {
        for n in 0..16 {
            let at = n * batch.len() as u64;
            append(&*journal, at, batch.clone(), &[]).await.unwrap();
        }
    });
    let mut seen = BTreeSet::new();
    while !writer.is_finished() {
        seen.insert(engine.recorded(&id("a")).await.len() % whole);
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    seen.insert(engine.recorded(&id("a")).await.len() % whole);
    assert_eq!(seen, BTreeSet::from([0]));
}

/// A journal without room says so, and neither loses a record nor a row.
pub async fn a_full_journal_refuses_and_keeps_what_it_has(engine: Box<dyn Engine>) {
    let Some(journal) = engine.full(&id("a")).await else {
        return;
    };
    let (mailbox, before) = (engine.mailbox(), engine.recorded(&id("a")).await.len());
    let mail = accepted(&*mailbox, message("a", "1", "x")).await;
    let at = journal.at();
    let refused = append(&*journal, at.0, all_said(["one more"]), &[mail]).await;
    assert!(matches!(refused, Err(AppendError::Full)));
    assert_eq!(engine.recorded(&id("a")).await.len(), before);
    assert_eq!(keys(&*mailbox, "a").await, ["1"]);
}

/// The head names the last record, and its hash differs by every record before it.
pub async fn the_head_covers_all_records(engine: Box<dyn Engine>) {
    let mut heads = Vec::new();
    for (name, texts) in [("a", ["one", "two"]), ("b", ["other", "two"])] {
        let journal = engine.begin(&id(name)).await;
        assert_eq!(journal.head().await.unwrap(), Head::default());
        for (at, text) in (0..).zip(texts) {
            let batch = vec![said(text)];
            append_to(name, &*journal, at, batch, &[]).await.unwrap();
            let head = journal.head().await.unwrap();
            assert_eq!((head.seq, journal.at()), (Seq(at + 1), Seq(at + 1)));
            heads.push(head.hash);
        }
        let refused = append_to(name, &*journal, 7, vec![said("x")], &[]).await;
        assert!(refused.is_err());
        let head = journal.head().await.unwrap();
        assert_eq!(Some(&head.hash), heads.last());
        drop(journal);
        let taken = engine.store().take(&id(name)).unwrap();
        assert_eq!(taken.head().await.unwrap(), head);
    }
    heads.push(Head::default().hash);
    let distinct: BTreeSet<_> = heads.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), heads.len());
}

/// A session with one record and two messages that wait, and one of another session.
async fn with_mail(engine: &dyn Engine) -> (Arc<dyn Journal>, Arc<dyn Mailbox>, [MailId; 3]) {
    let journal = engine.begin(&id("a")).await;
    append(&*journal, 0, all_said(["one"]), &[]).await.unwrap();
    let mailbox = engine.mailbox();
    let mut ids = [MailId::default(); 3];
    for (id, (session, key)) in ids.iter_mut().zip([("a", "1"), ("a", "2"), ("b", "1")]) {
        *id = accepted(&*mailbox, message(session, key, "x")).await;
    }
    (journal, mailbox, ids)
}

/// Mail that an append acknowledges no longer waits, and is known when it is submitted again.
pub async fn mail_goes_with_the_records_that_tell_of_it(engine: Box<dyn Engine>) {
    let (journal, mailbox, [first, second, _]) = with_mail(&*engine).await;
    let batch = all_said(["two"]);
    append(&*journal, 1, batch, &[first]).await.unwrap();
    assert_eq!(keys(&*mailbox, "a").await, ["2"]);
    assert!(!mailbox.withdraw(&id("a"), "1").await.unwrap());
    let again = mailbox.push(message("a", "1", "x")).await.unwrap();
    assert_eq!(again, Pushed::Duplicate(first));
    append(&*journal, 2, all_said(["three"]), &[second])
        .await
        .unwrap();
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
}

/// If records are refused, the rows stay.
pub async fn mail_stays_where_the_records_are_refused(engine: Box<dyn Engine>) {
    let (journal, mailbox, [first, ..]) = with_mail(&*engine).await;
    let refused = append(&*journal, 7, all_said(["x"]), &[first]).await;
    assert!(matches!(refused, Err(AppendError::Conflict { .. })));
    assert_eq!(keys(&*mailbox, "a").await, ["1", "2"]);
    assert!(mailbox.withdraw(&id("a"), "1").await.unwrap());
}

/// Rows that are gone, or are another session's, or never were, are passed over.
pub async fn what_cannot_be_acknowledged_is_not_in_the_way(engine: Box<dyn Engine>) {
    let (journal, mailbox, [first, _, other]) = with_mail(&*engine).await;
    assert!(mailbox.withdraw(&id("a"), "1").await.unwrap());
    let ack = [first, other, MailId(u64::MAX), MailId(0)];
    let at = append(&*journal, 1, all_said(["two"]), &ack).await;
    assert_eq!(at.unwrap(), Seq(2));
    assert_eq!(keys(&*mailbox, "a").await, ["2"]);
    assert_eq!(keys(&*mailbox, "b").await, ["1"]);
    assert_eq!(engine.recorded(&id("a")).await, all_said(["one", "two"]));
}

/// Rows can be done without a record about them.
pub async fn mail_is_acknowledged_without_records(engine: Box<dyn Engine>) {
    let (journal, mailbox, [first, second, _]) = with_mail(&*engine).await;
    let at = append(&*journal, 1, Vec::new(), &[first, second]).await;
    assert_eq!(at.unwrap(), Seq(1));
    assert_eq!(mailbox.waiting().await.unwrap(), [id("b")]);
}

/// An owner that was replaced acknowledges nothing.
pub async fn mail_is_acknowledged_by_one_owner_only(engine: Box<dyn Engine>) {
    let (first, mailbox, [mail, ..]) = with_mail(&*engine).await;
    let Some(second) = engine.take_over(&id("a")).await else {
        return;
    };
    let late = append(&*first, 1, all_said(["late"]), &[mail]).await;
    assert!(matches!(late, Err(AppendError::Fenced { .. })));
    let late = append(&*first, 1, Vec::new(), &[mail]).await;
    assert!(matches!(late, Err(AppendError::Fenced { .. })));
    assert_eq!(keys(&*mailbox, "a").await, ["1", "2"]);
    append(&*second, 1, all_said(["two"]), &[mail])
        .await
        .unwrap();
    assert_eq!(keys(&*mailbox, "a").await, ["2"]);
    assert_eq!(engine.recorded(&id("a")).await, all_said(["one", "two"]));
}

/// If the engine claims to be durable, everything is there with its hash, keys and order.
pub async fn records_and_mail_are_there_after_it_was_opened_again(engine: Box<dyn Engine>) {
    let (journal, mailbox, [first, ..]) = with_mail(&*engine).await;
    append(&*journal, 1, all_said(["two"]), &[first])
        .await
        .unwrap();
    let head = journal.head().await.unwrap();
    let before = mailbox.list(&id("a")).await.unwrap();
    drop((journal, mailbox));
    let Some(engine) = engine.opened_again().await else {
        return;
    };
    let mailbox = engine.mailbox();
    assert_eq!(mailbox.list(&id("a")).await.unwrap(), before);
    let again = mailbox.push(message("a", "1", "x")).await.unwrap();
    assert_eq!(again, Pushed::Duplicate(first));
    let next = accepted(&*mailbox, message("a", "3", "x")).await;
    assert!(before.iter().all(|mail| mail.id < next));
    let taken = engine.store().take(&id("a")).unwrap();
    assert_eq!(taken.at(), Seq(2));
    assert_eq!(taken.head().await.unwrap(), head);
    assert_eq!(engine.recorded(&id("a")).await, all_said(["one", "two"]));
}
