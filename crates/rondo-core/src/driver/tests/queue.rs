//! Requests that wait before they are sent.

use super::fakes::{Beat, Bench, Ran, answer};
use rondo_types::{ErrorClass, EventBody, ModelEvent, StopReason};
use std::time::Duration;

/// Waits so long to be sent, and as long for the reply after that.
fn queued(wait_ms: u64, reply_ms: u64) -> Vec<Beat> {
    let mut beats = vec![
        Beat::Event(ModelEvent::Queued),
        Beat::Sleep(wait_ms),
        Beat::Event(ModelEvent::Sent),
        Beat::Sleep(reply_ms),
    ];
    beats.extend(answer("done"));
    beats
}

async fn run(first: Vec<Beat>) -> Ran {
    let mut bench = Bench::new("default", vec![first]);
    bench.profile.limits.turn_timeout = Some(Duration::from_secs(1_000));
    bench.profile.limits.step_timeout = Some(Duration::from_secs(200));
    bench.profile.limits.first_byte_timeout = Some(Duration::from_secs(100));
    bench.profile.limits.retry.max_retries = 0;
    bench.profile.limits.reserve_final = false;
    bench.run().await
}

#[tokio::test(start_paused = true)]
async fn the_wait_to_be_sent_is_none_of_the_providers() {
    let ran = run(queued(700_000, 99_000)).await;
    assert_eq!(ran.outcome.text, "done");
    let queued = ran.events.iter().map(|event| &event.body);
    let queued = queued.filter(|body| **body == EventBody::RequestQueued);
    assert_eq!(queued.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_providers_time_begins_when_the_request_is_sent() {
    let ran = run(queued(700_000, 101_000)).await;
    let error = ran.outcome.error.unwrap();
    assert_eq!(error.class, ErrorClass::FirstByteTimeout);
    assert_eq!(ran.took, Duration::from_secs(800));
}

#[tokio::test(start_paused = true)]
async fn the_turns_deadline_ends_the_wait() {
    let ran = run(vec![Beat::Event(ModelEvent::Queued), Beat::Hang]).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert_eq!(ran.took, Duration::from_secs(1_000));
    assert_eq!(ran.outcome.usage.total(), 0, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn after_the_wait_the_step_has_what_is_left_of_the_turn_at_most() {
    let ran = run(queued(950_000, 60_000)).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Deadline);
    assert_eq!(ran.took, Duration::from_secs(1_000));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait() {
    let waiting = vec![Beat::Event(ModelEvent::Queued), Beat::Hang];
    let bench = Bench::new("default", vec![waiting]);
    let cancel_later = |handle: crate::TurnHandle| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.cancel();
    };
    let (ran, _) = bench.run_with(cancel_later).await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.took, Duration::from_secs(5));
}
