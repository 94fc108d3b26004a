//! Tests: timeouts, deadlines, panics and calls that overlap.

use super::fakes::{
    Act, AskAlways, Beat, Bench, NobodyThere, answer, calls, finished, text, watch,
};
use crate::ports::QuestionReply;
use rondo_types::{
    ErrorClass, EventBody, FinishReason, ModelEvent, Question, ResponseName, StopReason,
    ToolErrorCode,
};
use std::sync::Arc;
use std::time::Duration;

fn error_codes(ran: &super::fakes::Ran) -> Vec<Option<ToolErrorCode>> {
    ran.outcome
        .transcript
        .iter()
        .flat_map(|it| it.results().map(|it| it.error))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_question_with_one_call_is_answered() {
    let bench = Bench::new(
        "default",
        vec![calls(&[("look", r#"{"a":1}"#)]), answer("found")],
    );
    let ran = bench.tool("look", true, &[]).run().await;
    assert_eq!(ran.outcome.text, "found");
    assert_eq!((ran.outcome.steps, ran.outcome.tool_calls), (2, 1));
    assert_eq!(ran.outcome.findings[0].digest, r#"look did {"a":1}"#);
}

#[tokio::test(start_paused = true)]
async fn py_11_py_43_a_request_that_hangs_ends_at_the_step_timeout() {
    let mut bench = Bench::new("python", vec![vec![Beat::Hang]]);
    bench.model.streaming = false;
    let ran = bench.run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert_eq!(ran.took, Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn fa_27_hub_10_the_request_timeout_covers_the_whole_stream_not_its_opening() {
    for (profile, seconds) in [("stream", 120), ("hub", 30)] {
        // A piece every second keeps the idle timer quiet.
        let beat = [Beat::Event(text("x")), Beat::Sleep(1_000)];
        let slow: Vec<Beat> = beat.into_iter().cycle().take(1_000).collect();
        let ran = Bench::new(profile, vec![slow]).run().await;
        assert_eq!(
            ran.outcome.stop_reason,
            StopReason::StepTimeout,
            "{profile}"
        );
        assert_eq!(ran.took, Duration::from_secs(seconds));
        assert!(ran.outcome.text.contains("xxx"), "what was said is kept");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_ends_at_the_idle_timeout_and_is_retried_only_before_output() {
    let shown = vec![Beat::Event(text("so far")), Beat::Hang];
    let ran = Bench::new("default", vec![shown]).run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert_eq!(
        ran.outcome.error.as_ref().map(|it| it.class),
        Some(ErrorClass::IdleTimeout)
    );
    assert_eq!(ran.took, Duration::from_secs(60));

    let silent = vec![Beat::Hang];
    let ran = Bench::new("default", vec![silent, answer("second try")])
        .run()
        .await;
    assert_eq!(ran.outcome.text, "second try");
    assert!(ran.took >= Duration::from_secs(121) && ran.took < Duration::from_secs(123));
    assert!(ran.events.iter().any(|it| matches!(
        it.body,
        EventBody::RetryScheduled {
            class: ErrorClass::FirstByteTimeout,
            attempt: 1,
            ..
        }
    )));
}

/// Providers name a response at once and think afterwards: that is not a beginning of an answer.
#[tokio::test(start_paused = true)]
async fn a_response_that_is_only_named_is_still_waited_for_and_told_with_its_step() {
    let named = || {
        Beat::Event(ModelEvent::ResponseNamed(ResponseName {
            id: Some("r-1".to_owned()),
            model: Some("m-2026".to_owned()),
        }))
    };
    let mut second = answer("second try");
    second.insert(0, named());
    let ran = Bench::new("default", vec![vec![named(), Beat::Hang], second])
        .run()
        .await;
    assert_eq!(ran.outcome.text, "second try");
    assert!(ran.took >= Duration::from_secs(121) && ran.took < Duration::from_secs(123));
    let ended = ran.events.iter().find_map(|it| match &it.body {
        EventBody::StepFinished {
            response_id,
            response_model,
            ..
        } => Some((response_id.as_deref(), response_model.as_deref())),
        _ => None,
    });
    assert_eq!(ended, Some((Some("r-1"), Some("m-2026"))));
}

#[tokio::test(start_paused = true)]
async fn fa_20_hub_12_a_tool_that_takes_too_long_is_a_timeout_result_and_the_turn_goes_on() {
    for act in [Act::UntilCancelled, Act::Stubborn] {
        let bench = Bench::new("stream", vec![calls(&[("act", "{}")]), answer("anyway")]);
        let ran = bench.tool("act", false, &[act]).run().await;
        assert_eq!(error_codes(&ran), [Some(ToolErrorCode::Timeout)]);
        assert_eq!(ran.outcome.text, "anyway");
        let grace = if act == Act::Stubborn { 5 } else { 0 };
        assert_eq!(ran.took, Duration::from_secs(30 + grace));
    }
}

#[tokio::test(start_paused = true)]
async fn py_12_tool_time_is_inside_the_turns_time() {
    let mut bench = Bench::new("python", vec![calls(&[("act", "{}")])]);
    bench.model.streaming = false;
    let ran = bench.tool("act", false, &[Act::UntilCancelled]).run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert_eq!(ran.took, Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_all_the_time_leaves_what_is_held_back_for_the_answer() {
    // (deadline, act, took), in milliseconds: a quarter is held back, and half of that is for the
    // call to end in.
    for (deadline, act, took) in [
        (20_000, Act::UntilCancelled, 12_500),
        (20_000, Act::Stubborn, 15_000),
        (2_000, Act::UntilCancelled, 1_250),
        (2_000, Act::Stubborn, 1_500),
    ] {
        let script = vec![calls(&[("act", "{}")]), answer("what I have so far")];
        let mut bench = Bench::new("default", script);
        bench.profile.limits.turn_timeout = Some(Duration::from_millis(deadline));
        let ran = bench.tool("act", false, &[act]).run().await;
        assert_eq!(ran.outcome.text, "what I have so far");
        assert!(ran.outcome.answered);
        assert_eq!(error_codes(&ran), [Some(ToolErrorCode::Timeout)]);
        assert_eq!(ran.took, Duration::from_millis(took), "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hub_8_py_48_a_tool_that_panics_is_a_result() {
    let bench = Bench::new("hub", vec![calls(&[("act", "{}")]), answer("still here")]);
    let ran = bench.tool("act", false, &[Act::Panic]).run().await;
    assert_eq!(error_codes(&ran), [Some(ToolErrorCode::Internal)]);
    assert_eq!(ran.outcome.text, "still here");
}

#[tokio::test(start_paused = true)]
async fn hub_5_hub_14_shared_calls_overlap_in_time_and_commit_in_call_order() {
    let asked = calls(&[("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)]);
    let acts = [Act::SleepThenReturn(2_000), Act::SleepThenReturn(1_000)];
    let ran = Bench::new("hub", vec![asked, answer("both")])
        .tool("look", true, &acts)
        .run()
        .await;
    assert_eq!(ran.took, Duration::from_secs(2));
    let results: Vec<_> = ran
        .outcome
        .transcript
        .iter()
        .flat_map(|it| it.results().map(|result| result.content.to_text()))
        .collect();
    assert_eq!(results, [r#"look did {"n":1}"#, r#"look did {"n":2}"#]);
}

#[tokio::test(start_paused = true)]
async fn py_27_fa_21_exclusive_calls_never_overlap() {
    let asked = calls(&[("act", r#"{"n":1}"#), ("act", r#"{"n":2}"#)]);
    let acts = [Act::SleepThenReturn(2_000), Act::SleepThenReturn(1_000)];
    let ran = Bench::new("stream", vec![asked, answer("both")])
        .tool("act", false, &acts)
        .run()
        .await;
    assert_eq!(ran.took, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn py_27_calls_that_only_look_run_one_after_another_too_under_the_design() {
    let asked = calls(&[("look", r#"{"n":1}"#), ("look", r#"{"n":2}"#)]);
    let acts = [Act::SleepThenReturn(2_000), Act::SleepThenReturn(1_000)];
    let mut bench = Bench::new("python", vec![asked, answer("both")]);
    bench.model.streaming = false;
    let ran = bench.tool("look", true, &acts).run().await;
    assert_eq!(ran.took, Duration::from_secs(3));
    let durations: Vec<u64> = ran
        .events
        .iter()
        .filter_map(|it| match it.body {
            EventBody::ToolCallFinished { duration_ms, .. } => Some(duration_ms),
            _ => None,
        })
        .collect();
    assert_eq!(durations, [2_000, 1_000]);
}

#[tokio::test(start_paused = true)]
async fn an_endless_stream_ends_at_its_bound() {
    let mut bench = Bench::new("stream", vec![vec![Beat::Flood]]);
    bench.profile.limits.step_timeout = Some(Duration::from_millis(50));
    let ran = bench.run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::StepTimeout);
    assert!(ran.took < Duration::from_millis(100));
}

/// Approves after a minute, or puts the answer off then.
struct Slow {
    puts_off: bool,
}

#[async_trait::async_trait]
impl crate::ports::Approver for Slow {
    async fn ask(&self, question: &Question) -> QuestionReply {
        tokio::time::sleep(MINUTE).await;
        match self.puts_off {
            true => QuestionReply::Later { expires: None },
            false => QuestionReply::approved(question, "ada"),
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Calls that are asked about, under a deadline that comes before a slow answer.
fn asked_slowly(asked: &[(&str, &str)], puts_off: bool) -> Bench {
    let said = [Beat::Sleep(20_000)].into_iter().chain(answer("done"));
    let script = vec![calls(asked), said.collect()];
    let mut bench = Bench::new("default", script).tool("act", false, &[]);
    bench.gate = Arc::new(AskAlways);
    bench.approver = Arc::new(Slow { puts_off });
    bench.profile.limits.turn_timeout = Some(Duration::from_secs(40));
    bench
}

const ONE: &[(&str, &str)] = &[("act", "{}")];

#[tokio::test(start_paused = true)]
async fn waiting_for_an_answer_about_a_call_takes_nothing_of_the_turns_time() {
    let ran = asked_slowly(ONE, false).run().await;
    assert_eq!(error_codes(&ran), [None]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.took, MINUTE + Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn answers_to_several_questions_at_once_take_nothing_of_the_turns_time() {
    let two = [("act", "{}"), ("act", r#"{"n":2}"#)];
    let ran = asked_slowly(&two, false).run().await;
    assert_eq!(error_codes(&ran), [None, None]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.took, 2 * MINUTE + Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waited_before_it_was_parked_has_its_time_when_it_goes_on() {
    let bench = asked_slowly(ONE, true);
    let journal = Arc::clone(&bench.records);
    let (setup, _) = bench.setup();
    let (_handle, control) = crate::driver::control();
    let message = rondo_types::Message::user("q");
    let seen =
        watch(|events| crate::driver::run_turn(setup, Vec::new(), message, events, control)).await;
    assert!(matches!(seen.end, crate::driver::TurnEnd::Parked(_)));
    let later = asked_slowly(ONE, false);
    later.model.script.lock().unwrap().pop_front();
    let ran = later.resume(journal.records()).await;
    assert_eq!(error_codes(&ran), [None]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_never_answers_denies_after_a_week() {
    let mut bench = asked_slowly(ONE, false);
    bench.approver = Arc::new(NobodyThere);
    let ran = bench.run().await;
    assert_eq!(error_codes(&ran), [Some(ToolErrorCode::Denied)]);
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let week = Duration::from_secs(7 * 24 * 3600);
    assert_eq!(ran.took, week + Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_an_answer_can_be_cancelled_after_its_deadline() {
    let mut bench = asked_slowly(ONE, false);
    bench.approver = Arc::new(NobodyThere);
    let (ran, _) = bench
        .run_with(|handle| async move {
            tokio::time::sleep(MINUTE).await;
            handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.took, MINUTE);
}

#[tokio::test(start_paused = true)]
async fn fa_10_reasoning_is_apart_from_text() {
    use rondo_types::ModelEvent;
    let thought = ModelEvent::ReasoningDelta {
        candidate: 0,
        text: "hm".into(),
    };
    let script = vec![vec![
        Beat::Event(thought),
        Beat::Event(text("yes")),
        finished(FinishReason::Stop),
    ]];
    let ran = Bench::new("stream", script).run().await;
    assert_eq!(ran.outcome.text, "yes");
    assert!(
        ran.events
            .iter()
            .any(|it| it.body == EventBody::ReasoningDelta { text: "hm".into() })
    );
}

/// Takes its time, then allows.
struct SlowGate(u64);

#[async_trait::async_trait]
impl crate::ports::Gate for SlowGate {
    async fn check(&self, _request: &crate::ports::GateRequest) -> crate::ports::Verdict {
        tokio::time::sleep(Duration::from_millis(self.0)).await;
        crate::ports::Verdict::Allow
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_gate_neither_outlives_the_turn_nor_lets_a_call_begin_after_it() {
    for (gate_ms, took_ms) in [(1_499, 1_499), (1_500, 1_500), (9_000, 1_500)] {
        let script = vec![calls(&[("act", "{}")]), answer("without it")];
        let mut bench = Bench::new("default", script);
        bench.gate = std::sync::Arc::new(SlowGate(gate_ms));
        bench.profile.limits.turn_timeout = Some(Duration::from_secs(2));
        let ran = bench.tool("act", false, &[]).run().await;
        assert_eq!(ran.outcome.text, "without it", "gate {gate_ms} ms");
        assert_eq!(ran.outcome.tool_calls, u32::from(gate_ms < 1_500));
        assert_eq!(ran.took, Duration::from_millis(took_ms));
    }
}

#[tokio::test(start_paused = true)]
async fn no_timeout_is_too_long_for_the_clock() {
    let mut bench = Bench::new("default", vec![answer("done")]);
    let limits = &mut bench.profile.limits;
    limits.first_byte_timeout = Some(Duration::MAX);
    limits.idle_timeout = Some(Duration::MAX);
    limits.step_timeout = Some(Duration::MAX);
    limits.turn_timeout = Some(Duration::MAX);
    assert_eq!(bench.run().await.outcome.text, "done");
}

#[tokio::test(start_paused = true)]
async fn py_48_a_model_that_panics_is_an_error_with_an_outcome() {
    let ran = Bench::new("default", vec![vec![Beat::Panic]]).run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    let class = ran.outcome.error.map(|error| error.class);
    assert_eq!(class, Some(ErrorClass::Internal));
}
