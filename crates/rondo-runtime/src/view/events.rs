//! Groups the events of a turn that runs into steps, and words what is worth a line beside the answer.

use super::{Fold, Item, Note, TurnEnding, TurnView, command_failure};
use rondo_types::text::first_bytes;
use rondo_types::{EventBody, InitEvent, TimeMs, TurnEvent, TurnId};

/// The bound on steps that are kept of a turn.
const STEPS_MAX: usize = 1000;
/// The bound on items that are kept of a step.
const ITEMS_MAX: usize = 1000;
/// The bound on a text of a reply, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A text that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Writing {
    is_reasoning: bool,
    /// Set if the latest event began it.
    is_new: bool,
}

impl Fold {
    /// Takes the next event, and returns the line that it is worth beside the answer.
    pub fn event(&mut self, event: &TurnEvent) -> Option<Note> {
        self.observe(&event.turn, &event.body, event.at)
    }

    /// Takes an event of a turn, as [`Self::event`] does.
    pub fn observe(&mut self, turn: &TurnId, body: &EventBody, at: TimeMs) -> Option<Note> {
        if let Some(writing) = &mut self.writing {
            writing.is_new = false;
        }
        if let EventBody::Init(init) = body {
            self.init(turn, init, at);
        }
        // Events of a turn that are heard from its middle on.
        let unheard = || TurnView::begun(1, "", at);
        self.turn.get_or_insert_with(unheard).seen(at);
        let note = self.worded(body);
        self.body(body, at);
        self.of_questions(body);
        if let Some(note) = &note {
            let text = note.text.clone();
            self.push(Item::Note { text });
        }
        note
    }

    /// Returns whether the latest event began a text or reasoning, rather than continued with it.
    #[must_use]
    pub fn begins_text(&self) -> bool {
        self.writing.is_some_and(|writing| writing.is_new)
    }

    fn init(&mut self, id: &TurnId, init: &InitEvent, at: TimeMs) {
        // A turn that is resumed begins its events again.
        let is_resumed = self.id.as_ref() == Some(id)
            && self.turn.as_ref().is_some_and(|turn| turn.ending.is_none());
        if !is_resumed {
            self.begin(at, &init.profile, 1);
        }
        if let Some(turn) = &mut self.turn {
            turn.limits = Some(init.limits.clone());
        }
        self.id = Some(id.clone());
        self.model.clone_from(&init.model);
        self.attempts_max = init.limits.retry.max_retries.saturating_add(1);
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
            EventBody::TextDelta { text } => self.grow(text, false),
            EventBody::ReasoningDelta { text } => self.grow(text, true),
            EventBody::Usage { cost_usd, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.count(at, body.usage(), *cost_usd);
                }
            }
            EventBody::Steered { text, .. } => self.push(Item::User { text: text.clone() }),
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
                self.calls.ask(id, name, arguments.clone());
            }
            EventBody::ToolCallStarted { id } => self.calls.start(id),
            EventBody::ToolCallRewritten { id, arguments, .. }
            | EventBody::ApprovalResolved {
                id,
                arguments: Some(arguments),
                ..
            } => self.calls.change(id, arguments),
            EventBody::ToolCallFinished {
                id,
                ok,
                code,
                result,
                duration_ms,
                ..
            } => {
                let is_ok = *ok && command_failure(result).is_none();
                let (tool, arguments) = self.calls.end(id, is_ok, *duration_ms);
                if !self.is_brief {
                    self.push(Item::Result {
                        tool,
                        arguments,
                        error: code.map(|code| code.to_string()),
                        text: super::shown(result),
                        took_ms: *duration_ms,
                    });
                }
            }
            _ => {}
        }
    }

    /// Begins a step. Of very many the oldest are forgotten.
    fn asked(&mut self, step: u32, at: TimeMs) {
        self.writing = None;
        if let Some(turn) = &mut self.turn {
            if turn.steps.len() >= STEPS_MAX {
                turn.steps.remove(0);
            }
            turn.request(step, &self.model, at);
        }
    }

    fn push(&mut self, item: Item) {
        self.writing = None;
        if self.is_brief || self.items().is_some_and(|items| items.len() < ITEMS_MAX) {
            self.add(item);
        }
    }

    /// Adds to the text that is being written, or begins one.
    fn grow(&mut self, delta: &str, is_reasoning: bool) {
        let writing = self.writing.filter(|it| it.is_reasoning == is_reasoning);
        if writing.is_none() {
            let text = String::new();
            self.push(match is_reasoning {
                true => Item::Reasoning { text },
                false => Item::Text { text },
            });
        }
        self.writing = Some(Writing {
            is_reasoning,
            is_new: writing.is_none(),
        });
        match (self.items().and_then(|it| it.last_mut()), is_reasoning) {
            (Some(Item::Text { text }), false) | (Some(Item::Reasoning { text }), true) => {
                let room = TEXT_BYTES_MAX.saturating_sub(text.len());
                text.push_str(first_bytes(delta, room));
            }
            // There was no room for one more.
            _ => {}
        }
    }

    /// Returns the items of the latest step, or of what came before the first.
    fn items(&mut self) -> Option<&mut Vec<Item>> {
        let TurnView { steps, said, .. } = self.turn.as_mut()?;
        Some(steps.last_mut().map_or(said, |step| &mut step.items))
    }
}
