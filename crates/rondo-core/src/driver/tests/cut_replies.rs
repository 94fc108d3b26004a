//! Replies that break off, and replies that are slow.

use super::fakes::{Beat, Bench, Ran, answer, text};
use rondo_types::{ErrorClass, EventBody, ModelEvent, StopReason};
use std::time::Duration;

fn reasoning(text: &str) -> Beat {
    Beat::Event(ModelEvent::ReasoningDelta {
        candidate: 0,
        text: text.into(),
    })
}

fn retries(ran: &Ran) -> usize {
    let is_retry = |body: &EventBody| matches!(body, EventBody::RetryScheduled { .. });
    ran.events.iter().filter(|it| is_retry(&it.body)).count()
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_after_reasoning_is_asked_for_again() {
    for class in [ErrorClass::Network, ErrorClass::Overloaded] {
        let cut = vec![reasoning("hm"), Beat::Fail(class)];
        let ran = Bench::new("default", vec![cut, answer("whole")])
            .run()
            .await;
        assert_eq!(ran.outcome.text, "whole");
        assert_eq!(retries(&ran), 1);
        assert_eq!(ran.outcome.steps, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_after_text_is_asked_for_again_only_if_nobody_saw_the_text() {
    let script = || {
        let cut = vec![Beat::Event(text("half")), Beat::Fail(ErrorClass::Network)];
        vec![cut, answer("whole")]
    };
    let ran = Bench::new("default", script()).run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(retries(&ran), 0);

    let ran = Bench::new("default", script()).run_unseen().await;
    assert_eq!(ran.outcome.text, "whole");
    assert_eq!(retries(&ran), 1);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_the_connection_open_in_the_middle_of_a_reply_is_no_silence() {
    let pings = |count| {
        let ping = [Beat::Sleep(40_000), Beat::Event(ModelEvent::KeptAlive)];
        std::iter::repeat_n(ping, count).flatten()
    };
    let mut slow = vec![reasoning("hm")];
    slow.extend(pings(5));
    slow.extend(answer("whole"));
    let mut bench = Bench::new("default", vec![slow]);
    bench.profile.limits.idle_timeout = Some(Duration::from_secs(60));
    assert_eq!(bench.run().await.outcome.text, "whole");

    let mut silent: Vec<Beat> = pings(5).collect();
    silent.extend(answer("whole"));
    let mut bench = Bench::new("default", vec![silent]);
    bench.profile.limits.first_byte_timeout = Some(Duration::from_secs(60));
    bench.profile.limits.retry.max_retries = 0;
    let error = bench.run().await.outcome.error.unwrap();
    assert_eq!(error.class, ErrorClass::FirstByteTimeout);
}
