//! Tests: cancelling and steering a running turn.

use super::fakes::{Act, Beat, Bench, answer, calls, text};
use crate::ports::MailId;
use rondo_types::{
    EventBody, Media, MediaKind, MediaSource, Message, Part, StopReason, ToolErrorCode,
};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn fa_28_fa_30_a_cancel_in_the_middle_of_a_stream_ends_the_turn_at_once() {
    let script = vec![vec![Beat::Event(text("half")), Beat::Hang]];
    let (ran, _) = Bench::new("stream", script)
        .run_cancelled(Duration::from_secs(3))
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.took, Duration::from_secs(3));
    assert!(ran.outcome.text.contains("half"));
}

#[tokio::test(start_paused = true)]
async fn fa_28_a_cancel_waits_for_the_tools_teardown_and_pairs_every_call() {
    let asked = calls(&[("act", r#"{"n":1}"#), ("act", r#"{"n":2}"#)]);
    let (ran, model) = Bench::new("stream", vec![asked])
        .tool("act", false, &[Act::UntilCancelled])
        .run_cancelled(Duration::from_secs(2))
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    let codes: Vec<_> = ran
        .outcome
        .transcript
        .iter()
        .flat_map(|it| it.results().map(|it| it.error))
        .collect();
    assert_eq!(
        codes,
        [Some(ToolErrorCode::Cancelled), Some(ToolErrorCode::NotRun)]
    );
    assert_eq!(
        model.requests.lock().unwrap().len(),
        1,
        "no request after the cancel"
    );
    assert!(
        ran.events
            .iter()
            .any(|it| matches!(it.body, EventBody::ToolOutputDelta { .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_bounded_by_the_grace_period_where_a_tool_ignores_it() {
    let (ran, _) = Bench::new("stream", vec![calls(&[("act", "{}")])])
        .tool("act", false, &[Act::Stubborn])
        .run_cancelled(Duration::from_secs(1))
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.took, Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_waiting_for_a_retry_ends_the_turn_at_once() {
    let script = vec![vec![Beat::Fail(rondo_types::ErrorClass::Server)]; 5];
    let (ran, _) = Bench::new("default", script)
        .run_with(|handle| async move {
            sleep(Duration::from_millis(200)).await;
            handle.cancel();
        })
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(ran.took, Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn steering_reaches_the_next_request() {
    let script = vec![calls(&[("act", "{}")]), answer("changed course")];
    let (ran, model) = Bench::new("default", script)
        .tool("act", false, &[Act::SleepThenReturn(5_000)])
        .run_with(|handle| async move {
            sleep(Duration::from_secs(1)).await;
            assert!(handle.steer("look elsewhere"));
        })
        .await;
    assert_eq!(ran.outcome.text, "changed course");
    let requests = model.requests.lock().unwrap();
    assert_eq!(
        requests[1].messages.last().unwrap().text(),
        "look elsewhere"
    );
}

#[tokio::test(start_paused = true)]
async fn steering_is_taken_back_until_the_next_request() {
    let script = vec![
        calls(&[("act", "{}")]),
        calls(&[("act", "{}")]),
        answer("changed course"),
    ];
    let (first, second) = (MailId(1), MailId(2));
    let (ran, model) = Bench::new("default", script)
        .tool("act", false, &[Act::SleepThenReturn(5_000)])
        .run_with(|handle| async move {
            sleep(Duration::from_secs(1)).await;
            assert!(handle.steer_from(first, 0, Message::user("left")));
            assert!(handle.steer_from(second, 0, Message::user("right")));
            sleep(Duration::from_secs(1)).await;
            assert!(handle.take_back(first));
            assert!(!handle.take_back(first));
            assert!(handle.was_taken_back(first));
            assert!(!handle.was_taken_back(first));
            // By then the second request was made.
            sleep(Duration::from_secs(5)).await;
            assert!(!handle.take_back(second));
            assert!(!handle.was_taken_back(second));
        })
        .await;
    assert_eq!(ran.outcome.text, "changed course");
    let requests = model.requests.lock().unwrap();
    let said = |at: usize| requests[at].messages.last().unwrap().text();
    assert_eq!(said(1), "right");
    let all: Vec<String> = requests[2].messages.iter().map(|it| it.text()).collect();
    assert!(!all.contains(&"left".to_owned()), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn steering_brings_its_images_along_and_tells_of_them() {
    let image = Media {
        kind: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: Some("shot.png".to_owned()),
        source: MediaSource::Base64("QUJD".to_owned()),
    };
    let message = Message {
        parts: vec![Part::text("like this"), Part::Media(image.clone())],
        ..Message::user("")
    };
    let script = vec![calls(&[("act", "{}")]), answer("changed course")];
    let said = message.clone();
    let (ran, model) = Bench::new("default", script)
        .tool("act", false, &[Act::SleepThenReturn(5_000)])
        .run_with(|handle| async move {
            sleep(Duration::from_secs(1)).await;
            assert!(handle.steer(said));
        })
        .await;
    let requests = model.requests.lock().unwrap();
    assert_eq!(**requests[1].messages.last().unwrap(), message);
    let steered = ran.events.iter().find_map(|it| match &it.body {
        EventBody::Steered { text, media } => Some((text.as_str(), media.clone())),
        _ => None,
    });
    assert_eq!(steered, Some(("like this", vec![image.info()])));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_the_stop_reason_whatever_else_ran_out() {
    let asked = calls(&[("act", r#"{"n":1}"#), ("act", r#"{"n":2}"#)]);
    let mut bench = Bench::new("default", vec![asked]);
    bench.profile.limits.max_tool_calls = Some(1);
    let (ran, _) = bench
        .tool("act", false, &[Act::UntilCancelled])
        .run_cancelled(Duration::from_secs(2))
        .await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Cancelled);
}
