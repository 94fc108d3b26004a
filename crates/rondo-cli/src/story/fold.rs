//! Groups records into turns and steps.

use super::{Item, Step, Turn, TurnEnding, cells};
use rondo_core::ports::{Approval, Record, RecordBody, Verdict};
use rondo_types::units::elapsed;
use rondo_types::{
    CallId, Message, ModelInfo, NanoUsd, Part, Question, Reply, TimeMs, ToolOutcome, Usage,
};
use serde_json::Value;
use std::collections::HashMap;

/// Tells what the records of a session say, turn by turn.
#[derive(Default)]
pub(crate) struct Fold {
    turn: Option<Turn>,
    /// Who may be asked in the turn, with their prices.
    models: Vec<ModelInfo>,
    /// Calls that were begun.
    calls: HashMap<CallId, (String, Value)>,
    /// Whether the turn's money is known so far.
    is_priced: bool,
}

impl Fold {
    /// Takes the next record, and returns the turn before it where that is over.
    pub(crate) fn take(&mut self, record: &Record) -> Option<Turn> {
        if !record.body.is_of_turn() {
            let before = || cells::before_turns(record.at_ms);
            cells::tell(self.turn.get_or_insert_with(before), &record.body);
            return None;
        }
        let mut over = None;
        if let RecordBody::TurnStarted {
            profile,
            turn_number,
            ..
        } = &record.body
        {
            over = self.turn.take();
            self.begin(record.at_ms, &profile.name, *turn_number);
        }
        self.tell(record);
        over
    }

    /// Returns the last turn.
    pub(crate) fn end(self) -> Option<Turn> {
        self.turn
    }

    fn tell(&mut self, record: &Record) {
        if let Some(turn) = &mut self.turn {
            let took = record.at_ms.since(turn.began_ms).as_millis();
            turn.took_ms = turn.took_ms.max(u64::try_from(took).unwrap_or(u64::MAX));
        }
        match &record.body {
            RecordBody::Parked { questions } => self.waits_for(questions),
            RecordBody::Resumed { .. } => self.waits_for(&[]),
            _ => {}
        }
        match &record.body {
            RecordBody::TurnEnvironment { models, .. } => self.models.clone_from(models),
            RecordBody::ModelRequested { model, .. } => self.request(record, model),
            RecordBody::ModelReplied { reply } => self.reply(record.at_ms, reply),
            RecordBody::Final {
                stop_reason,
                text,
                degraded,
                ..
            } => self.ended(TurnEnding {
                stop_reason: *stop_reason,
                text: text.clone(),
                degraded: *degraded,
            }),
            RecordBody::ToolStarted {
                call_id,
                name,
                arguments,
                ..
            } => {
                let call = (name.clone(), arguments.clone());
                self.calls.insert(call_id.clone(), call);
            }
            RecordBody::ToolFinished {
                call_id,
                outcome,
                duration_ms,
            } => self.result(call_id, outcome, *duration_ms),
            RecordBody::CallResolved { call_id, outcome } => self.result(call_id, outcome, 0),
            RecordBody::UserMessage { message } => self.said(message),
            RecordBody::MessageAdded { message } => self.add(Item::Runtime {
                text: message.text(),
            }),
            other => self.note(other),
        }
    }

    fn begin(&mut self, at: TimeMs, profile: &str, number: u32) {
        self.is_priced = true;
        self.calls.clear();
        self.turn = Some(Turn::begun(number, profile, at));
    }

    fn waits_for(&mut self, questions: &[Question]) {
        if let Some(turn) = &mut self.turn {
            turn.waits_for = questions.to_vec();
        }
    }

    /// Adds to the step under way, or to what was said before the first.
    fn add(&mut self, item: Item) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        match turn.steps.last_mut() {
            Some(step) => step.items.push(item),
            None => turn.said.push(item),
        }
    }

    fn said(&mut self, message: &Message) {
        let text = message.text();
        self.add(match message.synthetic {
            true => Item::Runtime { text },
            false => Item::User { text },
        });
    }

    /// A request that is sent again belongs to its step.
    fn request(&mut self, record: &Record, model: &str) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let is_open = |step: &&mut Step| {
            step.number == record.step && step.model == model && step.replied_after_ms.is_none()
        };
        if let Some(step) = turn.steps.last_mut().filter(is_open) {
            step.requests += 1;
            return;
        }
        turn.steps.push(Step {
            number: record.step,
            model: model.to_owned(),
            asked_ms: record.at_ms,
            replied_after_ms: None,
            requests: 1,
            usage: None,
            cost_usd: None,
            items: Vec::new(),
        });
    }

    fn reply(&mut self, at: TimeMs, reply: &Reply) {
        self.count(at, reply.usage);
        let candidate = reply.candidates.first();
        for part in candidate.into_iter().flat_map(|it| &it.parts) {
            self.part(part);
        }
        if let Some(reason) = &reply.prompt_blocked {
            let text = format!("the prompt was blocked ({reason})");
            self.add(Item::Note { text });
        }
    }

    fn count(&mut self, at: TimeMs, usage: Option<Usage>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let Some(step) = turn.steps.last_mut() else {
            return;
        };
        let after = at.since(step.asked_ms).as_millis();
        step.replied_after_ms = Some(u64::try_from(after).unwrap_or(u64::MAX));
        step.usage = usage;
        let asked = self.models.iter().find(|it| it.full_name() == step.model);
        let price = asked.and_then(|model| model.price);
        let cost = price.zip(usage).map(|(price, usage)| price.cost(usage));
        step.cost_usd = cost.map(NanoUsd::usd);
        turn.usage = sum(turn.usage, usage.unwrap_or_default());
        self.is_priced &= cost.is_some();
        turn.cost_usd = match self.is_priced {
            true => Some(turn.steps.iter().filter_map(|step| step.cost_usd).sum()),
            false => None,
        };
    }

    fn part(&mut self, part: &Part) {
        let item = match part {
            Part::Text(part) | Part::Refusal(part) => Item::Text {
                text: part.text.clone(),
            },
            Part::Reasoning(part) => Item::Reasoning {
                text: part.text.clone(),
            },
            Part::ToolCall(call) => Item::Call {
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            },
            Part::ToolResult(_) | Part::Media(_) | Part::Opaque(_) => return,
        };
        let is_empty =
            matches!(&item, Item::Text { text } | Item::Reasoning { text } if text.is_empty());
        if !is_empty {
            self.add(item);
        }
    }

    fn result(&mut self, call_id: &CallId, outcome: &ToolOutcome, took_ms: u64) {
        let (tool, arguments) = self.calls.remove(call_id).unwrap_or_default();
        let (error, text) = match outcome {
            ToolOutcome::Ok(output) => (None, shown(&output.value)),
            ToolOutcome::Error(error) => (Some(error.code.to_string()), error.message.clone()),
        };
        self.add(Item::Result {
            tool,
            arguments,
            error,
            text,
            took_ms,
        });
    }

    fn note(&mut self, body: &RecordBody) {
        let text = match body {
            RecordBody::ModelFailed { error, .. } => format!("the request failed: {error}"),
            RecordBody::GateJudged {
                verdict: Verdict::Deny { reason },
                ..
            } => format!("the gate said no: {reason}"),
            RecordBody::ApprovalRequested { prompt, .. } => format!("asked: {prompt}"),
            RecordBody::ApprovalResolved { approval, .. } => match approval {
                Approval::Approved => "the user said yes".to_owned(),
                Approval::Denied { reason } => format!("the user said no: {reason}"),
                Approval::Edited { arguments, .. } => {
                    format!("the user said yes, with other arguments: {arguments}")
                }
            },
            RecordBody::Answered { answer } => {
                format!("{} answered question {}", answer.actor, answer.question)
            }
            RecordBody::Resumed { downtime_ms } => {
                let downtime = elapsed(downtime_ms / 1000);
                format!("the turn goes on after {downtime} in which no process worked on it")
            }
            RecordBody::ToolInDoubt { call_id, .. } => {
                format!("call {call_id} was running when the turn was cut off")
            }
            RecordBody::Compacted(change) => {
                format!("{} earlier messages were made shorter", change.messages())
            }
            RecordBody::Cancelled => "the turn was cancelled".to_owned(),
            RecordBody::Faulted { error } => format!("the turn could not go on: {error}"),
            _ => return,
        };
        self.add(Item::Note { text });
    }

    fn ended(&mut self, ending: TurnEnding) {
        if let Some(turn) = &mut self.turn {
            turn.ending = Some(ending);
        }
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        reasoning: one.reasoning.saturating_add(other.reasoning),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
