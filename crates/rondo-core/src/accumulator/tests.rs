//! Tests: replies built from the events of their streams.

use super::*;
use proptest::prelude::*;
use rondo_types::{FinishReason, Origin, Usage};

fn fold(events: Vec<ModelEvent>) -> Reply {
    let mut reply = Accumulator::new(ReplyBounds::default());
    for event in events {
        reply.push(event).unwrap();
    }
    reply.finish()
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        candidate: 0,
        text: text.into(),
    }
}

fn thought(text: &str) -> ModelEvent {
    ModelEvent::ReasoningDelta {
        candidate: 0,
        text: text.into(),
    }
}

fn started(call: u32, id: &str, name: &str) -> ModelEvent {
    let wire_id = (!id.is_empty()).then(|| id.to_owned());
    ModelEvent::ToolCallStarted {
        candidate: 0,
        call,
        wire_id,
        name: name.into(),
    }
}

fn delta(call: u32, arguments: &str) -> ModelEvent {
    ModelEvent::ToolCallDelta {
        call,
        arguments: arguments.into(),
    }
}

fn ended(call: u32) -> ModelEvent {
    ModelEvent::ToolCallFinished { call, opaque: None }
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        candidate: 0,
        reason,
        raw: reason.as_str().into(),
    }
}

fn opaque(json: &str) -> Opaque {
    let origin = Origin {
        dialect: "d".into(),
        provider: "p".into(),
        model: "m".into(),
    };
    Opaque {
        origin,
        json: json.into(),
    }
}

#[test]
fn fa_7_fa_8_fa_12_text_is_joined_event_by_event() {
    let reply = fold(vec![text("Hel"), text("lo"), finished(FinishReason::Stop)]);
    let candidate = &reply.candidates[0];
    assert_eq!(candidate.text(), "Hello");
    assert_eq!(candidate.parts.len(), 1);
    assert_eq!(candidate.finish_reason, Some(FinishReason::Stop));
}

#[test]
fn fa_9_fa_11_fa_12_interleaved_calls_are_assembled_by_their_keys() {
    let reply = fold(vec![
        started(0, "a", "first"),
        started(1, "b", "second"),
        delta(1, "{\"y\""),
        delta(0, "{\"x\""),
        delta(0, ":1}"),
        delta(1, ":2}"),
        ended(1),
        ended(0),
    ]);
    let calls: Vec<_> = reply.candidates[0]
        .tool_calls()
        .map(|it| {
            (
                it.wire_id.as_deref(),
                it.name.as_str(),
                it.arguments.as_str(),
                it.complete,
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            (Some("a"), "first", "{\"x\":1}", true),
            (Some("b"), "second", "{\"y\":2}", true)
        ]
    );
}

#[test]
fn fa_10_reasoning_is_kept_apart_from_text() {
    let reply = fold(vec![
        thought("hm"),
        thought("m"),
        text("yes"),
        thought("more"),
    ]);
    let candidate = &reply.candidates[0];
    assert_eq!(
        (candidate.text().as_str(), candidate.reasoning().as_str()),
        ("yes", "hmmmore")
    );
    assert_eq!(candidate.parts.len(), 3, "the order of parts is kept");
}

#[test]
fn what_is_told_later_of_a_response_is_added_and_an_older_record_has_none() {
    let named = |id: Option<&str>, model: Option<&str>| {
        ModelEvent::ResponseNamed(rondo_types::ResponseName {
            id: id.map(str::to_owned),
            model: model.map(str::to_owned),
        })
    };
    let reply = fold(vec![named(Some("r-1"), None), named(None, Some("m"))]);
    let mut record = serde_json::to_value(&reply).unwrap();
    let response = serde_json::json!({"id": "r-1", "model": "m"});
    assert_eq!(record["response"], response);
    assert_eq!(
        serde_json::from_value::<Reply>(record.clone()).unwrap(),
        reply
    );
    record.as_object_mut().unwrap().remove("response");
    let older: Reply = serde_json::from_value(record.clone()).unwrap();
    assert_eq!(serde_json::to_value(&older).unwrap(), record);
}

#[test]
fn fa_13_an_empty_stream_is_an_empty_reply() {
    assert_eq!(fold(vec![]), Reply::default());
}

#[test]
fn a_call_without_its_end_is_incomplete() {
    let reply = fold(vec![started(0, "a", "f"), delta(0, "{}")]);
    assert!(!reply.candidates[0].tool_calls().next().unwrap().complete);
}

#[test]
fn a_late_name_and_id_reach_their_call_and_an_id_sent_twice_is_kept_once() {
    let reply = fold(vec![
        started(0, "", ""),
        delta(0, "{}"),
        ModelEvent::ToolCallNamed {
            call: 0,
            wire_id: Some("a".into()),
            name: Some("f".into()),
        },
        started(1, "a", "g"),
        ended(0),
        ended(1),
    ]);
    let calls: Vec<_> = reply.candidates[0]
        .tool_calls()
        .map(|it| (it.wire_id.as_deref(), it.name.as_str()))
        .collect();
    assert_eq!(calls, [(Some("a"), "f"), (None, "g")]);
}

#[test]
fn a_sealed_part_is_never_appended_to() {
    let seal = |json: &str| ModelEvent::PartClosed {
        candidate: 0,
        opaque: opaque(json),
    };
    let reply = fold(vec![text("a"), seal("1"), text("b"), seal("2"), seal("3")]);
    let parts: Vec<_> = reply.candidates[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => (it.text.as_str(), it.opaque.as_ref().unwrap().json.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(parts, [("a", "1"), ("b", "2"), ("", "3")]);
}

#[test]
fn candidates_are_kept_apart_and_the_last_usage_and_reason_win() {
    let usage = |input| {
        ModelEvent::Usage(Usage {
            input,
            ..Usage::default()
        })
    };
    let other = ModelEvent::TextDelta {
        candidate: 1,
        text: "other".into(),
    };
    let reply = fold(vec![
        text("one"),
        other,
        usage(5),
        finished(FinishReason::Stop),
        text(" more"),
        finished(FinishReason::Length),
        usage(9),
    ]);
    let texts: Vec<_> = reply.candidates.iter().map(Candidate::text).collect();
    assert_eq!(texts, ["one more", "other"]);
    assert_eq!(reply.usage.unwrap().input, 9);
    assert_eq!(
        reply.candidates[0].finish_reason,
        Some(FinishReason::Length)
    );
    assert_eq!(reply.candidates[0].raw_finish_reasons, ["stop", "length"]);
}

#[test]
fn every_bound_holds_at_one_less_itself_and_one_more() {
    let bounds = ReplyBounds {
        bytes_max: 8,
        text_bytes_max: 5,
        candidates_max: 2,
        calls_max: 2,
        parts_max: 3,
    };
    let fits = |events: Vec<ModelEvent>| {
        let mut reply = Accumulator::new(bounds);
        events
            .into_iter()
            .try_for_each(|event| reply.push(event))
            .is_ok()
    };
    for (count, ok) in [(4, true), (5, true), (6, false)] {
        assert_eq!(fits(vec![text("x"); count]), ok, "{count} bytes of text");
        let arguments = vec![started(0, "", ""), delta(0, &"x".repeat(count))];
        assert_eq!(fits(arguments), ok, "{count} bytes of arguments");
    }
    for (count, ok) in [(3, true), (4, true), (5, false)] {
        let part = ModelEvent::OpaquePart {
            candidate: 0,
            opaque: opaque(&"x".repeat(count)),
        };
        assert_eq!(fits(vec![text("xxxx"), part]), ok, "4 and {count} bytes");
    }
    for (count, ok) in [(1, true), (2, true), (3, false)] {
        let candidates = (0..count).map(|it| ModelEvent::TextDelta {
            candidate: it,
            text: "x".into(),
        });
        assert_eq!(fits(candidates.collect()), ok, "{count} candidates");
    }
    for (count, ok) in [(2, true), (3, true), (4, false)] {
        let parts = [text("x"), thought("y")].into_iter().cycle().take(count);
        assert_eq!(fits(parts.collect()), ok, "{count} parts");
    }
}

#[test]
fn calls_beyond_their_bound_are_left_out_and_the_first_ones_stand() {
    for (count, kept) in [(1, 1), (2, 2), (3, 2), (9, 2)] {
        let mut reply = Accumulator::new(ReplyBounds {
            calls_max: 2,
            ..ReplyBounds::default()
        });
        for number in 0..count {
            let name = format!("f{number}");
            for event in [
                started(number, "", &name),
                delta(number, "{}"),
                ended(number),
            ] {
                reply.push(event).unwrap();
            }
        }
        let reply = reply.finish();
        let calls: Vec<_> = reply.candidates[0].tool_calls().collect();
        let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["f0", "f1"][..kept], "{count}");
        assert!(
            calls
                .iter()
                .all(|call| call.complete && call.arguments == "{}")
        );
    }
}

proptest! {
    #[test]
    fn how_text_and_arguments_are_cut_changes_nothing(
        words in "[a-zä{}\":, ]{0,40}", cuts in prop::collection::vec(0_usize..40, 0..6)
    ) {
        let mut pieces = vec![words.as_str()];
        for cut in cuts {
            let Some(last) = pieces.pop() else { break };
            let at = (0..=cut.min(last.len())).rev().find(|it| last.is_char_boundary(*it)).unwrap();
            let (head, tail) = last.split_at(at);
            pieces.extend([head, tail]);
        }
        let whole = fold(vec![text(&words), started(0, "", "f"), delta(0, &words), ended(0)]);
        let mut events: Vec<_> = pieces.iter().map(|it| text(it)).collect();
        events.push(started(0, "", "f"));
        events.extend(pieces.iter().map(|it| delta(0, it)));
        events.push(ended(0));
        prop_assert_eq!(whole, fold(events));
    }
}
