//! Checks: messages to the outside, and rows of hosts.

use crate::engine::Engine;
use crate::samples::{all_said, id, keys, message};
use rondo_core::ports::{
    Append, Attempt, Commit, Fence, HostCommit, HostRow, MESSAGES_MAX, MailboxError, Outbox,
    OutboxEntry, OutboxId, OutboxKind, OutboxRow, OutboxState, Seq,
};
use rondo_types::{TimeMs, TurnId};

fn entry(key: &str, chat: &str, kind: OutboxKind, text: &str) -> OutboxEntry {
    OutboxEntry {
        key: key.to_owned(),
        channel: "test".to_owned(),
        chat: chat.to_owned(),
        session: id("a"),
        turn: Some(TurnId::new("t1")),
        kind,
        text: text.to_owned(),
        details: "{}".to_owned(),
    }
}

fn notice(key: &str, chat: &str) -> OutboxEntry {
    entry(key, chat, OutboxKind::Notice, key)
}

fn sending(entries: Vec<OutboxEntry>) -> HostCommit {
    HostCommit {
        outbox: entries,
        ..HostCommit::default()
    }
}

async fn due(outbox: &dyn Outbox, now: u64) -> Vec<OutboxRow> {
    outbox.due("test", TimeMs(now), 100).await.unwrap()
}

async fn due_keys(outbox: &dyn Outbox, now: u64) -> Vec<String> {
    let rows = due(outbox, now).await;
    rows.into_iter().map(|it| it.entry.key).collect()
}

async fn only(outbox: &dyn Outbox, now: u64) -> OutboxRow {
    let mut rows = due(outbox, now).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

/// Messages of records are stored with them, and not if they are refused.
pub async fn a_reply_is_queued_with_its_records_or_not_at_all(engine: Box<dyn Engine>) {
    let journal = engine.begin(&id("a")).await;
    let fence = Fence {
        session: id("a"),
        epoch: journal.epoch(),
    };
    let commit = |key: &str| Commit {
        rows: vec![HostRow::set("turn", "a", key)],
        ..Commit::sending(entry(key, "c", OutboxKind::Final, key))
    };
    let refused = journal.append(
        &fence,
        Append {
            expected: Seq(7),
            batch: all_said(["x"]),
            commit: commit("k1"),
        },
    );
    assert!(refused.await.is_err());
    let (outbox, host) = (engine.outbox(), engine.host_store());
    assert_eq!(due(&*outbox, 0).await, []);
    assert_eq!(host.row("turn", "a").await.unwrap(), None);
    let appended = journal.append(
        &fence,
        Append {
            expected: Seq(0),
            batch: all_said(["x"]),
            commit: commit("k2"),
        },
    );
    appended.await.unwrap();
    assert_eq!(due_keys(&*outbox, 0).await, ["k2"]);
    let noted = host.row("turn", "a").await.unwrap();
    assert_eq!(noted.as_deref(), Some("k2"));
}

/// A message is queued once under its key, also after it was sent.
pub async fn the_same_key_is_sent_once(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let commit = sending(vec![notice("k", "c"), notice("k", "d")]);
    assert!(host.commit(commit.clone()).await.unwrap());
    let row = only(&*outbox, 0).await;
    assert_eq!(row.entry, notice("k", "c"));
    assert!(outbox.begin_sending(row.id).await.unwrap());
    let sent = Attempt::Sent("7".to_owned());
    outbox.end_sending(row.id, sent).await.unwrap();
    host.commit(commit).await.unwrap();
    assert_eq!(due(&*outbox, 0).await, []);
    assert!(!outbox.begin_sending(row.id).await.unwrap(), "it was sent");
}

/// A final that says what a tool said in the same turn and chat is left out; any other is not.
pub async fn a_final_that_a_tool_said_is_left_out(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let said = entry("m", "c", OutboxKind::Message, "Done. ");
    let same = entry("f1", "c", OutboxKind::Final, "Done.\n");
    let elsewhere = entry("f2", "d", OutboxKind::Final, "Done.");
    let mut later = entry("f3", "e", OutboxKind::Final, "Done.");
    later.turn = Some(TurnId::new("t2"));
    let other = entry("f4", "c", OutboxKind::Final, "Done, too.");
    host.commit(sending(vec![said])).await.unwrap();
    let row = only(&*outbox, 0).await;
    outbox.begin_sending(row.id).await.unwrap();
    outbox
        .end_sending(row.id, Attempt::Sent("1".to_owned()))
        .await
        .unwrap();
    let finals = vec![same, elsewhere, later, other];
    host.commit(sending(finals)).await.unwrap();
    assert_eq!(due_keys(&*outbox, 0).await, ["f2", "f3", "f4"]);
}

/// One chat is sent in order; one that waits delays no other.
pub async fn a_chat_is_sent_in_order_and_delays_no_other(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let all = ["a1", "b1", "a2", "b2"].map(|it| notice(it, it.get(..1).unwrap()));
    host.commit(sending(all.into())).await.unwrap();
    assert_eq!(due_keys(&*outbox, 0).await, ["a1", "b1"]);
    let first = due(&*outbox, 0).await.remove(0);
    outbox.begin_sending(first.id).await.unwrap();
    let put_off = Attempt::NotSent {
        not_before: TimeMs(500),
        error: "slow down".to_owned(),
    };
    outbox.end_sending(first.id, put_off).await.unwrap();
    assert_eq!(due_keys(&*outbox, 499).await, ["b1"]);
    assert_eq!(outbox.next_due("test").await.unwrap(), Some(TimeMs(0)));
    let second = only(&*outbox, 0).await;
    outbox.begin_sending(second.id).await.unwrap();
    outbox
        .end_sending(second.id, Attempt::Sent(String::new()))
        .await
        .unwrap();
    assert_eq!(due_keys(&*outbox, 0).await, ["b2"]);
    assert_eq!(due_keys(&*outbox, 500).await, ["a1", "b2"]);
    assert_eq!(outbox.due("test", TimeMs(500), 1).await.unwrap().len(), 1);
    assert_eq!(outbox.open_in_chat("test", "a").await.unwrap(), 2);
    assert_eq!(outbox.due("other", TimeMs(500), 9).await.unwrap(), []);
    assert_eq!(outbox.next_due("other").await.unwrap(), None);
}

/// A message that was being sent when a process ended is sent again and counted.
pub async fn what_may_have_been_sent_is_sent_again_and_counted(engine: Box<dyn Engine>) {
    let host = engine.host_store();
    host.commit(sending(vec![notice("k", "c")])).await.unwrap();
    let outbox = engine.outbox();
    let row = only(&*outbox, 0).await;
    assert!(outbox.begin_sending(row.id).await.unwrap());
    let row = only(&*engine.outbox(), 0).await;
    assert_eq!(
        (row.state, row.attempts, row.doubts),
        (OutboxState::Sending, 1, 0)
    );
    assert!(outbox.begin_sending(row.id).await.unwrap());
    let unclear = Attempt::Unclear {
        not_before: TimeMs(9),
        error: "timeout".to_owned(),
    };
    outbox.end_sending(row.id, unclear).await.unwrap();
    assert!(outbox.begin_sending(row.id).await.unwrap());
    let row = only(&*outbox, 9).await;
    assert_eq!((row.attempts, row.doubts), (3, 2));
    assert_eq!(row.error.as_deref(), Some("timeout"));
    assert_eq!(outbox.counts().await.unwrap().doubts, 2);
}

/// A message that was given up on is listed, and can be tried again or dropped.
pub async fn what_was_given_up_is_listed_tried_again_and_dropped(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let two = vec![notice("k1", "c"), notice("k2", "c")];
    host.commit(sending(two)).await.unwrap();
    let row = only(&*outbox, 0).await;
    let given_up = Attempt::GivenUp {
        error: "refused".to_owned(),
    };
    outbox.begin_sending(row.id).await.unwrap();
    outbox.end_sending(row.id, given_up).await.unwrap();
    assert_eq!(
        due_keys(&*outbox, 0).await,
        ["k2"],
        "the next one is not held up"
    );
    let listed = outbox.unsent().await.unwrap();
    let states: Vec<_> = listed.iter().map(|it| it.state).collect();
    assert_eq!(states, [OutboxState::Failed, OutboxState::Waiting]);
    assert_eq!(listed.first().unwrap().entry.text, "k1", "its text is kept");
    assert!(outbox.retry(row.id).await.unwrap());
    assert_eq!(due_keys(&*outbox, 0).await, ["k1"]);
    assert!(outbox.drop_row(row.id).await.unwrap());
    assert!(!outbox.drop_row(row.id).await.unwrap());
    assert!(!outbox.retry(row.id).await.unwrap());
    assert!(!outbox.retry(OutboxId(99)).await.unwrap());
    assert_eq!(due_keys(&*outbox, 0).await, ["k2"]);
    assert_eq!(outbox.counts().await.unwrap().open, 1);
}

/// Open messages move along with a chat.
pub async fn a_chat_that_moves_takes_its_messages_along(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let two = vec![notice("k1", "old"), notice("k2", "other")];
    host.commit(sending(two)).await.unwrap();
    outbox.move_chat("test", "old", "new").await.unwrap();
    let rows = due(&*outbox, 0).await;
    let chats: Vec<_> = rows.iter().map(|it| it.entry.chat.as_str()).collect();
    assert_eq!(chats, ["new", "other"]);
}

/// An event leads to what it leads to once.
pub async fn an_event_counts_once(engine: Box<dyn Engine>) {
    let host = engine.host_store();
    let commit = |key: &str| HostCommit {
        event: Some("e1".to_owned()),
        mail: vec![message("a", key, "x")],
        ..sending(vec![notice(key, "c")])
    };
    assert!(host.commit(commit("k1")).await.unwrap());
    assert!(!host.commit(commit("k2")).await.unwrap());
    assert_eq!(keys(&*engine.mailbox(), "a").await, ["k1"]);
    assert_eq!(due_keys(&*engine.outbox(), 0).await, ["k1"]);
}

/// A commit that is refused in part is not made at all, and may be tried again.
pub async fn what_a_host_commits_is_done_whole_or_not_at_all(engine: Box<dyn Engine>) {
    let host = engine.host_store();
    let full = (0..MESSAGES_MAX).map(|n| message("full", &n.to_string(), "x"));
    let filled = HostCommit {
        mail: full.collect(),
        ..HostCommit::default()
    };
    host.commit(filled).await.unwrap();
    let commit = |session: &str| HostCommit {
        event: Some("e".to_owned()),
        mail: vec![message("a", "k", "x"), message(session, "k", "x")],
        rows: vec![HostRow::set("t", "r", "v")],
        ..sending(vec![notice("k", "c")])
    };
    let refused = host.commit(commit("full")).await.unwrap_err();
    assert!(matches!(refused, MailboxError::TooMany { .. }), "{refused}");
    assert_eq!(keys(&*engine.mailbox(), "a").await, [""; 0]);
    assert_eq!(due(&*engine.outbox(), 0).await, []);
    assert_eq!(host.row("t", "r").await.unwrap(), None);
    assert!(host.commit(commit("b")).await.unwrap());
    assert_eq!(keys(&*engine.mailbox(), "a").await, ["k"]);
    let withdrawn = HostCommit {
        withdrawn: vec![(id("a"), "k".to_owned()), (id("a"), "none".to_owned())],
        ..HostCommit::default()
    };
    assert!(host.commit(withdrawn).await.unwrap());
    assert_eq!(keys(&*engine.mailbox(), "a").await, [""; 0]);
}

/// Rows are set, removed and listed in order.
pub async fn rows_are_listed_in_order(engine: Box<dyn Engine>) {
    let host = engine.host_store();
    let rows = ["b", "a", "c"].map(|key| HostRow::set("t", key, format!("{key}!")));
    let mut commit = HostCommit {
        rows: rows.into(),
        ..HostCommit::default()
    };
    commit.rows.push(HostRow::set("u", "a", "other"));
    commit.rows.push(HostRow::removed("t", "b"));
    host.commit(commit).await.unwrap();
    let all = host.rows("t", "", 9).await.unwrap();
    let pair = |key: &str| (key.to_owned(), format!("{key}!"));
    assert_eq!(all, [pair("a"), pair("c")]);
    assert_eq!(host.rows("t", "a", 9).await.unwrap(), [pair("c")]);
    assert_eq!(host.rows("t", "", 1).await.unwrap(), [pair("a")]);
}

/// Open messages, and the keys of taken events, outlive the processes.
pub async fn what_is_to_be_sent_is_there_after_it_was_opened_again(engine: Box<dyn Engine>) {
    let commit = HostCommit {
        event: Some("e".to_owned()),
        rows: vec![HostRow::set("t", "r", "v")],
        ..sending(vec![notice("k", "c")])
    };
    engine.host_store().commit(commit.clone()).await.unwrap();
    let Some(engine) = engine.opened_again().await else {
        return;
    };
    assert_eq!(due_keys(&*engine.outbox(), 0).await, ["k"]);
    let host = engine.host_store();
    assert_eq!(host.row("t", "r").await.unwrap().as_deref(), Some("v"));
    assert!(!host.commit(commit).await.unwrap());
}

/// Queued messages are announced.
pub async fn changes_of_the_outbox_are_told(engine: Box<dyn Engine>) {
    let (outbox, host) = (engine.outbox(), engine.host_store());
    let mut changed = outbox.outbox_changed();
    changed.borrow_and_update();
    // The two may be the same value, or see each other's changes only when they are asked.
    host.commit(sending(vec![notice("k", "c")])).await.unwrap();
    let row = only(&*outbox, 0).await;
    outbox
        .end_sending(row.id, Attempt::Sent(String::new()))
        .await
        .unwrap();
    assert!(changed.has_changed().unwrap());
}
