//! The turns that each version of the format recorded, driven again: replayed as they are, and carried
//! on where they were cut off.

use crate::stage::{Beat, Play, calls, play, says};
use crate::support::{Journal, id};
use crate::versions::{VERSIONS, kept};
use rondo_core::Journal as _;
use rondo_core::compaction::Change;
use rondo_core::ports::{Approval, Record, RecordBody};
use rondo_core::replay::{Changes, replay};
use rondo_journal::{SessionState, Store};
use rondo_types::{StopReason, ToolOutcome};
use serde_json::json;
use std::sync::Arc;

/// A session whose turn was cut off; what is recorded of it from then on; the calls that run.
type CarriedOn = (&'static str, &'static str, &'static [&'static str]);

/// By the recovery of `look` (read only), `put` (idempotent), `move` (checkable), `send` (at most once)
/// and `wipe` (confirm).
const CARRIED_ON: &[CarriedOn] = &[
    (
        "open-request",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-reply",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-repeated",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-fallback",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-steered",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-look",
        "resumed in_doubt:retry finished:ok requested replied final:complete",
        &["look"],
    ),
    (
        "open-put",
        "resumed in_doubt:retry finished:ok requested replied final:complete",
        &["put"],
    ),
    (
        "open-move-done",
        "resumed in_doubt:done finished:ok requested replied final:complete",
        &[],
    ),
    (
        "open-move-not-done",
        "resumed in_doubt:retry finished:ok requested replied final:complete",
        &["move"],
    ),
    (
        "open-move-running",
        "resumed in_doubt:retry:still_running finished:ok requested replied final:complete",
        &["move"],
    ),
    (
        "open-move-unknown",
        "resumed in_doubt:fail finished:in_doubt requested replied final:complete",
        &[],
    ),
    (
        "open-send",
        "resumed in_doubt:fail finished:in_doubt requested replied final:complete",
        &[],
    ),
    (
        "open-second",
        "resumed in_doubt:fail finished:in_doubt requested replied final:complete",
        &[],
    ),
    (
        "open-wipe",
        "resumed in_doubt:ask asked answered resolved:approved finished:ok requested replied final:complete",
        &["wipe"],
    ),
    (
        "open-asked",
        "resumed asked answered resolved:approved started finished:ok requested replied final:complete",
        &["put"],
    ),
    (
        "open-resumed",
        "resumed in_doubt:retry finished:ok requested replied final:complete",
        &["look"],
    ),
    (
        "open-between",
        "resumed requested replied final:complete",
        &[],
    ),
    (
        "open-answered",
        "resumed asked asked asked answered resolved:approved answered resolved:denied answered resolved:edited \
         started started finished:ok finished:ok call_resolved:denied call_resolved:denied \
         call_resolved:unknown_tool call_resolved:invalid_args requested replied final:complete",
        &["look", "move"],
    ),
    // A fork: what is known of a call that can be checked is known of its parent's.
    (
        "open-in-doubt",
        "resumed in_doubt:retry in_doubt:retry in_doubt:fail in_doubt:fail in_doubt:fail \
         in_doubt:fail in_doubt:ask in_doubt:ask asked asked answered resolved:approved answered resolved:denied \
         finished:ok finished:ok finished:ok finished:in_doubt finished:in_doubt finished:in_doubt \
         finished:in_doubt finished:in_doubt requested replied final:complete",
        &["look", "put", "wipe"],
    ),
    (
        "open-cancelled",
        "resumed in_doubt:fail finished:in_doubt final:cancelled",
        &[],
    ),
];

const PARKED: &[CarriedOn] = &[(
    "open-parked",
    "resumed asked asked asked answered answered answered resolved:approved resolved:denied resolved:edited \
     started started finished:ok finished:ok call_resolved:denied requested replied final:complete",
    &["look", "put"],
)];

fn records(store: &Store, name: &str) -> Vec<Record> {
    store.load(&id(name)).unwrap()
}

/// Asserts that a session is as it was recorded when it is driven again.
fn assert_replays(store: &Store, name: &str) {
    let replayed = replay(&id(name), &records(store, name), &Changes::default()).unwrap();
    for turn in replayed.turns {
        assert_eq!(turn.differences, [], "{name}, {}", turn.turn);
    }
}

#[test]
fn each_recorded_turn_replays_without_a_difference() {
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        for (name, ..) in sessions {
            assert_replays(&kept.store, name);
        }
    }
}

/// Summary of a record in a word; `None` for the beginning of a turn and for decisions of the gate.
fn told(record: &Record) -> Option<String> {
    let outcome = |it: &ToolOutcome| it.code().map_or("ok", |code| code.as_str()).to_owned();
    let word = |value: serde_json::Value| value.as_str().unwrap().to_owned();
    Some(match &record.body {
        RecordBody::Resumed { .. } => "resumed".to_owned(),
        RecordBody::ToolInDoubt {
            decision,
            still_running,
            ..
        } => {
            let running = if *still_running { ":still_running" } else { "" };
            let decision = word(serde_json::to_value(decision).unwrap());
            format!("in_doubt:{decision}{running}")
        }
        RecordBody::ToolStarted { .. } => "started".to_owned(),
        RecordBody::ToolFinished { outcome: it, .. } => format!("finished:{}", outcome(it)),
        RecordBody::CallResolved { outcome: it, .. } => format!("call_resolved:{}", outcome(it)),
        RecordBody::ApprovalRequested { .. } | RecordBody::Asked { .. } => "asked".to_owned(),
        RecordBody::ApprovalResolved { approval, .. } => match approval {
            Approval::Approved => "resolved:approved".to_owned(),
            Approval::Denied { .. } => "resolved:denied".to_owned(),
            Approval::Edited { .. } => "resolved:edited".to_owned(),
        },
        RecordBody::Answered { .. } => "answered".to_owned(),
        RecordBody::ModelRequested { .. } => "requested".to_owned(),
        RecordBody::ModelReplied { .. } => "replied".to_owned(),
        RecordBody::MessageAdded { .. } => "added".to_owned(),
        RecordBody::Compacted(it) => match it.change {
            Change::Summarised { .. } => "summarised".to_owned(),
            Change::Dropped { .. } => "dropped".to_owned(),
            Change::Cut { .. } => "cut".to_owned(),
            Change::Described { .. } => "described".to_owned(),
            Change::Unsealed { .. } => "unsealed".to_owned(),
        },
        RecordBody::Final { stop_reason, .. } => format!("final:{stop_reason}"),
        _ => return None,
    })
}

/// Carries a session's open turn on, and returns what is recorded of that and which tools ran.
async fn carried_on(kept: &Journal, name: &str, replies: Vec<Vec<Beat>>) -> (String, Vec<String>) {
    let store = &kept.store;
    let history = store.history(&id(name)).unwrap();
    let open = history.open_turn().unwrap();
    let all = records(store, name);
    let (_, turn) = all.split_at(usize::try_from(open.first.0).unwrap() - 1);
    let session = Arc::new(store.own(&id(name)).unwrap());
    let mut carried_on = Play::new(open.number, replies.clone());
    let has_two = turn
        .iter()
        .any(|it| matches!(&it.body, RecordBody::TurnStarted { models, .. } if models.len() == 2));
    carried_on.fallback = has_two.then_some(replies);
    carried_on.history = history.before_open_turn();
    carried_on.hangs = false;
    let played = play(session.clone(), &id(name), carried_on, Some(turn)).await;
    let played = played.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(played.outcome.is_some(), "{name}");
    assert!(session.at().0 > all.len() as u64);
    drop(session);
    let now = records(store, name);
    let (before, since) = now.split_at(all.len());
    assert_eq!(before, all, "{name}");
    let told: Vec<String> = since.iter().filter_map(told).collect();
    let tool = |call: &String| call.split_once(' ').unwrap().0.to_owned();
    (told.join(" "), played.ran.iter().map(tool).collect())
}

#[tokio::test]
async fn each_turn_that_was_cut_off_goes_on_as_its_calls_demand_and_replays() {
    let of_version = |version: &str| {
        let all = VERSIONS.iter().find(|(it, _)| *it == version).unwrap().1;
        all.iter()
            .filter(|(name, ..)| name.starts_with("open-"))
            .count()
    };
    assert_eq!(CARRIED_ON.len(), of_version("v2-last"));
    assert_eq!(PARKED.len(), of_version("v3"));
    assert_eq!(PARKED.len(), of_version("v4"));
    for (version, all) in [("v2-last", CARRIED_ON), ("v3", PARKED), ("v4", PARKED)] {
        carry_on_all(&kept(version), all).await;
    }
}

async fn carry_on_all(kept: &Journal, all: &[CarriedOn]) {
    for (name, expected, ran) in all {
        let (told, really_ran) = carried_on(kept, name, vec![says("It is done.")]).await;
        assert_eq!(
            sorted(told.split(' ')),
            sorted(expected.split(' ')),
            "{name}"
        );
        assert_eq!(
            sorted(really_ran.iter().map(String::as_str)),
            *ran,
            "{name}"
        );
        let info = kept.store.session(&id(name)).unwrap();
        assert_eq!(info.state, SessionState::Done, "{name}");
        assert_eq!(kept.store.check(&id(name)).unwrap().defect, None, "{name}");
        assert_replays(&kept.store, name);
    }
}

/// Calls that run beside each other end in any order.
fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words: Vec<_> = words.collect();
    words.sort_unstable();
    words
}

#[tokio::test]
async fn another_turn_follows_each_recorded_one_and_replays() {
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        for (name, turns, _) in sessions {
            let session = Arc::new(kept.store.own(&id(name)).unwrap());
            let look = calls(&[("look", json!({ "n": 1 }))]);
            let mut next = Play::new(turns + 1, vec![look, says("And today.")]);
            next.history = kept.store.history(&id(name)).unwrap().transcript();
            let played = play(session, &id(name), next, None).await.unwrap();
            let outcome = played.outcome.unwrap();
            assert_eq!(outcome.stop_reason, StopReason::Complete, "{name}");
            assert_replays(&kept.store, name);
        }
    }
}
