//! Tests: continuing with the next model, with its records and events.

use super::fakes::{Beat, Bench, Ran, answer, calls, text};
use crate::ports::{Record, RecordBody};
use rondo_types::{ErrorClass, EventBody, Message, StopReason};
use std::sync::Arc;

fn requested(records: &[Record]) -> Vec<(&str, u32, u32)> {
    let requests = records.iter().filter_map(|record| match &record.body {
        RecordBody::ModelRequested { model, attempt, .. } => {
            Some((model.as_str(), record.step, *attempt))
        }
        _ => None,
    });
    requests.collect()
}

fn told(ran: &Ran) -> Vec<(&str, &str, ErrorClass, &str)> {
    let events = ran.events.iter().filter_map(|event| match &event.body {
        EventBody::ModelFallback {
            from,
            to,
            class,
            message,
        } => Some((from.as_str(), to.as_str(), *class, message.as_str())),
        _ => None,
    });
    events.collect()
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_goes_to_the_next_model_and_the_journal_names_it() {
    let bench = Bench::new(
        "default",
        vec![calls(&[("look", "{}")]), vec![Beat::Fail(ErrorClass::Auth)]],
    );
    let bench = bench
        .fallback("f1", vec![vec![Beat::Fail(ErrorClass::NotFound)]])
        .fallback("f2", vec![answer("done")])
        .tool("look", true, &[]);
    let records = Arc::clone(&bench.records);
    let ran = bench.run().await;
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!((ran.outcome.text.as_str(), ran.outcome.steps), ("done", 2));
    assert_eq!(ran.outcome.model.as_deref(), Some("p/f2"));
    let expected = [("p/m", 1, 0), ("p/m", 2, 0), ("p/f1", 2, 0), ("p/f2", 2, 0)];
    assert_eq!(requested(&records.records()), expected);
    let notes = [
        ("p/m", "p/f1", ErrorClass::Auth, "scripted"),
        ("p/f1", "p/f2", ErrorClass::NotFound, "scripted"),
    ];
    assert_eq!(told(&ran), notes);
    let origins: Vec<_> = ran.outcome.transcript.iter().filter_map(origin).collect();
    assert_eq!(origins, ["m", "f2"]);
}

fn origin(message: &Arc<Message>) -> Option<&str> {
    let origin = message.origin.as_ref()?;
    Some(origin.model.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_is_left_for_the_next_one() {
    let bench = Bench::new("default", vec![vec![Beat::Hang]; 5]).fallback("f1", vec![]);
    let ran = bench.run().await;
    assert_eq!(ran.outcome.text, "end of script");
    assert_eq!(told(&ran)[0].2, ErrorClass::FirstByteTimeout);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_breaks_after_it_was_shown_ends_the_turn_as_ever() {
    let broken = vec![Beat::Event(text("half")), Beat::Fail(ErrorClass::Network)];
    let ran = Bench::new("default", vec![broken])
        .fallback("f1", vec![])
        .run()
        .await;
    assert!(told(&ran).is_empty());
    assert_eq!(ran.outcome.stop_reason, StopReason::Error);
    assert_eq!(ran.outcome.model.as_deref(), Some("p/m"));
}
