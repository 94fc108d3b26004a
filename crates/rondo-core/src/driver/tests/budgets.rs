//! Budgets that turns share: reservations, settlements, and turns whose budget is spent.

use super::fakes::{Beat, Bench, Ran, Seen, answer, calls, check_replayed, watch};
use super::journal::kinds;
use crate::driver::{TurnEnd, control, run_turn};
use crate::ports::{
    Amount, Approver, Budgets, Interceptor, MemoryBudget, QuestionReply, Record, RecordBody,
    Reservation, ReservationRequest, Reserved, StepContext, StepDecision,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use rondo_types::{
    Answer, AnswerValue, ErrorClass, Message, Question, QuestionId, QuestionKind, SessionId,
    StopReason, TimeMs, Transcript,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// Grants so many requests, and notes what is settled.
#[derive(Default)]
struct Counts {
    grants: Mutex<usize>,
    told: Mutex<Vec<String>>,
}

fn counts(grants: usize) -> Arc<Counts> {
    let grants = Mutex::new(grants);
    Arc::new(Counts {
        grants,
        ..Counts::default()
    })
}

impl Counts {
    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[async_trait]
impl Budgets for Counts {
    async fn reserve(&self, request: &ReservationRequest) -> Reserved {
        let (id, beyond) = (&request.id, request.beyond);
        self.told
            .lock()
            .unwrap()
            .push(format!("reserve {id} {beyond}"));
        let mut grants = self.grants.lock().unwrap();
        if *grants == 0 && !beyond {
            let reason = "the day's money is spent".to_owned();
            return Reserved::Spent { reason };
        }
        *grants = grants.saturating_sub(1);
        Reserved::Granted
    }

    async fn settle(&self, _: &SessionId, id: &str, used: Amount) {
        let is_used = used.tokens > 0;
        self.told
            .lock()
            .unwrap()
            .push(format!("settle {id} {is_used}"));
    }
}

/// Never answers, or panics.
struct Broken {
    panics: bool,
}

#[async_trait]
impl Budgets for Broken {
    async fn reserve(&self, _: &ReservationRequest) -> Reserved {
        assert!(!self.panics, "broken");
        std::future::pending().await
    }

    async fn settle(&self, _: &SessionId, _: &str, _: Amount) {}
}

/// Answers questions about budgets, and about nothing else.
struct Says(SaysNext);

#[expect(
    clippy::large_enum_variant,
    reason = "one is held at a time, and not for long"
)]
enum SaysNext {
    No,
    Yes,
    Later(TimeMs),
    Given(Answer),
}

#[async_trait]
impl Approver for Says {
    async fn ask(&self, question: &Question) -> QuestionReply {
        assert_eq!(question.kind, QuestionKind::Budget);
        match &self.0 {
            SaysNext::No => QuestionReply::denied(question, "ada", "no"),
            SaysNext::Yes => QuestionReply::approved(question, "ada"),
            SaysNext::Later(at) => QuestionReply::Later { expires: Some(*at) },
            SaysNext::Given(answer) => QuestionReply::Answered(answer.clone(), None),
        }
    }
}

fn bench(budget: Arc<dyn Budgets>) -> Bench {
    let script = vec![calls(&[("look", "{}")]), answer("done")];
    let mut bench = Bench::new("default", script).tool("look", true, &[]);
    bench.budgets.push(budget);
    bench.approver = Arc::new(Says(SaysNext::No));
    bench
}

/// Approves after an hour.
struct Slow;

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, question: &Question) -> QuestionReply {
        sleep(HOUR).await;
        QuestionReply::approved(question, "ada")
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn waiting_for_an_answer_about_a_budget_takes_nothing_of_the_time_of_the_step_and_the_turn() {
    let mut bench = bench(counts(1));
    bench.approver = Arc::new(Slow);
    let limits = &bench.profile.limits;
    assert!(limits.turn_timeout.unwrap() < HOUR && limits.step_timeout.unwrap() < HOUR);
    let (seen, _) = ran(bench).await;
    assert_eq!(seen.outcome.stop_reason, StopReason::Complete);
    assert_eq!(seen.took, HOUR);
}

async fn ran(bench: Bench) -> (Ran, Vec<Record>) {
    let records = Arc::clone(&bench.records);
    (bench.run().await, records.records())
}

fn reservations(records: &[Record]) -> Vec<Reservation> {
    let all = records.iter().filter_map(|it| match &it.body {
        RecordBody::Reserved(reservation) => Some(reservation.clone()),
        _ => None,
    });
    all.collect()
}

#[tokio::test(start_paused = true)]
async fn each_request_is_reserved_for_before_it_is_sent_and_settled_after_it() {
    let budget = counts(9);
    let (seen, records) = ran(bench(Arc::clone(&budget) as _)).await;
    assert_eq!(seen.outcome.text, "done");
    assert_eq!(
        budget.told(),
        [
            "reserve budget-1-0 false",
            "settle budget-1-0 true",
            "reserve budget-1-1 false",
            "settle budget-1-1 true",
        ]
    );
    let kinds = kinds(&records);
    assert_eq!(kinds[3..5], ["reserved", "model_requested"]);
    let ids: Vec<String> = reservations(&records).into_iter().map(|it| it.id).collect();
    assert_eq!(ids, ["budget-1-0", "budget-1-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_unheard_costs_nothing_and_its_repetition_is_reserved_for() {
    let budget = counts(9);
    let script = vec![vec![Beat::Fail(ErrorClass::Server)], answer("done")];
    let mut bench = Bench::new("default", script);
    bench.budgets.push(Arc::clone(&budget) as _);
    let (seen, _) = ran(bench).await;
    assert_eq!(seen.outcome.text, "done");
    assert_eq!(
        budget.told(),
        [
            "reserve budget-1-0 false",
            "settle budget-1-0 false",
            "reserve budget-1-1 false",
            "settle budget-1-1 true",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_ends_the_turn_with_what_was_found() {
    let (seen, records) = ran(bench(counts(1))).await;
    let outcome = &seen.outcome;
    assert_eq!(outcome.stop_reason, StopReason::BudgetSpent);
    assert!(outcome.degraded && !outcome.answered);
    assert!(
        outcome.text.contains("the day's money is spent"),
        "{}",
        outcome.text
    );
    assert!(outcome.text.contains("look did {}"), "{}", outcome.text);
    let last = reservations(&records).pop().unwrap();
    assert_eq!(last.refused, Some("the day's money is spent".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn of_several_budgets_one_refusal_is_enough_and_the_others_get_back_what_they_granted() {
    let plenty = counts(9);
    let mut bench = bench(Arc::clone(&plenty) as _);
    bench.budgets.push(counts(0));
    let (seen, _) = ran(bench).await;
    assert_eq!(seen.outcome.stop_reason, StopReason::BudgetSpent);
    assert_eq!(
        plenty.told(),
        ["reserve budget-1-0 false", "settle budget-1-0 false"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_panics_or_hangs_grants_nothing() {
    for (panics, why) in [(true, "broken"), (false, "did not answer in time")] {
        let (seen, records) = ran(bench(Arc::new(Broken { panics }))).await;
        assert_eq!(seen.outcome.stop_reason, StopReason::BudgetSpent);
        assert!(seen.outcome.text.contains(why), "{}", seen.outcome.text);
        assert!(!kinds(&records).contains(&"model_requested"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_a_budget() {
    let (seen, _) = bench(Arc::new(Broken { panics: false }))
        .run_cancelled(Duration::from_secs(1))
        .await;
    assert_eq!(seen.outcome.stop_reason, StopReason::Cancelled);
    assert!(seen.took < Duration::from_secs(2), "{:?}", seen.took);
}

#[tokio::test(start_paused = true)]
async fn a_person_lets_a_turn_go_on_beyond_its_budget_to_its_end() {
    let budget = counts(0);
    let mut bench = bench(Arc::clone(&budget) as _);
    bench.approver = Arc::new(Says(SaysNext::Yes));
    let (seen, records) = ran(bench).await;
    assert_eq!(seen.outcome.stop_reason, StopReason::Complete);
    assert_eq!(
        budget.told(),
        [
            "reserve budget-1-0 false",
            "settle budget-1-0 false",
            "reserve budget-1-0 true",
            "settle budget-1-0 true",
            "reserve budget-1-1 true",
            "settle budget-1-1 true",
        ]
    );
    assert!(reservations(&records).iter().all(|it| it.beyond));
}

/// Runs a turn whose budget is spent at its second request, and whose question is answered later.
async fn parked() -> (Question, Vec<Record>) {
    let mut bench = bench(counts(1));
    bench.approver = Arc::new(Says(SaysNext::Later(TimeMs(7))));
    let journal = Arc::clone(&bench.records);
    let (setup, _) = bench.setup();
    let (_handle, turn_control) = control();
    let message = Message::user("q");
    let turn = |events| run_turn(setup, Transcript::new(), message, events, turn_control);
    let Seen { end, events, .. } = watch(turn).await;
    check_replayed(&journal.records(), &events);
    let TurnEnd::Parked(parked) = end else {
        panic!("{end:?}")
    };
    let [question] = &parked.questions[..] else {
        panic!("{parked:?}")
    };
    (question.clone(), journal.records())
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_budget_is_spent_parks_with_a_question_about_it() {
    let (question, records) = parked().await;
    let expected = Question {
        id: QuestionId("budget-1-1".to_owned()),
        call: None,
        child: None,
        kind: QuestionKind::Budget,
        prompt: "the day's money is spent: may the turn go on beyond that?".to_owned(),
        hash: question.hash.clone(),
        expires: Some(TimeMs(7)),
        offers: Vec::new(),
        reasons: Vec::new(),
        subject: rondo_types::QuestionSubject::default(),
    };
    assert_eq!(question, expected);
    assert_eq!(kinds(&records).last(), Some(&"parked"));

    for (value, reason) in [
        (AnswerValue::Approve, StopReason::Complete),
        (
            AnswerValue::Deny {
                reason: "no".to_owned(),
            },
            StopReason::BudgetSpent,
        ),
    ] {
        let budget = counts(0);
        let script = vec![answer("done")];
        let mut again = Bench::new("default", script).tool("look", true, &[]);
        again.budgets.push(Arc::clone(&budget) as _);
        let answer = Answer {
            question: question.id.clone(),
            hash: question.hash.clone(),
            actor: "ada".to_owned(),
            value,
            remember: None,
        };
        again.approver = Arc::new(Says(SaysNext::Given(answer)));
        let journal = Arc::clone(&again.records);
        let seen = again.resume(records.clone()).await;
        assert_eq!(seen.outcome.stop_reason, reason);
        assert!(kinds(&journal.records()).contains(&"answered"));
        // The request before may not have been settled.
        assert_eq!(budget.told()[0], "settle budget-1-0 true");
    }
}

/// Notes the steps that it is asked about.
#[derive(Default)]
struct NotesSteps(Mutex<Vec<u32>>);

#[async_trait]
impl Interceptor for NotesSteps {
    fn name(&self) -> &str {
        "notes"
    }

    async fn step_start(&self, step: &StepContext) -> StepDecision {
        self.0.lock().unwrap().push(step.step);
        StepDecision::Continue
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_budget_was_asked_about_is_not_put_to_the_interceptors_again_after_a_crash() {
    let (_, records) = parked().await;
    let asked = kinds(&records).iter().position(|kind| *kind == "asked");
    let asked = asked.unwrap();
    for (kept, steps) in [(asked, vec![2]), (asked + 1, vec![])] {
        let mut again = Bench::new("default", vec![answer("done")]).tool("look", true, &[]);
        again.budgets.push(counts(1));
        let notes = Arc::new(NotesSteps::default());
        again.interceptors.push(Arc::clone(&notes) as _);
        let seen = again.resume(records[..kept].to_vec()).await;
        assert_eq!(seen.outcome.stop_reason, StopReason::Complete);
        assert_eq!(*notes.0.lock().unwrap(), steps, "{kept} records");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_share_a_budget_never_spend_more_than_it_has() {
    const TOKENS: u64 = 8_000;
    let budget = Arc::new(MemoryBudget::new(Some(TOKENS), None));
    let turns = (0..12).map(|n| {
        let slow = |mut beats: Vec<Beat>| {
            beats.insert(0, Beat::Sleep(10 + n));
            beats
        };
        let script = vec![slow(calls(&[("look", "{}")])), slow(answer("done"))];
        let mut bench = Bench::new("default", script).tool("look", true, &[]);
        bench.budgets.push(Arc::clone(&budget) as _);
        let (mut setup, _) = bench.setup();
        setup.session = SessionId::new(format!("s{n}"));
        let (_, turn_control) = control();
        let message = Message::user("q");
        let budget = Arc::clone(&budget);
        async move {
            let turn = |events| run_turn(setup, Transcript::new(), message, events, turn_control);
            let end = watch(turn).await.end;
            assert!(budget.committed().tokens <= TOKENS);
            end.outcome().unwrap().stop_reason
        }
    });
    let ends = join_all(turns).await;
    let count = |reason| ends.iter().filter(|it| **it == reason).count();
    // All ask at once, and what is not used is given back for the later ones.
    assert!(count(StopReason::Complete) >= 3, "{ends:?}");
    assert!(count(StopReason::BudgetSpent) >= 3, "{ends:?}");
    assert_eq!(budget.committed(), budget.used());
    assert!(budget.used().tokens <= TOKENS);
}
