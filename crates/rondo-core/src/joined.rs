//! Joins the deltas of an event stream, after which a live run and its replay are equal byte for byte.

use rondo_types::{EventBody, Part, TurnEvent};

/// Joins the deltas of a stream, since they are not recorded.
///
/// Adjacent deltas of text or reasoning become one, with the time of the event after them. Empty deltas,
/// the output and progress of running tools (their results have it), events of child sessions (which have their own) and counts of dropped deltas (which depend on the
/// listener) are left out. Events are renumbered.
#[must_use]
pub fn joined(events: Vec<TurnEvent>) -> Vec<TurnEvent> {
    joined_from(0, events)
}

/// Joins the deltas of the rest of a stream, of which so many events came before. A delta at its beginning is not joined
/// with the one before it.
pub(crate) fn joined_from(before: u64, events: Vec<TurnEvent>) -> Vec<TurnEvent> {
    let mut all: Vec<TurnEvent> = Vec::with_capacity(events.len());
    for event in events {
        if is_left_out(&event.body) {
            continue;
        }
        let is_appended = all
            .last_mut()
            .is_some_and(|last| append(&mut last.body, &event.body));
        if !is_appended {
            all.push(event);
        }
    }
    for (seq, event) in (before..).zip(&mut all) {
        event.seq = seq;
    }
    settle_times(&mut all);
    all
}

/// Gives each delta the time of the first event after it that is none.
fn settle_times(events: &mut [TurnEvent]) {
    let mut after = None;
    for event in events.iter_mut().rev() {
        match (text(&event.body), after) {
            (Some(_), Some(at)) => event.at = at,
            (Some(_), None) => {}
            (None, _) => after = Some(event.at),
        }
    }
}

/// Returns the joined deltas that a listener gets for the parts of a reply.
#[must_use]
pub fn shown(parts: &[Part]) -> Vec<EventBody> {
    let mut all: Vec<EventBody> = Vec::new();
    for part in parts {
        let body = match part {
            Part::Text(part) => EventBody::TextDelta {
                text: part.text.clone(),
            },
            Part::Reasoning(part) => EventBody::ReasoningDelta {
                text: part.text.clone(),
            },
            _ => continue,
        };
        let is_known = is_left_out(&body) || all.last_mut().is_some_and(|it| append(it, &body));
        if !is_known {
            all.push(body);
        }
    }
    all
}

/// Returns whether an event is in no record, so that [`joined`] leaves it out.
#[must_use]
pub fn is_left_out(body: &EventBody) -> bool {
    match body {
        EventBody::ToolOutputDelta { .. }
        | EventBody::ToolProgress { .. }
        | EventBody::ChildEvent { .. }
        | EventBody::Warning { .. }
        | EventBody::DeltasDropped { .. } => true,
        other => text(other).is_some_and(String::is_empty),
    }
}

/// Returns the text of an answer's or a reasoning's delta, which [`joined`] may append to the one before it.
#[must_use]
pub fn text(body: &EventBody) -> Option<&String> {
    match body {
        EventBody::TextDelta { text } | EventBody::ReasoningDelta { text } => Some(text),
        _ => None,
    }
}

/// Appends a delta to one of its kind, and returns whether it was one.
fn append(last: &mut EventBody, next: &EventBody) -> bool {
    match (last, next) {
        (EventBody::TextDelta { text }, EventBody::TextDelta { text: more })
        | (EventBody::ReasoningDelta { text }, EventBody::ReasoningDelta { text: more }) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{CallId, SessionId, TimeMs, TurnId};

    fn stream(bodies: Vec<EventBody>) -> Vec<TurnEvent> {
        let events = (0..).zip(bodies).map(|(seq, body)| TurnEvent {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            seq,
            at: TimeMs(seq * 10),
            body,
        });
        events.collect()
    }

    #[test]
    fn deltas_are_joined_by_kind_and_told_with_what_follows_them() {
        let text = |text: &str| EventBody::TextDelta { text: text.into() };
        let thought = |text: &str| EventBody::ReasoningDelta { text: text.into() };
        let output = EventBody::ToolOutputDelta {
            id: CallId::new("c"),
            text: "x".into(),
        };
        let events = joined(stream(vec![
            EventBody::StepStarted { step: 1 },
            thought("a"),
            thought("b"),
            text(""),
            text("c"),
            output,
            text("d"),
            EventBody::DeltasDropped { count: 1 },
            EventBody::RequestQueued,
            text("e"),
        ]));
        let told: Vec<_> = events
            .iter()
            .map(|it| (it.seq, it.at.0, it.body.clone()))
            .collect();
        assert_eq!(
            told,
            [
                (0, 0, EventBody::StepStarted { step: 1 }),
                (1, 80, thought("ab")),
                (2, 80, text("cd")),
                (3, 80, EventBody::RequestQueued),
                (4, 90, text("e")),
            ]
        );
    }

    #[test]
    fn joining_twice_changes_nothing() {
        let text = |text: &str| EventBody::TextDelta { text: text.into() };
        let once = joined(stream(vec![text("a"), text("b"), EventBody::RequestQueued]));
        assert_eq!(joined(once.clone()), once);
    }
}
