//! Groups the events of a turn that runs into steps, and words what is worth a line beside the answer.

use super::{Fold, Item, Note, TurnEnding, TurnView};
use rondo_types::text::first_bytes;
use rondo_types::{CallId, EventBody, TimeMs, TurnEvent};
use serde_json::Value;

/// The bound on steps that are kept of a turn.
const STEPS_MAX: usize = 1000;
/// The bound on items that are kept of a step.
const ITEMS_MAX: usize = 1000;
/// The bound on a text of a reply, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

impl Fold {
    /// Takes the next event, and returns the line that it is worth beside the answer.
    pub fn event(&mut self, event: &TurnEvent) -> Option<Note> {
        if let EventBody::Init(init) = &event.body {
            // A turn that is resumed begins its events anew.
            let is_resumed = self.id.as_ref() == Some(&event.turn)
                && self.turn.as_ref().is_some_and(|turn| turn.ending.is_none());
            if !is_resumed {
                self.begin(event.at, &init.profile, 1);
            }
            self.id = Some(event.turn.clone());
            self.model.clone_from(&init.model);
            self.attempts_max = init.limits.retry.max_retries.saturating_add(1);
        }
        if let Some(turn) = &mut self.turn {
            turn.seen(event.at);
        }
        let note = self.worded(&event.body);
        self.body(&event.body, event.at);
        if let Some(note) = &note {
            let text = note.text.clone();
            self.push(Item::Note { text });
        }
        note
    }

    fn worded(&mut self, body: &EventBody) -> Option<Note> {
        match body {
            EventBody::ReplyRejected { reason } => {
                self.rejected = Some(reason.clone());
                None
            }
            EventBody::StepStarted { .. } => {
                let reason = self.rejected.take()?;
                Some(Note::rejected(&reason, true))
            }
            EventBody::Result(result) => {
                let error = result.error.as_ref().map(|error| error.message.as_str());
                let reason = self.rejected.take();
                let reason = reason.filter(|it| error != Some(it.as_str()))?;
                Some(Note::rejected(&reason, false))
            }
            body => Note::of(body, &self.model, self.attempts_max),
        }
    }

    fn body(&mut self, body: &EventBody, at: TimeMs) {
        match body {
            EventBody::StepStarted { step } => self.asked(*step, at),
            EventBody::RetryScheduled { .. } => {
                let step = self.turn.as_mut().and_then(|turn| turn.steps.last_mut());
                step.into_iter().for_each(|step| step.requests += 1);
            }
            EventBody::ModelFallback { to, .. } => {
                self.model.clone_from(to);
                let number = self.turn().and_then(|turn| turn.steps.last());
                let number = number.map_or(1, |step| step.number);
                self.asked(number, at);
            }
            EventBody::TextDelta { text } => self.grow(text, |text| Item::Text { text }),
            EventBody::ReasoningDelta { text } => self.grow(text, |text| Item::Reasoning { text }),
            EventBody::Usage { cost_usd, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.count(at, body.usage(), *cost_usd);
                }
            }
            EventBody::Steered { text, .. } => self.push(Item::User { text: text.clone() }),
            EventBody::Parked { questions } => self.waits_for(questions),
            EventBody::Resumed { .. } => self.waits_for(&[]),
            EventBody::Result(result) => self.ended(TurnEnding {
                stop_reason: result.stop_reason,
                text: result.text.clone(),
                degraded: result.degraded,
                error: result.error.clone(),
            }),
            _ => self.of_call(body),
        }
    }

    fn of_call(&mut self, body: &EventBody) {
        match body {
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } => {
                self.push(Item::Call {
                    tool: name.clone(),
                    arguments: super::shown(arguments),
                });
                let call = (name.clone(), arguments.clone());
                self.calls.insert(id.clone(), call);
            }
            EventBody::ToolCallRewritten { id, arguments, .. }
            | EventBody::ApprovalResolved {
                id,
                arguments: Some(arguments),
                ..
            } => self.changed(id, arguments),
            EventBody::ToolCallFinished {
                id,
                code,
                result,
                duration_ms,
                ..
            } => {
                let (tool, arguments) = self.calls.remove(id).unwrap_or_default();
                self.push(Item::Result {
                    tool,
                    arguments,
                    error: code.map(|code| code.to_string()),
                    text: super::shown(result),
                    took_ms: *duration_ms,
                });
            }
            _ => {}
        }
    }

    fn changed(&mut self, id: &CallId, arguments: &Value) {
        if let Some(call) = self.calls.get_mut(id) {
            call.1.clone_from(arguments);
        }
    }

    fn asked(&mut self, step: u32, at: TimeMs) {
        if let Some(turn) = self.turn.as_mut().filter(|it| it.steps.len() < STEPS_MAX) {
            turn.request(step, &self.model, at);
        }
    }

    fn push(&mut self, item: Item) {
        if self.items().is_some_and(|items| items.len() < ITEMS_MAX) {
            self.add(item);
        }
    }

    /// Adds to the text that is being written, or begins one.
    fn grow(&mut self, delta: &str, begun: impl FnOnce(String) -> Item) {
        let last = self.items().and_then(|items| items.last_mut());
        let new = begun(String::new());
        match (last, &new) {
            (Some(Item::Text { text }), Item::Text { .. })
            | (Some(Item::Reasoning { text }), Item::Reasoning { .. }) => {
                let room = TEXT_BYTES_MAX.saturating_sub(text.len());
                text.push_str(first_bytes(delta, room));
            }
            _ => {
                self.push(new);
                if let Some(Item::Text { text } | Item::Reasoning { text }) =
                    self.items().and_then(|items| items.last_mut())
                {
                    text.push_str(first_bytes(delta, TEXT_BYTES_MAX));
                }
            }
        }
    }

    /// Returns the items of the latest step, or of what came before the first.
    fn items(&mut self) -> Option<&mut Vec<Item>> {
        let TurnView { steps, said, .. } = self.turn.as_mut()?;
        Some(steps.last_mut().map_or(said, |step| &mut step.items))
    }
}
