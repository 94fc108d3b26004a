//! Usable part of a reply: calls, an answer, a refusal, or nothing.

use rondo_types::{Candidate, EmptyReply, FinishReason, ModelError, Part, Reply};

/// Usable part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UsableReply {
    /// It asks for calls.
    Calls(Candidate),
    /// It is an answer.
    Answer(Candidate),
    /// The provider paused it: it goes back, and the model continues.
    Paused(Candidate),
    /// The model refuses, in the provider's own field or reason.
    Refused(Candidate),
    /// Nothing of it can be used.
    Unusable(Problem),
}

/// Why a reply cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// For the model and for people.
    pub(super) text: String,
    /// Set if a filter was the reason.
    pub(super) blocked: bool,
    /// The error with which the reply could not be read.
    pub(super) error: Option<ModelError>,
    /// Set if the answer was refused, such as by the response schema.
    pub(super) is_of_answer: bool,
    /// Set if the model ended its reply well and gave no text.
    pub(super) is_empty: bool,
}

impl Problem {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            blocked: false,
            error: None,
            is_of_answer: false,
            is_empty: false,
        }
    }

    /// Builds the problem of a reply without content.
    fn empty(text: &str) -> Self {
        Self {
            is_empty: true,
            ..Self::new(text)
        }
    }

    /// Builds the problem of an answer that is refused.
    pub(super) fn of_answer(text: String) -> Self {
        Self {
            is_of_answer: true,
            ..Self::new(text)
        }
    }

    /// Builds the problem of a reply that could not be read.
    pub(super) fn of_error(error: ModelError) -> Self {
        Self {
            error: Some(error.clone()),
            ..Self::new(error.message)
        }
    }

    fn blocked(text: impl Into<String>) -> Self {
        Self {
            blocked: true,
            ..Self::new(text)
        }
    }
}

/// Picks the first candidate with valid content and an acceptable end.
///
/// Calls count by presence, not by finish reason: servers finish replies that hold calls with
/// every reason there is. If a paused reply may not be continued it is judged by its content.
pub(crate) fn judge(reply: Reply, empty: EmptyReply, may_pause: bool) -> UsableReply {
    if let Some(reason) = reply.prompt_blocked {
        return UsableReply::Unusable(Problem::blocked(format!(
            "the prompt was blocked ({reason})"
        )));
    }
    let mut first_problem = None;
    let mut empty_candidate = None;
    for candidate in reply.candidates {
        match usable(&candidate, may_pause) {
            Ok(Use::Calls) => return UsableReply::Calls(candidate),
            Ok(Use::Answer) => return UsableReply::Answer(candidate),
            Ok(Use::Pause) => return UsableReply::Paused(candidate),
            Ok(Use::Refusal) => return UsableReply::Refused(without_calls(candidate)),
            Ok(Use::Nothing) => {
                first_problem.get_or_insert_with(|| Problem::empty("it was empty"));
                empty_candidate.get_or_insert(candidate);
            }
            Err(problem) => {
                first_problem.get_or_insert(problem);
            }
        }
    }
    match (empty, empty_candidate, first_problem) {
        (EmptyReply::Complete, Some(candidate), _) => UsableReply::Answer(candidate),
        (EmptyReply::Complete, None, None) => UsableReply::Answer(Candidate::default()),
        (_, _, Some(problem)) => UsableReply::Unusable(problem),
        (EmptyReply::Invalid, _, None) => {
            UsableReply::Unusable(Problem::empty("it had no content"))
        }
    }
}

/// A call of a refused reply is not a call, and would stay without its result.
fn without_calls(mut candidate: Candidate) -> Candidate {
    candidate
        .parts
        .retain(|part| !matches!(part, Part::ToolCall(_)));
    candidate
}

enum Use {
    Calls,
    Answer,
    Pause,
    Refusal,
    Nothing,
}

fn usable(candidate: &Candidate, may_pause: bool) -> Result<Use, Problem> {
    let reason = candidate.finish_reason.unwrap_or(FinishReason::Other);
    if !reason.is_acceptable() {
        return Err(unacceptable(reason, candidate));
    }
    if reason == FinishReason::Refusal {
        return Ok(Use::Refusal);
    }
    let mut calls = candidate.tool_calls().peekable();
    if calls.peek().is_some() {
        return if calls.any(|call| call.name.trim().is_empty()) {
            Err(Problem::new("a tool call had no name"))
        } else {
            Ok(Use::Calls)
        };
    }
    let paused = reason == FinishReason::Paused && !candidate.parts.is_empty();
    if paused && may_pause {
        return Ok(Use::Pause);
    }
    if is_visible(candidate, |part| match part {
        Part::Text(text) => Some(&text.text),
        _ => None,
    }) {
        Ok(Use::Answer)
    } else if is_visible(candidate, |part| match part {
        Part::Refusal(text) => Some(&text.text),
        _ => None,
    }) {
        Ok(Use::Refusal)
    } else if reason == FinishReason::Length {
        Err(Problem::new("it was cut off before any answer; be brief"))
    } else {
        Ok(Use::Nothing)
    }
}

fn unacceptable(reason: FinishReason, candidate: &Candidate) -> Problem {
    let raw = candidate
        .raw_finish_reasons
        .last()
        .map_or("", String::as_str);
    match reason {
        FinishReason::ContentFilter => Problem::blocked(format!(
            "the answer was blocked by the provider's filter ({raw})"
        )),
        FinishReason::MalformedCall => {
            Problem::new(format!("its tool call could not be read ({raw})"))
        }
        _ => Problem::new(format!("the provider ended it with `{raw}`")),
    }
}

/// Returns whether anything shows in the texts of a candidate. Zero-width characters alone are no
/// answer; Gemini sends them.
fn is_visible(candidate: &Candidate, text: impl Fn(&Part) -> Option<&String>) -> bool {
    let shows = |it: char| {
        !it.is_whitespace() && !matches!(it, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    };
    let mut texts = candidate.parts.iter().filter_map(text);
    texts.any(|text| text.chars().any(shows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{CallId, ToolCall};

    fn text(text: &str, reason: FinishReason) -> Candidate {
        Candidate {
            parts: vec![Part::text(text)],
            finish_reason: Some(reason),
            raw_finish_reasons: vec!["RAW".into()],
        }
    }

    fn call(name: &str, reason: FinishReason) -> Candidate {
        let call = ToolCall {
            id: CallId::new("x"),
            wire_id: None,
            name: name.into(),
            arguments: "{}".into(),
            complete: true,
            opaque: None,
        };
        Candidate {
            parts: vec![Part::ToolCall(call)],
            ..text("", reason)
        }
    }

    fn reply(candidates: Vec<Candidate>) -> Reply {
        Reply {
            candidates,
            ..Reply::default()
        }
    }

    #[test]
    fn py_21_the_first_usable_candidate_is_taken_not_the_first() {
        let blocked = text("bad", FinishReason::ContentFilter);
        let empty = text(" \u{200b}", FinishReason::Stop);
        let good = text("good", FinishReason::Stop);
        let later = text("later", FinishReason::Stop);
        let judged = judge(
            reply(vec![blocked, empty, good.clone(), later]),
            EmptyReply::Invalid,
            true,
        );
        assert_eq!(judged, UsableReply::Answer(good));
    }

    #[test]
    fn py_21_of_a_text_and_a_call_candidate_the_first_counts_in_either_order() {
        let (said, called) = (
            text("said", FinishReason::Stop),
            call("f", FinishReason::Stop),
        );
        let judged = |candidates| judge(reply(candidates), EmptyReply::Invalid, true);
        assert_eq!(
            judged(vec![called.clone(), said.clone()]),
            UsableReply::Calls(called.clone())
        );
        assert_eq!(
            judged(vec![said.clone(), called]),
            UsableReply::Answer(said)
        );
    }

    #[test]
    fn py_29_text_without_calls_is_the_answer_and_calls_win_over_text() {
        let mut both = call("f", FinishReason::Stop);
        both.parts.insert(0, Part::text("thinking aloud"));
        assert_eq!(
            judge(reply(vec![both.clone()]), EmptyReply::Invalid, true),
            UsableReply::Calls(both)
        );
    }

    #[test]
    fn calls_count_whatever_the_finish_reason() {
        for reason in [
            FinishReason::Stop,
            FinishReason::ToolCalls,
            FinishReason::Length,
        ] {
            let candidate = call("f", reason);
            assert!(matches!(
                judge(reply(vec![candidate]), EmptyReply::Invalid, true),
                UsableReply::Calls(_)
            ));
        }
        let mut none = call("f", FinishReason::Stop);
        none.finish_reason = None;
        assert!(matches!(
            judge(reply(vec![none]), EmptyReply::Invalid, true),
            UsableReply::Calls(_)
        ));
    }

    #[test]
    fn nameless_and_malformed_calls_and_blocked_prompts_are_unusable() {
        let cases = [
            reply(vec![call(" ", FinishReason::Stop)]),
            reply(vec![call("f", FinishReason::MalformedCall)]),
            reply(vec![]),
            Reply {
                prompt_blocked: Some("SAFETY".into()),
                ..Reply::default()
            },
        ];
        for case in cases {
            assert!(matches!(
                judge(case, EmptyReply::Invalid, true),
                UsableReply::Unusable(_)
            ));
        }
    }

    #[test]
    fn an_empty_reply_is_an_answer_where_the_design_says_so() {
        assert_eq!(
            judge(reply(vec![]), EmptyReply::Complete, true),
            UsableReply::Answer(Candidate::default())
        );
    }

    #[test]
    fn a_paused_reply_goes_on_only_where_it_may_and_without_calls() {
        let paused = text("so far", FinishReason::Paused);
        let judged = |candidate: &Candidate, may_pause| {
            judge(
                reply(vec![candidate.clone()]),
                EmptyReply::Invalid,
                may_pause,
            )
        };
        assert_eq!(judged(&paused, true), UsableReply::Paused(paused.clone()));
        assert_eq!(judged(&paused, false), UsableReply::Answer(paused));
        let calls = call("f", FinishReason::Paused);
        assert_eq!(judged(&calls, true), UsableReply::Calls(calls));
        let mut nothing = text("", FinishReason::Paused);
        nothing.parts.clear();
        assert!(matches!(judged(&nothing, true), UsableReply::Unusable(_)));
    }

    #[test]
    fn a_refusal_is_no_empty_answer() {
        let mut refusal = text("", FinishReason::Stop);
        refusal.parts = vec![Part::Refusal(rondo_types::TextPart {
            text: "I can't".into(),
            opaque: None,
        })];
        assert!(matches!(
            judge(reply(vec![refusal]), EmptyReply::Invalid, true),
            UsableReply::Refused(_)
        ));
    }
}
