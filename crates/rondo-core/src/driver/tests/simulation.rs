//! Seeded faults: whatever the model and the tools do, the turn ends in time, tells its listener,
//! and pairs every call. A failure names its seed.

use super::fakes::{
    Act, AskAlways, Beat, Bench, Ran, ScriptedModel, answer, calls, finished, text,
};
use crate::compaction::Change;
use crate::history::History;
use crate::pairing::is_paired;
use crate::ports::{Approver, QuestionReply, Record, RecordBody};
use async_trait::async_trait;
use rondo_testkit::Dice;
use rondo_types::{
    ErrorClass, EventBody, FinishReason, ModelEvent, Question, StopReason, TimeMs, TurnEvent,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const SEEDS: u64 = 600;

/// Faults that a seed stands for.
struct Faults(Dice);

impl Faults {
    fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0.roll(sides)
    }

    fn reply(&mut self) -> Vec<Beat> {
        let mut beats = match self.roll(7) {
            0 => answer("an answer"),
            1 => vec![finished(FinishReason::Stop)],
            2 => vec![Beat::Event(text("only text"))],
            3 => vec![Beat::Event(ModelEvent::PromptBlocked {
                reason: "SAFETY".into(),
            })],
            4 => vec![Beat::Event(text("so far")), finished(FinishReason::Paused)],
            _ => {
                let n = self.roll(50);
                let long = "x".repeat(usize::try_from(self.roll(4) * 700).unwrap());
                let arguments = format!(r#"{{"n":{n},"long":"{long}"}}"#);
                let names = ["look", "act", "gone"];
                let name = names[usize::try_from(self.roll(3)).unwrap()];
                calls(&[(name, &arguments), ("look", "{}"), ("act", "[")])
            }
        };
        for _ in 0..self.roll(3) {
            let at = usize::try_from(self.roll(beats.len() as u64 + 1)).unwrap();
            beats.insert(at, self.fault());
        }
        beats
    }

    fn fault(&mut self) -> Beat {
        let classes = [
            ErrorClass::Network,
            ErrorClass::Server,
            ErrorClass::RateLimited,
            ErrorClass::Protocol,
            ErrorClass::Auth,
            ErrorClass::ContextTooLong,
        ];
        match self.roll(4) {
            0 => Beat::Hang,
            1 if self.roll(4) == 0 => Beat::Event(ModelEvent::Queued),
            1 => Beat::Sleep(self.roll(100_000)),
            2 => Beat::Sleep(self.roll(50)),
            _ => Beat::Fail(classes[usize::try_from(self.roll(6)).unwrap()]),
        }
    }

    fn acts(&mut self) -> Vec<Act> {
        let mut act = || match self.roll(6) {
            0 => Act::SleepThenReturn(self.roll(200_000)),
            1 => Act::UntilCancelled,
            2 => Act::Stubborn,
            3 => Act::Panic,
            _ => Act::Return,
        };
        (0..8).map(|_| act()).collect()
    }
}

/// Approves every second question, each after a while.
#[derive(Default)]
struct Slow(AtomicUsize);

/// How long it takes for an answer.
const ANSWER: Duration = Duration::from_secs(30);

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, question: &Question) -> QuestionReply {
        sleep(ANSWER).await;
        match self.0.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => QuestionReply::approved(question, "ada"),
            _ => QuestionReply::denied(question, "ada", "no"),
        }
    }
}

/// Returns how long answers may have been waited for.
fn waited(ran: &Ran) -> Duration {
    let is_asked = |it: &&TurnEvent| matches!(it.body, EventBody::QuestionAsked { .. });
    let asked = ran.events.iter().filter(is_asked).count();
    ANSWER * u32::try_from(asked).unwrap()
}

/// Scene that a seed stands for.
struct Scene {
    bench: Bench,
    /// When the turn must be over that waits for no answer.
    bound: Duration,
    cancel: Option<Duration>,
    /// When the user says something.
    steer: [Duration; 3],
}

fn scene(seed: u64) -> Scene {
    let mut dice = Faults::new(seed);
    let profiles = ["python", "stream", "react", "hub", "shell", "default"];
    let profile = profiles[usize::try_from(dice.roll(6)).unwrap()];
    let script = (0..dice.roll(8)).map(|_| dice.reply()).collect();
    let mut bench = Bench::new(profile, script);
    for name in ["f1", "f2"].into_iter().take(seed as usize % 3) {
        bench = bench.fallback(name, (0..seed % 5).map(|_| dice.reply()).collect());
    }
    let deadline = Duration::from_millis(1_000 + dice.roll(120_000));
    bench.profile.limits.turn_timeout = Some(deadline);
    bench.model.streaming = dice.roll(4) > 0;
    bench.model.context_tokens = (dice.roll(3) == 0).then(|| 40 + dice.roll(4_000));
    if dice.roll(6) == 0 {
        bench.gate = Arc::new(AskAlways);
        bench.approver = Arc::new(Slow::default());
    }
    let (look, act) = (dice.acts(), dice.acts());
    let mut moment = || Duration::from_millis(dice.roll(60_000));
    let (cancel, mut steer) = (moment(), [moment(), moment(), moment()]);
    steer.sort();
    Scene {
        bound: deadline + bench.profile.limits.cancel_grace * 2,
        bench: bench.tool("look", true, &look).tool("act", false, &act),
        cancel: (dice.roll(3) == 0).then_some(cancel),
        steer,
    }
}

impl Scene {
    async fn play(self) -> (Ran, Arc<ScriptedModel>) {
        let (cancel, steer) = (self.cancel, self.steer);
        self.bench
            .run_with(|handle| async move {
                let saying = async {
                    let mut said = Duration::ZERO;
                    for at in steer {
                        sleep(at - said).await;
                        said = at;
                        let _ = handle.steer(format!("at {at:?} {}", "long ".repeat(100)));
                    }
                };
                let stopping = async {
                    if let Some(after) = cancel {
                        sleep(after).await;
                        handle.cancel();
                    }
                };
                tokio::join!(saying, stopping);
            })
            .await
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_any_kind_end_in_time_with_a_result() {
    for seed in 0..SEEDS {
        let scene = scene(seed);
        let bound = scene.bound.max(scene.cancel.unwrap_or_default());
        let (ran, model) = scene.play().await;
        let bound = bound + waited(&ran);
        assert!(
            ran.took <= bound,
            "SEED={seed}: took {:?} of {bound:?}",
            ran.took
        );
        for request in model.requests.lock().unwrap().iter() {
            assert!(crate::pairing::is_paired(&request.messages), "SEED={seed}");
        }
    }
}

/// Events of the machine: the driver adds the rest, of which there are no records.
fn decided(events: &[TurnEvent]) -> Vec<(TimeMs, EventBody)> {
    let all = events.iter().map(|event| (event.at, event.body.clone()));
    all.filter(|(_, body)| is_decided(body)).collect()
}

fn is_decided(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::Init(_)
            | EventBody::Result(_)
            | EventBody::TextDelta { .. }
            | EventBody::ReasoningDelta { .. }
            | EventBody::ToolOutputDelta { .. }
            | EventBody::RequestQueued
            // Told again if a turn continues that waits for an answer.
            | EventBody::ApprovalRequested { .. }
            | EventBody::QuestionAsked { .. }
            | EventBody::QuestionAnswered { .. }
            | EventBody::Resumed { .. }
            | EventBody::ToolCallInDoubt { .. }
    )
}

/// Drives the records again, and compares with what lived.
fn check_redriven(seed: u64, records: &[Record], ran: &Ran) {
    let again = scene(seed).bench.redrive(records);
    let again = again.unwrap_or_else(|error| panic!("SEED={seed}: {error}"));
    let was_resumed = |it: &Record| matches!(it.body, RecordBody::Resumed { .. });
    if !again.finished && records.iter().any(was_resumed) {
        // It continued, and no model could be reached: it stays to be resumed.
        assert_eq!(ran.outcome.stop_reason, StopReason::Error, "SEED={seed}");
        assert!(History::of(records).open_turn().is_some(), "SEED={seed}");
        return;
    }
    assert!(again.finished && again.machine.is_done(), "SEED={seed}");
    let mut outcome = *again.open.outcome.unwrap();
    // What was not heard was not recorded either.
    outcome
        .undelivered_steering
        .clone_from(&ran.outcome.undelivered_steering);
    assert_eq!(outcome, ran.outcome, "SEED={seed}");
    let history = History::of(records);
    assert_eq!(history.open_turn(), None, "SEED={seed}");
    assert_eq!(history.transcript(), ran.outcome.transcript, "SEED={seed}");
    let mut told = again.events;
    told.retain(|(_, body)| is_decided(body));
    let live = decided(&ran.events);
    let missed = told.len().checked_sub(live.len()).unwrap();
    assert_eq!(told.split_off(missed), live, "SEED={seed}");
}

/// Possible prefixes after a crash: the records up to an effect.
fn cuts(records: &[Record]) -> Vec<usize> {
    let is_started = |at: usize| {
        let body = records.get(at).map(|it| &it.body);
        matches!(body, Some(RecordBody::ToolStarted { .. }))
    };
    let ends = records.iter().enumerate().filter(|(at, it)| match it.body {
        RecordBody::ModelRequested { .. } | RecordBody::Asked { .. } | RecordBody::Cancelled => {
            true
        }
        RecordBody::ToolStarted { .. } => !is_started(at + 1),
        _ => false,
    });
    ends.map(|(at, _)| at + 1).collect()
}

#[tokio::test(start_paused = true)]
async fn the_records_of_a_turn_lead_to_the_same_again() {
    let mut changes = HashSet::new();
    for seed in 0..SEEDS {
        let scene = scene(seed);
        let journal = Arc::clone(&scene.bench.records);
        let (ran, _) = scene.play().await;
        check_redriven(seed, &journal.records(), &ran);
        changes.extend(journal.records().iter().filter_map(change));
    }
    assert_eq!(
        changes.len(),
        3,
        "all ways to make room are among them: {changes:?}"
    );
}

fn change(record: &Record) -> Option<&'static str> {
    match &record.body {
        RecordBody::Compacted(it) => Some(match it.change {
            Change::Summarised { .. } => "summarised",
            Change::Dropped { .. } => "dropped",
            Change::Cut { .. } => "cut",
            Change::Described { .. } => "described",
            Change::Unsealed { .. } => "unsealed",
        }),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_transcript_of_a_session_cut_off_anywhere_is_paired_and_survives_storing() {
    for seed in 0..SEEDS / 6 {
        let scene = scene(seed);
        let journal = Arc::clone(&scene.bench.records);
        scene.play().await;
        let mut history = History::default();
        for record in journal.records() {
            history.take(&record);
            assert!(is_paired(&history.transcript()), "SEED={seed}");
            let stored = serde_json::to_string(&history).unwrap();
            assert_eq!(
                history,
                serde_json::from_str(&stored).unwrap(),
                "SEED={seed}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_cut_off_anywhere_ends_in_time_and_its_records_lead_to_the_same_again() {
    for seed in 0..SEEDS {
        let first = scene(seed);
        let journal = Arc::clone(&first.bench.records);
        first.play().await;
        let mut records = journal.records();
        let cuts = cuts(&records);
        let at = Dice::new(seed + SEEDS).roll(cuts.len() as u64);
        records.truncate(cuts[usize::try_from(at).unwrap()]);
        let second = scene(seed);
        let (bound, journal) = (second.bound, Arc::clone(&second.bench.records));
        let ran = second.bench.resume(records).await;
        let bound = bound + waited(&ran);
        assert!(
            ran.took <= bound,
            "SEED={seed}: took {:?} of {bound:?}",
            ran.took
        );
        check_redriven(seed, &journal.records(), &ran);
    }
}
