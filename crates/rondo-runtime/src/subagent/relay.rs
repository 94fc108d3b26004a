//! The events of a child, as the listeners of its parent see them.

use rondo_core::ports::ProgressSink;
use rondo_types::text::{first_bytes, with_mark};
use rondo_types::{ChangedFile, EventBody, ToolErrorCode, TurnEvent};
use serde_json::Value;

/// Bytes of one text or value of an event; the rest is cut off.
const TEXT_BYTES_MAX: usize = 2 << 10;
/// Events of one child that are handed on; its last one always is.
pub(super) const EVENTS_MAX: usize = 2_000;
/// Changed files that are kept of one child.
const FILES_MAX: usize = 1_000;

/// Hands on a child's events, and keeps what its parent reads of them.
pub(super) struct Relay {
    to: ProgressSink,
    handed_on: usize,
    pub(super) seen: ChildSummary,
}

/// Facts from the events of a child's turn besides its outcome.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChildSummary {
    /// The files that its calls changed, each once, in the order of the first change.
    pub(super) files: Vec<String>,
    /// Set if a result held text from outside.
    pub(super) from_outside: bool,
    /// Calls that failed because the answer to a question was no, or there was no user to ask.
    pub(super) denied: usize,
}

impl Relay {
    pub(super) fn new(to: ProgressSink) -> Self {
        Self {
            to,
            handed_on: 0,
            seen: ChildSummary::default(),
        }
    }

    pub(super) fn take(&mut self, event: TurnEvent) {
        self.seen.take(&event.body);
        let is_last = matches!(event.body, EventBody::Result(_) | EventBody::Parked { .. });
        if self.handed_on >= EVENTS_MAX && !is_last {
            return;
        }
        if let Some(event) = shortened(event) {
            self.handed_on += 1;
            self.to.child_event(event);
        }
    }
}

impl ChildSummary {
    pub(super) fn take(&mut self, body: &EventBody) {
        let EventBody::ToolCallFinished {
            changes,
            from_outside,
            code,
            ..
        } = body
        else {
            return;
        };
        self.from_outside |= from_outside;
        self.denied += usize::from(*code == Some(ToolErrorCode::Denied));
        for ChangedFile { path, .. } in changes {
            if self.files.len() < FILES_MAX && !self.files.contains(path) {
                self.files.push(path.clone());
            }
        }
    }
}

/// Returns the event with long texts cut; none for deltas and what is for the child's own listeners alone.
fn shortened(mut event: TurnEvent) -> Option<TurnEvent> {
    match &mut event.body {
        EventBody::TextDelta { .. }
        | EventBody::ReasoningDelta { .. }
        | EventBody::ToolOutputDelta { .. }
        | EventBody::ToolProgress { .. }
        | EventBody::RequestQueued
        | EventBody::DeltasDropped { .. } => return None,
        // That of a grandchild is handed on as it is.
        EventBody::ChildEvent { event: inner, .. } => return Some((**inner).clone()),
        EventBody::ToolCallPending { arguments, .. }
        | EventBody::ToolCallRewritten { arguments, .. } => cut_value(arguments),
        EventBody::ApprovalRequested { prompt, .. } => cut(prompt),
        EventBody::ToolCallFinished { result, blocks, .. } => {
            cut_value(result);
            blocks.clear();
        }
        EventBody::Result(result) => {
            cut(&mut result.text);
            result.findings.clear();
        }
        _ => {}
    }
    Some(event)
}

fn cut_value(value: &mut Value) {
    let json = value.to_string();
    if json.len() > TEXT_BYTES_MAX {
        let mut text = match value {
            Value::String(text) => std::mem::take(text),
            _ => json,
        };
        cut(&mut text);
        *value = Value::String(text);
    }
}

fn cut(text: &mut String) {
    *text = with_mark(first_bytes(text, TEXT_BYTES_MAX), text, "…");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{CallId, SessionId, TimeMs, TurnId};
    use std::sync::{Arc, Mutex};

    fn event(body: EventBody) -> TurnEvent {
        TurnEvent {
            session: SessionId::new("s.c"),
            turn: TurnId::new("t"),
            seq: 0,
            at: TimeMs(0),
            body,
        }
    }

    fn relay() -> (Relay, Arc<Mutex<Vec<TurnEvent>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&told);
        let sink = ProgressSink::discard().with_events(move |it| to.lock().unwrap().push(it));
        (Relay::new(sink), told)
    }

    #[test]
    fn a_child_hands_on_a_bounded_number_of_events_and_no_deltas() {
        let (mut relay, told) = relay();
        let delta = EventBody::TextDelta { text: "x".into() };
        relay.take(event(delta));
        for step in 0..EVENTS_MAX + 1 {
            let step = u32::try_from(step).unwrap();
            relay.take(event(EventBody::StepStarted { step }));
        }
        assert_eq!(told.lock().unwrap().len(), EVENTS_MAX);
        relay.take(event(EventBody::Parked { questions: vec![] }));
        assert_eq!(told.lock().unwrap().len(), EVENTS_MAX + 1);
    }

    #[test]
    fn long_texts_are_cut() {
        for (bytes, chars) in [
            (TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX - 1),
            (TEXT_BYTES_MAX, TEXT_BYTES_MAX),
            (TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX + 1),
            (TEXT_BYTES_MAX + 2, TEXT_BYTES_MAX + 1),
        ] {
            let pending = EventBody::ToolCallPending {
                id: CallId::new("c"),
                name: "t".into(),
                arguments: Value::String("x".repeat(bytes)),
            };
            let EventBody::ToolCallPending { arguments, .. } =
                shortened(event(pending)).unwrap().body
            else {
                panic!()
            };
            let text = arguments.as_str().unwrap();
            assert_eq!(text.chars().count(), chars);
            assert_eq!(text.ends_with('…'), bytes > TEXT_BYTES_MAX);
        }
    }
}
