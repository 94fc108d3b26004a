//! A replay tells what the live run told. What other tests run is replayed too, by the bench.

use super::fakes::{
    Act, AskAlways, Beat, Bench, Ran, answer, calls, finished, followed_in, lines, observe, text,
};
use crate::driver::{control, run_turn};
use crate::joined::joined;
use crate::ports::{
    Approver, Gate, GateRequest, MemoryJournal, QuestionReply, Record, RecordBody, Verdict,
};
use crate::replay::{
    Changes, Difference, Replay, ReplayError, ReplayedTurn, RequestPart, replay, rerun,
};
use crate::toolbox::Toolbox;
use async_trait::async_trait;
use rondo_types::{
    AnswerValue, ErrorClass, EventBody, FinishReason, Message, ModelEvent, Question, QuestionKind,
    SessionId, StopReason, ToolErrorCode, Transcript, TurnId,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

struct AlwaysYes;

#[async_trait]
impl Approver for AlwaysYes {
    async fn ask(&self, question: &Question) -> QuestionReply {
        tokio::time::sleep(Duration::from_millis(7)).await;
        QuestionReply::approved(question, "ada")
    }
}

fn again(records: &[Record], changes: &Changes) -> Replay {
    replay(&SessionId::new("s"), records, changes).unwrap()
}

fn only(replay: &Replay) -> &ReplayedTurn {
    let [turn] = &replay.turns[..] else {
        panic!("{replay:?}")
    };
    turn
}

fn thought(text: &str) -> Beat {
    Beat::Event(ModelEvent::ReasoningDelta {
        candidate: 0,
        text: text.into(),
    })
}

/// The bench compares each run with its replay; this says of what.
fn told(ran: &Ran) -> Vec<&'static str> {
    let kinds = joined(ran.events.clone()).into_iter().filter_map(|event| {
        Some(match event.body {
            EventBody::ReasoningDelta { .. } => "reasoning",
            EventBody::TextDelta { .. } => "text",
            EventBody::RequestQueued => "queued",
            EventBody::RetryScheduled { .. } => "retry",
            EventBody::ModelFallback { .. } => "fallback",
            EventBody::ApprovalRequested { .. } => "asked",
            EventBody::ApprovalResolved { approved: true, .. } => "approved",
            EventBody::Steered { .. } => "steered",
            EventBody::ToolCallInDoubt { .. } => "in doubt",
            EventBody::ToolCallFinished { .. } => "result",
            _ => return None,
        })
    });
    kinds.collect()
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_told_again_in_its_order_also_one_that_broke() {
    let mut broken = vec![Beat::Event(ModelEvent::Queued), Beat::Sleep(5)];
    broken.extend([thought("so"), Beat::Sleep(9), Beat::Event(text("half"))]);
    broken.extend([thought("more"), Beat::Fail(ErrorClass::Network)]);
    let ran = Bench::new("default", vec![broken]).run().await;
    assert_eq!(told(&ran), ["queued", "reasoning", "text", "reasoning"]);
    let whole = vec![
        thought("a"),
        thought("b"),
        Beat::Event(text("x")),
        thought("c"),
        Beat::Event(text("y")),
        finished(FinishReason::Stop),
    ];
    let ran = Bench::new("default", vec![whole]).run().await;
    assert_eq!(told(&ran), ["reasoning", "text", "reasoning", "text"]);
}

#[tokio::test(start_paused = true)]
async fn retries_fallbacks_approvals_and_steering_are_told_again() {
    let fails = |class| vec![Beat::Fail(class)];
    let script = vec![
        fails(ErrorClass::Server),
        calls(&[("act", "{}"), ("act", r#"{"n":1}"#)]),
        fails(ErrorClass::Auth),
    ];
    let mut bench = Bench::new("default", script).fallback("f1", vec![answer("done")]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(AlwaysYes);
    let acts = [Act::SleepThenReturn(500), Act::UntilCancelled];
    let (ran, _) = bench
        .tool("act", false, &acts)
        .run_with(|handle| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(handle.steer("and now"));
        })
        .await;
    assert_eq!(
        told(&ran),
        [
            "retry", "asked", "approved", "result", "asked", "approved", "result", "steered",
            "fallback", "text"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_said_before_the_first_request_is_told_again() {
    let script = vec![calls(&[("act", "{}")]), answer("done")];
    let (ran, model) = Bench::new("default", script)
        .tool("act", false, &[Act::SleepThenReturn(5)])
        .run_with(|handle| {
            // The turn is not polled yet.
            assert!(handle.steer("and now"));
            async {}
        })
        .await;
    assert_eq!(told(&ran), ["steered", "result", "text"]);
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests[0].messages.last().unwrap().text(), "and now");
}

#[tokio::test(start_paused = true)]
async fn a_followed_turn_goes_on_if_a_message_came_apart_from_the_record_before_it() {
    let script = vec![calls(&[("act", "{}")]), answer("done")];
    let bench = Bench::new("default", script).tool("act", false, &[Act::SleepThenReturn(5)]);
    let kept = Arc::clone(&bench.records);
    bench
        .run_with(|handle| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(handle.steer("and now"));
        })
        .await;
    let mut records = kept.records();
    let rest = records.split_off(3);
    let mut pieces = vec![records];
    pieces.extend(rest.into_iter().map(|it| vec![it]));
    let streams = followed_in(pieces);
    let results = streams.iter().flatten();
    let results = results.filter(|it| matches!(it.body, EventBody::Result(_)));
    assert_eq!(results.count(), 1);
}

/// Asks about everything, and denies what is marked.
struct DeniesMarked;

#[async_trait]
impl Gate for DeniesMarked {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match request.arguments.get("denied") {
            Some(_) => Verdict::Deny {
                reason: "never".into(),
            },
            None => Verdict::Ask {
                prompt: "run it?".into(),
                reasons: vec![rondo_types::AskReason::NotAllowed],
            },
        }
    }
}

struct Rewrites(&'static str);

#[async_trait]
impl Approver for Rewrites {
    async fn ask(&self, question: &Question) -> QuestionReply {
        assert_eq!(question.kind, QuestionKind::Approval);
        let arguments = AnswerValue::value(json!({ self.0: true }));
        QuestionReply::answered(question, "ada", arguments)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_person_changed_is_told_again_and_the_gate_may_still_deny_it() {
    for (name, code) in [("other", None), ("denied", Some(ToolErrorCode::Denied))] {
        let script = vec![calls(&[("act", r#"{"n":1}"#)]), answer("done")];
        let mut bench = Bench::new("default", script);
        bench.gate = Arc::new(DeniesMarked);
        bench.approver = Arc::new(Rewrites(name));
        let journal = Arc::clone(&bench.records);
        let ran = bench.tool("act", false, &[]).run().await;
        let results = ran.outcome.transcript.iter().flat_map(|it| it.results());
        let codes: Vec<_> = results.map(|it| it.error).collect();
        assert_eq!(codes, [code], "{name}");
        let arguments = journal.records().into_iter().find_map(|it| match it.body {
            RecordBody::ToolStarted { arguments, .. } => Some(arguments),
            _ => None,
        });
        assert_eq!(arguments.is_some(), code.is_none());
        assert!(arguments.is_none_or(|it| it["other"] == true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_told_again() {
    let mut bench = Bench::new("default", vec![answer("never")]);
    bench.response_schema = Some(json!({"type": 7}));
    let ran = bench.run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
}

/// One turn with one call and an answer, and its records.
async fn one_call() -> (Ran, Vec<Record>) {
    let script = vec![calls(&[("look", r#"{"n":1}"#)]), answer("done")];
    let mut bench = Bench::new("default", script).tool("look", true, &[]);
    bench.system = vec!["Be brief.".into()];
    let journal = Arc::clone(&bench.records);
    let ran = bench.run().await;
    (ran, journal.records())
}

#[tokio::test(start_paused = true)]
async fn what_a_person_ran_in_python_belongs_to_no_turn() {
    let (ran, records) = one_call().await;
    let cell = Record {
        turn: TurnId::new(""),
        step: 0,
        at_ms: rondo_types::TimeMs(u64::MAX),
        body: RecordBody::CellStarted {
            code: "x = 1".into(),
            changed: None,
        },
    };
    let plain = again(&records, &Changes::default());
    for place in [0, 3, records.len()] {
        let mut with = records.clone();
        with.insert(place, cell.clone());
        let replay = again(&with, &Changes::default());
        let (turn, plain) = (only(&replay), only(&plain));
        assert_eq!(turn.differences, []);
        assert_eq!(turn.streams, plain.streams);
        assert_eq!(turn.outcome, Some(ran.outcome.clone()));
        let changes = Changes {
            system: Some(vec!["Be long.".into()]),
            ..Changes::default()
        };
        let changed = again(&with, &changes);
        let first = only(&changed).differences.first();
        let Some(Difference::Request(request)) = first else {
            panic!("{first:?}")
        };
        assert!(matches!(
            with[request.record - 1].body,
            RecordBody::ModelRequested { .. }
        ));
    }
    let empty = replay(&SessionId::new("s"), &[cell], &Changes::default());
    assert_eq!(empty.unwrap_err(), ReplayError::Empty);
}

#[tokio::test(start_paused = true)]
async fn a_changed_prompt_changes_each_request_and_nothing_else() {
    let (ran, records) = one_call().await;
    let changes = Changes {
        system: Some(vec!["Be long.".into()]),
        ..Changes::default()
    };
    let replay = again(&records, &changes);
    let turn = only(&replay);
    assert_eq!((turn.requests, turn.requests_changed()), (2, 2));
    assert_eq!(turn.differences.len(), 2);
    for difference in &turn.differences {
        let Difference::Request(request) = difference else {
            panic!("{difference:?}")
        };
        let [part] = &request.parts[..] else {
            panic!("{request:?}")
        };
        assert_eq!(part.part, RequestPart::System);
        assert_eq!(part.recorded.as_deref(), Some("Be brief."));
        assert_eq!(part.now.as_deref(), Some("Be long."));
    }
    assert_eq!(lines(&turn.streams[0]), lines(&joined(ran.events)));
}

#[tokio::test(start_paused = true)]
async fn another_profile_shows_what_it_would_have_done() {
    let (_, records) = one_call().await;
    let mut profile = crate::profile::builtin("default").unwrap();
    profile.limits.max_steps = 1;
    profile.limits.reserve_final = false;
    let changes = Changes {
        profile: Some(profile),
        ..Changes::default()
    };
    let replay = again(&records, &changes);
    let turn = only(&replay);
    let unused = turn.differences.iter().filter_map(|it| match it {
        Difference::Unused { kind, .. } => Some(*kind),
        _ => None,
    });
    assert_eq!(unused.collect::<Vec<_>>(), ["a request", "a reply"]);
    let Some(Difference::Ending { recorded, now }) = turn.differences.last() else {
        panic!("{turn:?}")
    };
    assert_eq!(recorded.stop_reason, StopReason::Complete);
    assert_eq!(now.as_ref().unwrap().stop_reason, StopReason::MaxSteps);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_would_go_on_past_its_records_has_no_ending() {
    let (_, records) = one_call().await;
    let is_first_end = |it: &Record| matches!(it.body, RecordBody::ToolFinished { .. });
    let mut cut: Vec<Record> = records.clone();
    let at = cut.iter().position(is_first_end).unwrap();
    cut.drain(at..cut.len() - 1);
    let turn = &again(&cut, &Changes::default()).turns[0];
    let [Difference::Ending { now: None, .. }] = &turn.differences[..] else {
        panic!("{turn:?}")
    };
    assert!(turn.outcome.is_none());
    // If the end is not recorded either, it was cut off, and that is not a difference.
    cut.pop();
    assert_eq!(again(&cut, &Changes::default()).turns[0].differences, []);
}

/// Record of a request by a version that made others.
#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_made_again_is_told_apart_by_its_digests() {
    let (_, records) = one_call().await;
    let mut changed = records.clone();
    let requests = changed.iter_mut().filter_map(|it| match &mut it.body {
        RecordBody::ModelRequested {
            request_hash,
            parts,
            ..
        } => Some((request_hash, parts.as_mut().unwrap())),
        _ => None,
    });
    let all: Vec<_> = requests.collect();
    for (hash, parts) in all {
        *hash = "0".repeat(64);
        parts.tools = "0".repeat(16);
        if let Some(result) = parts.messages.get_mut(1) {
            *result = "0".repeat(16);
        }
    }
    let turn = &again(&changed, &Changes::default()).turns[0];
    let parts: Vec<Vec<_>> = turn
        .differences
        .iter()
        .map(|it| match it {
            Difference::Request(it) => it.parts.iter().map(|it| it.part).collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        parts,
        [
            vec![RequestPart::Tools],
            vec![RequestPart::Tools, RequestPart::Message(3)]
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_is_replayed_turn_by_turn_with_what_was_said_before() {
    let journal = Arc::new(MemoryJournal::default());
    let mut history = Transcript::new();
    let mut live = Vec::new();
    for number in 1..=3 {
        let script = vec![calls(&[("look", "{}")]), answer("done")];
        let mut bench = Bench::new("default", script);
        bench.model.journal = Arc::clone(&journal);
        bench.records = Arc::clone(&journal);
        bench.journal = Arc::clone(&journal) as _;
        let (mut setup, _) = bench.tool("look", true, &[]).setup();
        setup.turn = TurnId::new(format!("t{number}"));
        setup.turn_number = number;
        let (_handle, turn_control) = control();
        let before = history.clone();
        let ran =
            observe(|events| run_turn(setup, before, Message::user("q"), events, turn_control))
                .await;
        history.clone_from(&ran.outcome.transcript);
        live.push(ran);
    }
    let replay = again(&journal.records(), &Changes::default());
    assert_eq!(replay.turns.len(), 3);
    for (turn, ran) in replay.turns.iter().zip(live) {
        assert_eq!(turn.differences, []);
        assert_eq!(turn.outcome.as_ref(), Some(&ran.outcome));
        let bodies = |events: &[rondo_types::TurnEvent]| -> Vec<_> {
            events.iter().map(|it| (it.at, it.body.clone())).collect()
        };
        assert_eq!(bodies(&turn.streams[0]), bodies(&joined(ran.events)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_reads_is_run_again_and_what_writes_is_not() {
    let asked = calls(&[("look", r#"{"n":1}"#), ("act", "{}")]);
    let scene = || {
        let bench = Bench::new("default", vec![asked.clone(), answer("done")]);
        bench.tool("look", true, &[]).tool("act", false, &[])
    };
    let bench = scene();
    let (journal, tools) = (Arc::clone(&bench.records), bench.tools.clone());
    bench.run().await;
    let mut records = journal.records();
    let toolbox = Toolbox::new(tools).unwrap();
    let session = SessionId::new("s");
    let gate = super::fakes::AllowAll;
    let calls = rerun(&session, &records, &toolbox, &gate).await;
    let seen: Vec<_> = calls
        .iter()
        .map(|it| (it.tool.as_str(), it.now.is_some(), it.has_drifted()))
        .collect();
    assert_eq!(seen, [("look", true, false), ("act", false, false)]);
    for record in &mut records {
        if let RecordBody::ToolFinished { outcome, .. } = &mut record.body {
            *outcome = rondo_types::ToolOutcome::text("was");
        }
    }
    let calls = rerun(&session, &records, &toolbox, &gate).await;
    assert!(calls[0].has_drifted() && !calls[1].has_drifted());
    let asks = rerun(&session, &records, &toolbox, &AskAlways).await;
    assert!(asks.iter().all(|it| it.now.is_none()));
}

#[tokio::test(start_paused = true)]
async fn records_that_do_not_say_what_the_turn_worked_with_are_refused() {
    let (_, mut records) = one_call().await;
    records.retain(|it| !matches!(it.body, RecordBody::TurnEnvironment { .. }));
    let refused = replay(&SessionId::new("s"), &records, &Changes::default());
    assert_eq!(refused.unwrap_err(), ReplayError::NotEquipped { turn: 1 });
    let refused = replay(&SessionId::new("s"), &[], &Changes::default());
    assert_eq!(refused.unwrap_err(), ReplayError::Empty);
}
