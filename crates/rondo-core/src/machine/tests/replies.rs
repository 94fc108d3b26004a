//! Tests: replies that are answers, those that are corrected, and those that end the turn.

use super::sim::{Say, Sim, calls, empty, reply, text};
use rondo_types::{
    Candidate, EventBody, FinishReason, Message, Part, Reply, Role, StopReason, TextPart, Usage,
};

#[test]
fn py_29_py_30_a_text_reply_is_the_answer_at_any_step() {
    let ran = Sim::new("python", vec![text("42")]).run();
    assert_eq!(ran.outcome.text, "42");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert!(!ran.outcome.degraded && ran.outcome.answered);
    assert_eq!(ran.outcome.steps, 1);

    let ran = Sim::new("python", vec![calls(&[("look", "{}")]), text("42")]).run();
    assert_eq!((ran.outcome.text.as_str(), ran.outcome.steps), ("42", 2));
}

#[test]
fn py_22_the_history_begins_with_the_question() {
    let ran = Sim::new("python", vec![text("a")]).run();
    let first = &ran.requests[0].request;
    assert_eq!(*first.messages[0], Message::user("q"));
    assert_eq!(first.messages.len(), 1);
    assert_eq!(*first.system, ["system"]);
}

#[test]
fn py_23_py_24_the_models_message_goes_back_unchanged_and_results_in_one_message() {
    let part = Part::Text(TextPart {
        text: "thinking".into(),
        opaque: Some(rondo_types::Opaque {
            origin: super::sim::origin(),
            json: "{ }".into(),
        }),
    });
    let mut parts = vec![part.clone()];
    parts.push(super::sim::call_part("look", r#"{"a":1}"#));
    parts.push(super::sim::call_part("look", r#"{"a":2}"#));
    let said = Say::Reply(reply(parts, FinishReason::Stop));
    let ran = Sim::new("python", vec![said, text("done")]).run();
    let messages = &ran.requests[1].request.messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1].parts[0], part);
    let arguments: Vec<_> = messages[1]
        .tool_calls()
        .map(|call| call.arguments.clone())
        .collect();
    assert_eq!(arguments, [r#"{"a":1}"#, r#"{"a":2}"#]);
    assert_eq!(messages[2].role, Role::Tool);
    assert_eq!(messages[2].results().count(), 2);
}

#[test]
fn py_13_py_45_empty_replies_are_corrected_once_then_the_turn_degrades() {
    let ran = Sim::new("python", vec![empty(), text("ok")]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let corrective = ran.requests[1].request.messages.last().unwrap().clone();
    assert!(corrective.role == Role::User && corrective.synthetic);
    assert_eq!(ran.outcome.steps, 2, "a corrective request is a step");

    let ran = Sim::new("python", vec![empty(), empty()]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::InvalidResponse);
    assert!(ran.outcome.degraded && !ran.outcome.answered);
}

#[test]
fn py_13_empty_blocked_and_malformed_replies_share_one_budget() {
    let malformed = Say::Reply(reply(vec![], FinishReason::MalformedCall));
    let nameless = calls(&[("", "{}")]);
    let blocked = Say::Reply(Reply {
        prompt_blocked: Some("SAFETY".into()),
        ..Reply::default()
    });
    for first in [&malformed, &nameless, &blocked] {
        for second in [&malformed, &nameless, &blocked] {
            let ran = Sim::new("python", vec![first.clone(), second.clone()]).run();
            assert_eq!(ran.requests.len(), 2);
            assert!(ran.outcome.degraded);
            let rejected = ran
                .events
                .iter()
                .filter(|it| matches!(it, EventBody::ReplyRejected { .. }));
            assert_eq!(rejected.count(), 2);
        }
    }
}

#[test]
fn invalid_retries_hold_at_one_less_the_bound_and_one_more() {
    for (bad, complete) in [(1, true), (2, true), (3, false)] {
        let mut script = vec![empty(); bad];
        script.push(text("late"));
        let ran = Sim::new("default", script).run();
        assert_eq!(
            ran.outcome.stop_reason == StopReason::Complete,
            complete,
            "{bad} bad replies"
        );
    }
}

#[test]
fn py_21_a_later_candidate_is_taken_when_the_first_is_bad() {
    let mut two = reply(vec![Part::text("bad")], FinishReason::ContentFilter);
    two.candidates.push(Candidate {
        parts: vec![Part::text("good")],
        finish_reason: Some(FinishReason::Stop),
        raw_finish_reasons: vec![],
    });
    let ran = Sim::new("python", vec![Say::Reply(two)]).run();
    assert_eq!(ran.outcome.text, "good");
}

#[test]
fn fa_24_length_and_other_finishes_return_and_an_empty_reply_is_complete() {
    for reason in [FinishReason::Length, FinishReason::Other] {
        let said = Say::Reply(reply(vec![Part::text("t")], reason));
        let ran = Sim::new("stream", vec![said]).run();
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
        assert_eq!(ran.outcome.finish_reason, Some(reason));
    }
    let ran = Sim::new("stream", vec![empty()]).run();
    assert_eq!(
        (ran.outcome.text.as_str(), ran.outcome.stop_reason),
        ("", StopReason::Complete)
    );
}

#[test]
fn a_refusal_ends_the_turn_with_its_text() {
    let refusal = Part::Refusal(TextPart {
        text: "I can't".into(),
        opaque: None,
    });
    let said = Say::Reply(reply(vec![refusal], FinishReason::Stop));
    let ran = Sim::new("default", vec![said]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Refused);
    assert_eq!(ran.outcome.text, "I can't");
}

#[test]
fn fa_29_usage_adds_up_over_steps() {
    let ran = Sim::new("stream", vec![calls(&[("look", "{}")]), text("done")]).run();
    assert_eq!(
        ran.outcome.usage,
        Usage {
            input: 200,
            output: 20,
            ..Usage::default()
        }
    );
}

#[test]
fn a_reply_that_was_not_streamed_is_one_delta() {
    let ran = Sim::new("python", vec![text("whole")]).run();
    let deltas: Vec<_> = ran
        .events
        .iter()
        .filter(|it| matches!(it, EventBody::TextDelta { .. }))
        .collect();
    assert_eq!(
        deltas,
        [&EventBody::TextDelta {
            text: "whole".into()
        }]
    );
    let ran = Sim::new("stream", vec![text("whole")]).run();
    assert!(
        !ran.events
            .iter()
            .any(|it| matches!(it, EventBody::TextDelta { .. }))
    );
}

#[test]
fn a_call_in_a_refused_reply_is_no_call() {
    let parts = vec![Part::text("I won't"), super::sim::call_part("act", "{}")];
    let refused = Say::Reply(reply(parts, FinishReason::Refusal));
    let ran = Sim::new("default", vec![refused]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Refused);
    assert_eq!(ran.outcome.text, "I won't");
    assert!(ran.runs.is_empty());
}

fn paused(said: &str) -> Say {
    let searched = Part::Opaque(rondo_types::Opaque {
        origin: super::sim::origin(),
        json: r#"{"type":"server_tool_use"}"#.into(),
    });
    Say::Reply(reply(
        vec![Part::text(said), searched],
        FinishReason::Paused,
    ))
}

#[test]
fn a_paused_reply_goes_back_as_it_is_and_is_a_step() {
    let ran = Sim::new("default", vec![paused("looking"), text("42")]).run();
    assert_eq!(ran.outcome.text, "42");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    assert_eq!(ran.outcome.steps, 2);
    let messages = &ran.requests[1].request.messages;
    assert_eq!(messages.len(), 2, "nothing is said in between");
    assert!(messages[1].paused && messages[1].role == Role::Assistant);
    assert_eq!(messages[1].parts.len(), 2);
}

#[test]
fn paused_replies_in_a_row_are_bounded_and_then_judged_by_what_they_hold() {
    for (pauses, answer) in [(7, "42"), (8, "42"), (9, "looking")] {
        let mut script = vec![paused("looking"); pauses];
        script.push(text("42"));
        let ran = Sim::new("default", script).run();
        assert_eq!(ran.outcome.text, answer, "{pauses} pauses");
        assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    }
    let mut script = vec![paused(""); 9];
    script.push(text("42"));
    let ran = Sim::new("default", script).run();
    let last = ran.requests[9].request.messages.last().unwrap().clone();
    assert!(last.synthetic, "an empty one is corrected");
    assert_eq!(ran.outcome.text, "42");
}

#[test]
fn calls_between_pauses_begin_the_count_anew() {
    let mut script = vec![paused("looking"); 8];
    script.push(calls(&[("look", "{}")]));
    script.extend(vec![paused("looking"); 8]);
    script.push(text("42"));
    let ran = Sim::new("default", script).run();
    assert_eq!((ran.outcome.text.as_str(), ran.outcome.steps), ("42", 18));
}

#[test]
fn a_pause_at_the_last_step_ends_in_the_final_answer() {
    let mut sim = Sim::new("default", vec![paused("looking"), text("42")]);
    sim.profile.limits.max_steps = 2;
    let ran = sim.run();
    assert_eq!(ran.outcome.stop_reason, StopReason::MaxSteps);
    let last = ran.requests[1].request.messages.last().unwrap().clone();
    assert!(last.synthetic && last.role == Role::User);
    assert_eq!(ran.outcome.text, "42");
}

fn saying_and_calling(said: &str) -> Say {
    let parts = vec![Part::text(said), super::sim::call_part("look", "{}")];
    Say::Reply(reply(parts, FinishReason::ToolCalls))
}

#[test]
fn an_answer_beside_a_call_is_the_answer_if_the_model_twice_adds_nothing() {
    let script = vec![saying_and_calling("it is 42"), empty(), empty()];
    let ran = Sim::new("default", script).run();
    assert_eq!(ran.outcome.text, "it is 42");
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let script = vec![saying_and_calling("I look"), empty(), text("it is 42")];
    assert_eq!(Sim::new("default", script).run().outcome.text, "it is 42");
}

#[test]
fn a_call_that_is_written_as_text_is_asked_for_again_and_then_told() {
    let leaked = || text("<|channel|>commentary to=functions.look<|message|>{}<|call|>");
    let script = vec![leaked(), calls(&[("look", "{}")]), text("42")];
    let ran = Sim::new("default", script).run();
    assert_eq!(ran.outcome.text, "42");
    let corrective = ran.requests[1].request.messages.last().unwrap().text();
    assert!(corrective.contains("written as text"), "{corrective}");

    let ran = Sim::always("default", move |_| leaked()).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Complete);
    let is_told = |it: &EventBody| matches!(it, EventBody::Warning { .. });
    assert_eq!(ran.events.iter().filter(|it| is_told(it)).count(), 1);
}

#[test]
fn a_refusal_without_words_is_told_as_one() {
    let refused = Say::Reply(reply(vec![], FinishReason::Refusal));
    let ran = Sim::new("default", vec![refused]).run();
    assert_eq!(ran.outcome.stop_reason, StopReason::Refused);
    assert!(!ran.outcome.answered);
    assert!(
        ran.outcome.text.contains("the model refused"),
        "{}",
        ran.outcome.text
    );
}
