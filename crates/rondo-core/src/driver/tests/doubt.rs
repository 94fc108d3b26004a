//! Edge cases of a resumed turn: time, cancels, questions, tools that do not answer.

use super::fakes::{Act, AskAlways, Bench, Ran, answer, calls, observe, watch};
use crate::driver::{TurnEnd, control, resume_turn};
use crate::ports::{
    Append, AppendError, Approver, Fence, Gate, GateRequest, InterruptedCall, Journal,
    MemoryJournal, QuestionReply, Reconciled, Record, RecordBody, Seq, Tool, ToolInvocation,
    Verdict, WrappedJournal,
};
use async_trait::async_trait;
use rondo_types::{
    AnswerValue, CallId, Concurrency, Effects, EventBody, Question, QuestionKind, Recovery,
    StopReason, ToolErrorCode, ToolOutcome, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

const DEADLINE: Duration = Duration::from_secs(60);

/// A tool that never ends, and never says what it knows.
struct Silent(Recovery);

#[async_trait]
impl Tool for Silent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "silent".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: self.0,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        std::future::pending().await
    }

    async fn evidence(&self, _: &Value) -> Option<Value> {
        std::future::pending().await
    }

    async fn reconcile(&self, _: &InterruptedCall) -> Reconciled {
        std::future::pending().await
    }
}

fn bench(recovery: Recovery) -> Bench {
    let mut bench = Bench::new("default", vec![calls(&[("silent", "{}")])]);
    bench.profile.limits.turn_timeout = Some(DEADLINE);
    bench.tools.push(Arc::new(Silent(recovery)));
    bench
}

/// Returns the records up to the last one of a kind.
fn up_to(records: &[Record], is_last: impl Fn(&RecordBody) -> bool) -> Vec<Record> {
    let last = records.iter().rposition(|it| is_last(&it.body)).unwrap();
    records[..=last].to_vec()
}

fn is_started(body: &RecordBody) -> bool {
    matches!(body, RecordBody::ToolStarted { .. })
}

/// Returns the records of a turn that is cut off in its call.
async fn cut_off(recovery: Recovery) -> Vec<Record> {
    let bench = bench(recovery);
    let records = Arc::clone(&bench.records);
    bench.run().await;
    up_to(&records.records(), is_started)
}

fn codes(ran: &Ran) -> Vec<Option<ToolErrorCode>> {
    let messages = ran.outcome.transcript.iter();
    messages
        .flat_map(|it| it.results().map(|it| it.error))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_off_stays_in_doubt_if_nobody_answers_in_time() {
    let records = cut_off(Recovery::Confirm).await;
    let ran = bench(Recovery::Confirm).resume(records).await;
    assert_eq!(codes(&ran).first(), Some(&Some(ToolErrorCode::InDoubt)));
    let week = crate::driver::ask::ANSWER_TIMEOUT;
    assert!(week <= ran.took && ran.took <= week + DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_say_what_it_knows_is_waited_for_within_the_turns_time() {
    let mut first = bench(Recovery::Checkable);
    first.profile.limits.turn_timeout = Some(Duration::from_secs(4));
    first.profile.limits.reserve_final = false;
    let grace = first.profile.limits.cancel_grace;
    let records = Arc::clone(&first.records);
    let ran = first.run().await;
    assert!(ran.took <= Duration::from_secs(4) + grace, "{:?}", ran.took);
    let again = bench(Recovery::Checkable);
    let ran = again.resume(up_to(&records.records(), is_started)).await;
    assert!(ran.took <= Duration::from_secs(4) + grace, "{:?}", ran.took);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_what_a_tool_knows() {
    let bench = bench(Recovery::Checkable);
    let (ran, _) = bench.run_cancelled(Duration::from_secs(1)).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert!(ran.took < Duration::from_secs(9), "{:?}", ran.took);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_recorded_before_the_teardown_is_waited_for() {
    let scene = || {
        let asked = calls(&[("act", "{}"), ("act", r#"{"n":2}"#)]);
        Bench::new("default", vec![asked]).tool("act", false, &[Act::Stubborn])
    };
    let bench = scene();
    let journal = Arc::clone(&bench.records);
    let seen = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&seen);
    bench
        .run_with(|handle| async move {
            sleep(Duration::from_secs(1)).await;
            handle.cancel();
            sleep(Duration::from_millis(10)).await;
            *kept.lock().unwrap() = journal.records();
        })
        .await;
    let records = seen.lock().unwrap().clone();
    assert_eq!(
        records.last().map(|it| &it.body),
        Some(&RecordBody::Cancelled)
    );
    let ran = scene().resume(records).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(
        codes(&ran),
        [Some(ToolErrorCode::InDoubt), Some(ToolErrorCode::NotRun)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_open_is_told_to_the_new_listener() {
    let scene = || {
        let mut bench = Bench::new("default", vec![calls(&[("act", "{}")])]);
        bench.profile.limits.turn_timeout = Some(DEADLINE);
        bench.gate = Arc::new(AskAlways);
        bench.tool("act", false, &[])
    };
    let bench = scene();
    let journal = Arc::clone(&bench.records);
    bench.run().await;
    let is_asked = |body: &RecordBody| matches!(body, RecordBody::Asked { .. });
    let ran = scene().resume(up_to(&journal.records(), is_asked)).await;
    let asked = ran.events.iter().position(
        |it| matches!(&it.body, EventBody::ApprovalRequested { prompt, .. } if prompt == "run it?"),
    );
    let answered = ran
        .events
        .iter()
        .position(|it| matches!(it.body, EventBody::ApprovalResolved { .. }));
    assert!(asked.unwrap() < answered.unwrap());
}

/// Takes its time.
struct Slow(Arc<MemoryJournal>, Duration);

#[async_trait]
impl WrappedJournal for Slow {
    fn inner(&self) -> &dyn Journal {
        &*self.0
    }

    async fn append_around(&self, fence: &Fence, append: Append) -> Result<Seq, AppendError> {
        sleep(self.1).await;
        self.0.append(fence, append).await
    }
}

/// Runs a turn with one call over a journal that takes so long for each append.
async fn slowly(append: Duration, deadline: Duration, act: Act) -> Ran {
    let mut bench = Bench::new("default", vec![calls(&[("act", "{}")]), answer("done")]);
    bench.profile.limits.turn_timeout = Some(deadline);
    bench.profile.limits.reserve_final = false;
    bench.journal = Arc::new(Slow(Arc::clone(&bench.records), append));
    bench.tool("act", false, &[act]).run().await
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_recorded_after_the_turns_time_does_not_begin() {
    let append = Duration::from_secs(29);
    let ran = slowly(append, append * 2 - Duration::from_secs(1), Act::Return).await;
    assert_eq!(codes(&ran), [Some(ToolErrorCode::NotRun)]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    let ran = slowly(append, append * 2 + Duration::from_secs(1), Act::Return).await;
    assert_eq!(codes(&ran), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_began_late_has_what_is_left_of_the_turn() {
    let ran = slowly(Duration::from_secs(20), DEADLINE, Act::UntilCancelled).await;
    let ran_for = ran.events.iter().find_map(|event| match event.body {
        EventBody::ToolCallFinished { duration_ms, .. } => Some(duration_ms),
        _ => None,
    });
    // The request and the call were recorded first.
    assert_eq!(ran_for, Some(20_000));
}

#[tokio::test(start_paused = true)]
async fn each_downtime_is_told_once() {
    let downtimes = |records: &[Record]| -> Vec<u64> {
        let all = records.iter().filter_map(|it| match it.body {
            RecordBody::Resumed { downtime_ms } => Some(downtime_ms),
            _ => None,
        });
        all.collect()
    };
    let mut records = cut_off(Recovery::AtMostOnce).await;
    for record in &mut records {
        record.at_ms = rondo_types::TimeMs(1_000);
    }
    for _ in 0..2 {
        let bench = bench(Recovery::AtMostOnce);
        let journal = Arc::clone(&bench.records);
        bench.resume(records).await;
        records = journal.records();
        let open = |body: &RecordBody| matches!(body, RecordBody::ModelRequested { .. });
        records = up_to(&records, open);
    }
    let told = downtimes(&records);
    assert_eq!(told.len(), 2);
    assert!(told[1] < told[0] / 2, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_records_of_one_model_are_not_taken_for_anothers() {
    let fails = || vec![super::fakes::Beat::Fail(rondo_types::ErrorClass::Auth)];
    let scene = |name| Bench::new("default", vec![fails()]).fallback(name, vec![answer("done")]);
    let bench = scene("f1");
    let journal = Arc::clone(&bench.records);
    bench.run().await;
    let records = journal.records();
    assert!(scene("f1").redrive(&records).is_ok());
    assert!(scene("f2").redrive(&records).is_err());
}

struct Answers(AnswerValue);

#[async_trait]
impl Approver for Answers {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::answered(question, "ada", self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_about_a_cut_off_call_is_recorded_and_carried_out() {
    let denied = AnswerValue::Deny {
        reason: "leave it".into(),
    };
    let edited = AnswerValue::value(serde_json::json!({}));
    for (approval, approved) in [
        (AnswerValue::Approve, true),
        (denied, false),
        (edited, false),
    ] {
        let records = cut_off(Recovery::Confirm).await;
        let mut bench = bench(Recovery::Confirm);
        bench.approver = Arc::new(Answers(approval));
        let journal = Arc::clone(&bench.records);
        let ran = bench.resume(records).await;
        let code = match approved {
            true => ToolErrorCode::Timeout,
            false => ToolErrorCode::InDoubt,
        };
        assert_eq!(codes(&ran).first(), Some(&Some(code)));
        let is_answer = |it: &&Record| matches!(it.body, RecordBody::ApprovalResolved { .. });
        assert_eq!(journal.records().iter().filter(is_answer).count(), 1);
        let answered = |it: &EventBody| matches!(it, EventBody::ApprovalResolved { approved: it, .. } if *it == approved);
        assert!(ran.events.iter().any(|it| answered(&it.body)));
    }
}

struct AnswersLater;

#[async_trait]
impl Approver for AnswersLater {
    async fn ask(&self, _: &Question) -> QuestionReply {
        QuestionReply::Later { expires: None }
    }
}

#[tokio::test(start_paused = true)]
async fn whether_a_cut_off_call_runs_again_can_be_answered_later() {
    let records = cut_off(Recovery::Confirm).await;
    let mut bench = bench(Recovery::Confirm);
    bench.approver = Arc::new(AnswersLater);
    let (setup, _) = bench.setup();
    let (_handle, control) = control();
    let history = rondo_types::Transcript::new();
    let seen = watch(async |events| {
        let resumed = resume_turn(setup, history, &records, events, control);
        resumed.await.unwrap()
    })
    .await;
    let TurnEnd::Parked(parked) = seen.end else {
        panic!("it waits")
    };
    let kinds = parked.questions.iter().map(|it| it.kind.clone());
    assert_eq!(kinds.collect::<Vec<_>>(), [QuestionKind::Repeat]);
}

/// Lets nothing pass.
struct DenyAll;

#[async_trait]
impl Gate for DenyAll {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Deny {
            reason: "not now".into(),
        }
    }
}

/// Continues a turn whose calls its records let run, under another gate; returns the outcome of the
/// calls, and whether one of them ran.
async fn under_another_gate(
    is_last: impl Fn(&RecordBody) -> bool,
    gate: Arc<dyn Gate>,
    approval: AnswerValue,
) -> (Vec<Option<ToolErrorCode>>, bool) {
    let scene = || {
        let asked = calls(&[("look", "{}"), ("look", r#"{"n":2}"#)]);
        let mut bench = Bench::new("default", vec![asked, answer("done")]);
        bench.approver = Arc::new(Answers(approval.clone()));
        bench.tool("look", true, &[])
    };
    let bench = scene();
    let journal = Arc::clone(&bench.records);
    bench.run().await;
    let records = journal.records();
    let last = records.iter().position(|it| is_last(&it.body)).unwrap();
    let mut again = scene();
    again.gate = gate;
    again.model.script.lock().unwrap().pop_front();
    let kept = Arc::clone(&again.records);
    let ran = again.resume(records[..=last].to_vec()).await;
    let began = kept.records().iter().any(|it| is_started(&it.body));
    (codes(&ran), began)
}

#[tokio::test(start_paused = true)]
async fn no_call_runs_because_a_record_says_that_it_may() {
    let denied = || AnswerValue::Deny {
        reason: "no".into(),
    };
    let is_judged = |body: &RecordBody| matches!(body, RecordBody::GateJudged { .. });
    let is_second = |body: &RecordBody| {
        let second = CallId::generated(1, 1, 1);
        matches!(body, RecordBody::GateJudged { call_id, .. } if *call_id == second)
    };
    let refused = vec![Some(ToolErrorCode::Denied); 2];
    for (gate, approval) in [
        (Arc::new(DenyAll) as Arc<dyn Gate>, AnswerValue::Approve),
        (Arc::new(AskAlways), denied()),
    ] {
        let half = under_another_gate(is_judged, Arc::clone(&gate), approval.clone()).await;
        assert_eq!(half, (refused.clone(), false));
        let whole = under_another_gate(is_second, gate, approval).await;
        assert_eq!(whole, (refused.clone(), false));
    }
    let asked = under_another_gate(is_second, Arc::new(AskAlways), AnswerValue::Approve).await;
    assert_eq!(asked, (vec![None, None], true));
}

#[tokio::test(start_paused = true)]
async fn what_recovery_a_call_has_is_its_tools_to_say_and_not_the_records() {
    let mut records = cut_off(Recovery::AtMostOnce).await;
    for record in &mut records {
        match &mut record.body {
            RecordBody::TurnEnvironment { tools, .. } => {
                Arc::make_mut(tools)[0].recovery = Recovery::ReadOnly;
            }
            RecordBody::ToolStarted { recovery, .. } => *recovery = Recovery::ReadOnly,
            _ => {}
        }
    }
    let (setup, _) = bench(Recovery::AtMostOnce).setup();
    let (_handle, control) = control();
    let history = rondo_types::Transcript::new();
    let ran = observe(async |events| {
        let resumed = resume_turn(setup, history, &records, events, control);
        resumed.await.unwrap()
    });
    assert_eq!(
        codes(&ran.await).first(),
        Some(&Some(ToolErrorCode::InDoubt))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_off_runs_again_only_where_the_gate_of_now_lets_it() {
    let records = cut_off(Recovery::ReadOnly).await;
    let mut bench = bench(Recovery::ReadOnly);
    bench.gate = Arc::new(DenyAll);
    let ran = bench.resume(records).await;
    assert_eq!(codes(&ran).first(), Some(&Some(ToolErrorCode::Denied)));
}

/// A call whose beginning is recorded, and of which the tool knows that it was not begun, was not running.
#[tokio::test(start_paused = true)]
async fn a_call_that_never_began_is_denied_and_not_in_doubt() {
    let denied = AnswerValue::Deny {
        reason: "not now".into(),
    };
    for known in [Reconciled::NotDone, Reconciled::Unknown] {
        let records = cut_off(Recovery::Checkable).await;
        let mut again = Bench::new("default", vec![calls(&[("silent", "{}")])]);
        again.tools.push(Arc::new(Knowing(known.clone())));
        again.gate = Arc::new(AskAlways);
        again.approver = Arc::new(Answers(denied.clone()));
        let journal = Arc::clone(&again.records);
        let ran = again.resume(records).await;
        let code = match known {
            Reconciled::NotDone => ToolErrorCode::Denied,
            _ => ToolErrorCode::InDoubt,
        };
        assert_eq!(codes(&ran).first(), Some(&Some(code)), "{known:?}");
        // The same holds if the process is killed again as soon as the answer is recorded.
        let is_answer = |it: &RecordBody| matches!(it, RecordBody::ApprovalResolved { .. });
        let later = journal.records();
        if later.iter().any(|it| is_answer(&it.body)) {
            let records = up_to(&later, is_answer);
            let mut bench = bench(Recovery::Checkable);
            bench.gate = Arc::new(AskAlways);
            let ran = bench.resume(records).await;
            assert_eq!(codes(&ran).first(), Some(&Some(code)), "{known:?}");
        }
    }
}

/// A tool that never ends, and says this of every call.
struct Knowing(Reconciled);

#[async_trait]
impl Tool for Knowing {
    fn spec(&self) -> ToolSpec {
        Silent(Recovery::Checkable).spec()
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        std::future::pending().await
    }

    async fn reconcile(&self, _: &InterruptedCall) -> Reconciled {
        self.0.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_under_the_key_of_another_call_is_not_this_ones_result() {
    let knowing = || {
        let mut bench = bench(Recovery::Checkable);
        bench.tools = vec![Arc::new(Knowing(Reconciled::Done(ToolOutcome::text(
            "done",
        ))))];
        bench
    };
    let first = knowing();
    let records = Arc::clone(&first.records);
    first.run().await;
    let mut records = up_to(&records.records(), is_started);
    let ran = knowing().resume(records.clone()).await;
    assert_eq!(codes(&ran).first(), Some(&None));
    for record in &mut records {
        if let RecordBody::ToolStarted {
            idempotency_key, ..
        } = &mut record.body
        {
            idempotency_key.push_str("-another");
        }
    }
    let ran = knowing().resume(records).await;
    assert_eq!(codes(&ran).first(), Some(&Some(ToolErrorCode::InDoubt)));
}
