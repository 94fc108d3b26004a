//! Tests: requests that a provider refuses for what they hold are sent again without it.

use super::sim::{Ran, Say, Sim, calls, origin, text};
use rondo_types::{
    CompactionKind, ContentBlock, ErrorClass, EventBody, Media, MediaKind, MediaSource, Message,
    ModelError, Opaque, Part, ReasoningPart, ToolOutcome, ToolOutput, Transcript,
};
use std::sync::Arc;

fn refusal(class: ErrorClass, message: &str) -> Say {
    Say::Fail {
        error: ModelError::new(class, message),
        partial: "",
        committed: false,
    }
}

fn image() -> Media {
    Media {
        kind: MediaKind::Image,
        mime: "image/png".into(),
        source: MediaSource::Base64("QUJD".into()),
        name: Some("a.png".into()),
    }
}

fn seen(text: &str) -> Arc<Message> {
    let mut message = Message::user(text);
    message.parts.push(Part::Media(image()));
    message.into()
}

fn said(text: &str) -> Arc<Message> {
    let origin = Some(origin());
    let message = Message::assistant(text);
    Message { origin, ..message }.into()
}

fn thought(text: &str) -> Arc<Message> {
    let mut message = Message::clone(&said(text));
    let opaque = Some(Opaque {
        origin: origin(),
        json: "{}".into(),
    });
    let text = "hm".into();
    message
        .parts
        .insert(0, Part::Reasoning(ReasoningPart { text, opaque }));
    message.into()
}

fn images(transcript: &Transcript) -> usize {
    let parts = transcript.iter().flat_map(|it| &it.parts);
    parts
        .map(|part| match part {
            Part::Media(_) => 1,
            Part::ToolResult(result) => result.media().count(),
            _ => 0,
        })
        .sum()
}

fn changes(ran: &Ran) -> Vec<CompactionKind> {
    let kind = |it: &EventBody| match it {
        EventBody::Compacted { how, .. } => Some(*how),
        _ => None,
    };
    ran.events.iter().filter_map(kind).collect()
}

#[test]
fn an_image_that_is_refused_is_described_from_then_on() {
    for (class, message) in [
        (ErrorClass::BadRequest, "this model does not support images"),
        (ErrorClass::BadRequest, "invalid request"),
        (ErrorClass::Server, "image input is not supported"),
        (
            ErrorClass::NotFound,
            "no endpoints that support image input",
        ),
        (ErrorClass::ContentFilter, "the image was blocked"),
    ] {
        let mut sim = Sim::new("default", vec![refusal(class, message), text("ok")]);
        sim.history = vec![seen("look")];
        let ran = sim.run();
        assert_eq!(ran.outcome.text, "ok", "{message}");
        assert_eq!(images(&ran.requests[0].request.messages), 1);
        assert_eq!(images(&ran.requests[1].request.messages), 0);
        assert_eq!(images(&ran.outcome.transcript), 0);
        let described = ran.outcome.transcript[0].text();
        assert!(described.contains("[image `a.png`"), "{described}");
        assert_eq!(changes(&ran), [CompactionKind::Described]);
        assert_eq!(ran.outcome.steps, 1);
    }
}

#[test]
fn the_image_of_a_result_that_is_refused_is_described_from_then_on() {
    let script = vec![
        calls(&[("look", "{}")]),
        refusal(ErrorClass::BadRequest, "could not process image"),
        text("ok"),
    ];
    let mut sim = Sim::new("default", script);
    sim.tool = Box::new(|_| {
        ToolOutcome::Ok(ToolOutput {
            blocks: vec![ContentBlock::Media(image())],
            ..ToolOutput::default()
        })
    });
    let ran = sim.run();
    assert_eq!(ran.outcome.text, "ok");
    assert_eq!(images(&ran.outcome.transcript), 0);
}

#[test]
fn images_that_the_model_has_seen_stay_until_they_are_named() {
    let history = vec![seen("one"), said("a cat"), seen("two")];
    let script = vec![refusal(ErrorClass::BadRequest, "bad image"), text("ok")];
    let mut sim = Sim::new("default", script);
    sim.history.clone_from(&history);
    assert_eq!(images(&sim.run().outcome.transcript), 1);

    let refused = || refusal(ErrorClass::BadRequest, "too many images");
    let mut sim = Sim::new("default", vec![refused(), refused(), text("ok")]);
    sim.history = history;
    let ran = sim.run();
    assert_eq!(ran.outcome.text, "ok");
    assert_eq!(images(&ran.outcome.transcript), 0);
}

#[test]
fn reasoning_that_another_address_sealed_is_left_out_from_then_on() {
    for message in ["encrypted content could not be verified", "invalid request"] {
        let script = vec![refusal(ErrorClass::BadRequest, message), text("ok")];
        let mut sim = Sim::new("default", script);
        sim.history = vec![Message::user("q").into(), thought("a")];
        let ran = sim.run();
        assert_eq!(ran.outcome.text, "ok", "{message}");
        let kept = &ran.outcome.transcript[1];
        assert_eq!((kept.text().as_str(), &kept.origin), ("a", &None));
        assert!(!crate::compaction::is_sealed(kept));
        assert_eq!(changes(&ran), [CompactionKind::Unsealed]);
    }
}

#[test]
fn a_refusal_that_has_other_reasons_changes_nothing() {
    for (class, message) in [
        (ErrorClass::BadRequest, "unsupported parameter: `top_k`"),
        (ErrorClass::Unsupported, "does not support tools"),
        (ErrorClass::Auth, "no access to image models"),
        (ErrorClass::NotFound, "no such model"),
    ] {
        let mut sim = Sim::new("default", vec![refusal(class, message)]);
        sim.history = vec![seen("look"), thought("a cat"), seen("and now")];
        let ran = sim.run();
        assert_eq!(ran.requests.len(), 1, "{message}");
        assert_eq!(images(&ran.outcome.transcript), 2);
        assert!(changes(&ran).is_empty());
    }
}

#[test]
fn a_request_that_stays_refused_ends_the_turn_with_the_last_reason() {
    let refused = || refusal(ErrorClass::BadRequest, "invalid image or signature");
    let mut sim = Sim::always("default", move |_| refused());
    sim.history = vec![seen("look"), thought("a cat"), seen("and now")];
    let ran = sim.run();
    assert!(ran.requests.len() <= 4, "{}", ran.requests.len());
    assert!(ran.outcome.error.is_some());
}

#[test]
fn a_temperature_that_the_model_refuses_is_left_out_for_the_rest_of_the_turn() {
    let script = vec![
        refusal(ErrorClass::BadRequest, "Unsupported value: 'temperature'"),
        calls(&[("look", "{}")]),
        text("ok"),
    ];
    let mut sim = Sim::new("default", script);
    sim.profile.sampling.temperature = Some(0.5);
    let ran = sim.run();
    assert_eq!(ran.outcome.text, "ok");
    let sent = ran
        .requests
        .iter()
        .map(|it| it.request.sampling.temperature);
    assert_eq!(sent.collect::<Vec<_>>(), [Some(0.5), None, None]);
    let is_told =
        |it: &EventBody| matches!(it, EventBody::Warning { text } if text.contains("temperature"));
    assert_eq!(ran.events.iter().filter(|it| is_told(it)).count(), 1);
}
