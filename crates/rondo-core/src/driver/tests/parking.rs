//! Turns whose questions are answered later: what is parked, what is not, and how it continues.

use super::fakes::{
    AllowAll, AskAlways, Bench, ScriptedModel, Seen, answer, calls, check_replayed, observe, watch,
};
use super::journal::{Failing, kinds};
use crate::driver::{TurnEnd, control, resume_turn, run_turn};
use crate::history::History;
use crate::ports::{
    Append, Approver, Fence, Journal as _, MemoryJournal, NoJournal, QuestionReply, Record,
    RecordBody, Seq,
};
use async_trait::async_trait;
use rondo_types::{
    AnswerValue, AskReason, CallId, EventBody, Message, Question, QuestionId, QuestionKind,
    SessionId, StopReason, TimeMs, ToolErrorCode, Transcript,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Answers every question later, but for those about one tool.
struct Later {
    expires: Option<TimeMs>,
    approves: Option<&'static str>,
}

#[async_trait]
impl Approver for Later {
    async fn ask(&self, question: &Question) -> QuestionReply {
        match self.approves {
            Some(tool) if tool == question.subject.tool => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                QuestionReply::approved(question, "ada")
            }
            _ => QuestionReply::Later {
                expires: self.expires,
            },
        }
    }
}

const LATER: Later = Later {
    expires: None,
    approves: None,
};

/// Hands over one answer, given to each question.
struct Gave(AnswerValue);

#[async_trait]
impl Approver for Gave {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::answered(question, "ada", self.0.clone())
    }
}

fn bench(approver: impl Approver + 'static) -> Bench {
    let script = vec![calls(&[("put", "{\"n\":1}")]), answer("done")];
    let mut bench = Bench::new("default", script).tool("put", false, &[]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(approver);
    bench
}

/// Two calls at once, of which one is allowed after a second and the other one later.
fn two_questions() -> Bench {
    let script = vec![calls(&[("list", "{}"), ("look", "{}")]), answer("done")];
    let mut bench = Bench::new("default", script)
        .tool("look", true, &[])
        .tool("list", true, &[]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(Later {
        expires: None,
        approves: Some("look"),
    });
    bench
}

/// Runs a turn that is parked, and returns what is recorded of it.
async fn parked(bench: Bench) -> (Seen, Vec<Record>) {
    let journal = Arc::clone(&bench.records);
    let (setup, _) = bench.setup();
    let (_handle, turn_control) = control();
    let question = Message::user("q");
    let seen =
        watch(|events| run_turn(setup, Transcript::new(), question, events, turn_control)).await;
    check_replayed(&journal.records(), &seen.events);
    (seen, journal.records())
}

fn questions(seen: &Seen) -> &[Question] {
    match &seen.end {
        TurnEnd::Parked(parked) => &parked.questions,
        TurnEnd::Done(outcome) => panic!("{outcome:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_answered_later_is_recorded_and_nothing_runs() {
    let expires = Some(TimeMs(9));
    let (seen, records) = parked(bench(Later {
        expires,
        approves: None,
    }))
    .await;
    let call_id = CallId::generated(1, 1, 0);
    let [question] = questions(&seen) else {
        panic!("one question")
    };
    let expected = Question {
        id: QuestionId::of_call(&call_id),
        call: Some(call_id),
        child: None,
        kind: QuestionKind::Approval,
        prompt: "run it?".to_owned(),
        hash: question.hash.clone(),
        expires,
        offers: Vec::new(),
        reasons: vec![AskReason::NotAllowed],
        subject: rondo_types::QuestionSubject::default(),
    };
    assert_eq!(*question, expected);
    assert_eq!(question.hash.len(), 64);
    let told = seen.events.last().unwrap();
    let questions = vec![question.clone()];
    assert_eq!(told.body, EventBody::Parked { questions });
    let kinds = kinds(&records);
    assert_eq!(kinds[kinds.len() - 2..], ["asked", "parked"], "{kinds:?}");
    assert!(!kinds.contains(&"tool_started"));
}

#[tokio::test(start_paused = true)]
async fn a_parked_turn_goes_on_with_what_was_answered() {
    let edited = AnswerValue::value(json!({"n": 2}));
    let denied = AnswerValue::Deny {
        reason: "leave it".to_owned(),
    };
    for (value, ran) in [
        (AnswerValue::Approve, Some(json!({"n": 1}))),
        (edited, Some(json!({"n": 2}))),
        (denied, None),
    ] {
        let (_, records) = parked(bench(LATER)).await;
        let mut again = bench(Gave(value.clone()));
        again.model = ScriptedModel::new("m", vec![answer("done")], &again.records);
        let journal = Arc::clone(&again.records);
        let ended = again.resume(records).await;
        assert_eq!(ended.outcome.text, "done");
        let records = journal.records();
        let started = records.iter().find_map(|it| match &it.body {
            RecordBody::ToolStarted { arguments, .. } => Some(arguments.clone()),
            _ => None,
        });
        assert_eq!(started, ran, "{value:?}");
        let answered: Vec<_> = records
            .iter()
            .filter_map(|it| match &it.body {
                RecordBody::Answered { answer } => Some((answer.actor.as_str(), &answer.value)),
                _ => None,
            })
            .collect();
        assert_eq!(answered, [("ada", &value)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_resumed_without_an_answer_is_parked_again() {
    let (first, records) = parked(bench(LATER)).await;
    let again = bench(LATER);
    let (setup, _) = again.setup();
    let (_handle, turn_control) = control();
    let seen = watch(async |events| {
        let resumed = resume_turn(setup, Transcript::new(), &records, events, turn_control);
        resumed.await.unwrap()
    })
    .await;
    assert_eq!(questions(&seen), questions(&first));
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_parked_only_when_no_other_question_is_being_asked() {
    let bench = two_questions();
    let (seen, records) = parked(bench).await;
    assert_eq!(questions(&seen).len(), 1);
    let kinds = kinds(&records);
    let at = |kind| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(at("approval_resolved") < at("parked"));
    assert!(!kinds.contains(&"tool_started"), "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_while_a_question_is_open_is_not_parked() {
    let bench = two_questions();
    let stop = async |handle: crate::TurnHandle| {
        tokio::time::sleep(Duration::from_millis(500)).await;
        handle.cancel();
    };
    let (ran, _) = bench.run_with(stop).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_keeps_no_records_denies_what_would_be_answered_later() {
    // The scripted model wants to see its request among the records.
    let (_, mut records) = parked(bench(LATER)).await;
    let is_request = |it: &Record| matches!(it.body, RecordBody::ModelRequested { .. });
    let request = records.iter().position(is_request).unwrap();
    records.truncate(request + 1);
    let mut bench = bench(LATER);
    let seen = Arc::new(MemoryJournal::with_records(records));
    let script = vec![calls(&[("put", "{}")]), answer("done")];
    bench.model = ScriptedModel::new("m", script, &seen);
    bench.journal = Arc::new(NoJournal::default());
    let (setup, _) = bench.setup();
    let (_handle, turn_control) = control();
    let question = Message::user("q");
    let ran =
        observe(|events| run_turn(setup, Transcript::new(), question, events, turn_control)).await;
    let codes: Vec<_> = ran
        .events
        .iter()
        .filter_map(|it| match &it.body {
            EventBody::ToolCallFinished { code, .. } => Some(*code),
            _ => None,
        })
        .collect();
    assert_eq!(codes, [Some(ToolErrorCode::Denied)]);
    assert_eq!(ran.outcome.text, "done");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_to_a_turn_before_it_was_parked_comes_back() {
    let bench = two_questions();
    let (setup, _) = bench.setup();
    let (handle, turn_control) = control();
    let turn = watch(|events| {
        run_turn(
            setup,
            Transcript::new(),
            Message::user("q"),
            events,
            turn_control,
        )
    });
    let say = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(handle.steer("also".to_owned()));
    };
    let (seen, ()) = tokio::join!(turn, say);
    let TurnEnd::Parked(parked) = seen.end else {
        panic!("it waits")
    };
    assert_eq!(parked.undelivered_steering, [Message::user("also")]);
    assert!(!handle.steer("too late".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_recorded_is_denied_and_the_turn_ends() {
    let mut bench = bench(LATER);
    // The message with its request, the question, and then that the turn is parked.
    bench.journal = Arc::new(Failing::new(&bench.records, 2..usize::MAX));
    let ran = bench.run().await;
    assert!(ran.outcome.error.is_some(), "{:?}", ran.outcome);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_stands_still_while_a_turn_is_parked() {
    let limited = |approver| {
        let mut bench = bench(approver);
        bench.profile.limits.turn_timeout = Some(Duration::from_secs(60));
        bench
    };
    let (_, mut records) = parked(limited(LATER)).await;
    let days = 3 * 24 * 3_600_000;
    for record in &mut records {
        record.at_ms = TimeMs(record.at_ms.0.saturating_sub(days));
    }
    let mut again = bench(AllowedLate);
    again.profile.limits.turn_timeout = Some(Duration::from_secs(60));
    again.gate = Arc::new(AllowAll);
    again.model = ScriptedModel::new("m", vec![answer("done")], &again.records);
    let ended = again.resume(records).await;
    assert_eq!(ended.outcome.text, "done");
    assert!(ended.outcome.elapsed_ms < 60_000, "{:?}", ended.outcome);
}

/// Is not asked: the gate allows by now.
struct AllowedLate;

#[async_trait]
impl Approver for AllowedLate {
    async fn ask(&self, _: &Question) -> QuestionReply {
        panic!("nothing is to be asked")
    }
}

/// Two calls: one that is done, and one that a person is asked about.
fn half_done(approver: impl Approver + 'static) -> Bench {
    let script = vec![
        calls(&[("look", "{}")]),
        calls(&[("put", "{}")]),
        answer("done"),
    ];
    let mut bench = Bench::new("default", script)
        .tool("look", true, &[])
        .tool("put", false, &[]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(approver);
    bench
}

#[tokio::test(start_paused = true)]
async fn a_parked_turn_that_cannot_be_driven_again_closes_its_calls_and_answers() {
    let later = Later {
        expires: None,
        approves: Some("look"),
    };
    let (_, mut records) = parked(half_done(later)).await;
    // What no machine of today does: it judges a call twice.
    let is_judged = |it: &Record| matches!(it.body, RecordBody::GateJudged { .. });
    let judged = records.iter().rposition(is_judged).unwrap();
    records.insert(judged, records[judged].clone());

    let again = half_done(Gave(AnswerValue::Approve));
    let journal = Arc::clone(&again.records);
    let fence = Fence {
        session: SessionId::new("s"),
        epoch: 0,
    };
    let appended = journal.append(&fence, Append::new(Seq(0), records.clone()));
    appended.await.unwrap();
    let (setup, model) = again.setup();
    let (_handle, turn_control) = control();
    let ran = observe(async |events| {
        resume_turn(setup, Transcript::new(), &records, events, turn_control)
            .await
            .unwrap()
    })
    .await;
    assert!(model.requests.lock().unwrap().is_empty());
    let outcome = &ran.outcome;
    assert_eq!(outcome.stop_reason, StopReason::Error);
    assert!(
        outcome.text.contains("cannot resume it"),
        "{}",
        outcome.text
    );
    assert!(outcome.text.contains("look did {}"), "{}", outcome.text);
    let codes: Vec<_> = outcome
        .transcript
        .iter()
        .flat_map(|it| it.results())
        .collect();
    assert_eq!(
        codes.iter().map(|it| it.error).collect::<Vec<_>>(),
        [None, Some(ToolErrorCode::NotRun)]
    );
    let now = journal.records();
    let since = kinds(&now[records.len()..]);
    assert_eq!(since, ["resumed", "call_resolved", "final"]);
    let history = History::of(&now);
    assert_eq!(history.open_turn(), None);
    assert_eq!(history.transcript(), outcome.transcript);
}
