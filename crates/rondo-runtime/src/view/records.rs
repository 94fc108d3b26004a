//! Groups records into turns and steps.

use super::calls::Calls;
use super::events::Writing;
use super::{CallView, Item, TurnEnding, TurnView, cells, shown};
use rondo_core::compaction::Change;
use rondo_core::ports::{Approval, Record, RecordBody, Verdict};
use rondo_types::units::elapsed;
use rondo_types::{
    CallId, Message, ModelInfo, NanoUsd, Part, Question, Reply, TimeMs, ToolOutcome, TurnId,
};

/// Builds the views of turns, from the records of a session or from the events of turns that run.
#[derive(Debug, Default)]
pub struct Fold {
    pub(super) turn: Option<TurnView>,
    /// The models that may be asked in the turn, with their prices.
    models: Vec<ModelInfo>,
    pub(super) calls: Calls,
    /// The turn's id and the model that answers, as events name them.
    pub(super) id: Option<TurnId>,
    pub(super) model: String,
    /// How often a request is sent at most.
    pub(super) attempts_max: u32,
    /// Why the latest reply could not be used, until it is known whether the model is asked again.
    pub(super) rejected: Option<String>,
    /// Text that the latest event continued, if any.
    pub(super) writing: Option<Writing>,
    /// Keeps only the latest item of a turn.
    pub(super) is_brief: bool,
}

impl Fold {
    /// Continues a turn.
    pub(super) fn of(turn: TurnView) -> Self {
        Self {
            turn: Some(turn),
            ..Self::default()
        }
    }

    /// Builds views that keep the figures and the calls of a turn, and of all else only the latest item.
    #[must_use]
    pub fn brief() -> Self {
        Self {
            is_brief: true,
            ..Self::default()
        }
    }

    /// Returns the calls of the turn, in the order in which the model asked for them.
    #[must_use]
    pub fn calls(&self) -> &[CallView] {
        self.calls.all()
    }

    /// Returns a call of the turn.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&CallView> {
        self.calls.get(id)
    }

    /// Returns the turn so far.
    #[must_use]
    pub fn turn(&self) -> Option<&TurnView> {
        self.turn.as_ref()
    }

    /// Takes the next record, and returns the turn before it if that is over.
    pub fn record(&mut self, record: &Record) -> Option<TurnView> {
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
    #[must_use]
    pub fn end(self) -> Option<TurnView> {
        self.turn
    }

    fn tell(&mut self, record: &Record) {
        if let Some(turn) = &mut self.turn {
            turn.seen(record.at_ms);
        }
        match &record.body {
            RecordBody::Parked { questions } => self.waits_for(questions),
            RecordBody::Resumed { .. } => self.waits_for(&[]),
            _ => {}
        }
        match &record.body {
            RecordBody::TurnEnvironment { models, .. } => self.models.clone_from(models),
            RecordBody::ModelRequested { model, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.request(record.step, model, record.at_ms);
                }
            }
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
                error: None,
            }),
            RecordBody::ToolStarted {
                call_id,
                name,
                arguments,
                ..
            } => {
                self.calls.ask(call_id, name, arguments.clone());
                self.calls.start(call_id);
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

    pub(super) fn begin(&mut self, at: TimeMs, profile: &str, number: u32) {
        self.calls.clear();
        self.writing = None;
        self.turn = Some(TurnView::begun(number, profile, at));
    }

    pub(super) fn waits_for(&mut self, questions: &[Question]) {
        if let Some(turn) = &mut self.turn {
            turn.waits_for = questions.to_vec();
        }
    }

    pub(super) fn add(&mut self, item: Item) {
        self.writing = None;
        if let Some(turn) = &mut self.turn {
            if self.is_brief {
                turn.forget_items();
            }
            turn.add(item);
        }
    }

    fn said(&mut self, message: &Message) {
        let text = message.text();
        self.add(match message.synthetic {
            true => Item::Runtime { text },
            false => Item::User { text },
        });
    }

    fn reply(&mut self, at: TimeMs, reply: &Reply) {
        if let Some(turn) = &mut self.turn {
            let asked = turn.steps.last().map(|step| step.model.as_str());
            let model = self
                .models
                .iter()
                .find(|it| Some(it.full_name().as_str()) == asked);
            let price = model.and_then(|model| model.price);
            let cost = price.zip(reply.usage);
            let cost = cost
                .map(|(price, usage)| price.cost(usage))
                .map(NanoUsd::usd);
            turn.count(at, reply.usage, cost);
        }
        let candidate = reply.candidates.first();
        for part in candidate.into_iter().flat_map(|it| &it.parts) {
            self.part(part);
        }
        if let Some(reason) = &reply.prompt_blocked {
            let text = format!("the prompt was blocked ({reason})");
            self.add(Item::Note { text });
        }
    }

    fn part(&mut self, part: &Part) {
        let item = match part {
            Part::Text(part) | Part::Refusal(part) => Item::Text {
                text: part.text.clone(),
            },
            Part::Reasoning(part) => Item::Reasoning {
                text: part.text.clone(),
            },
            Part::ToolCall(call) => {
                let arguments = serde_json::from_str(&call.arguments);
                let arguments = arguments.unwrap_or_else(|_| call.arguments.clone().into());
                self.calls.ask(&call.id, &call.name, arguments);
                Item::Call {
                    tool: call.name.clone(),
                    arguments: call.arguments.clone(),
                }
            }
            Part::ToolResult(_) | Part::Media(_) | Part::Opaque(_) => return,
        };
        let is_empty =
            matches!(&item, Item::Text { text } | Item::Reasoning { text } if text.is_empty());
        if !is_empty {
            self.add(item);
        }
    }

    fn result(&mut self, call_id: &CallId, outcome: &ToolOutcome, took_ms: u64) {
        let is_ok = match outcome {
            ToolOutcome::Ok(output) => super::command_failure(&output.value).is_none(),
            ToolOutcome::Error(_) => false,
        };
        let (tool, arguments) = self.calls.end(call_id, is_ok, took_ms);
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
                format!("the turn continues after {downtime} without a process")
            }
            RecordBody::ToolInDoubt { call_id, .. } => {
                format!("call {call_id} was running when the turn was cut off")
            }
            RecordBody::Compacted(change) => match &change.change {
                Change::Described { reason } => {
                    format!("images and files were described in text: {reason}")
                }
                Change::Unsealed { reason } => {
                    format!(
                        "earlier reasoning that only its provider can read was left out: {reason}"
                    )
                }
                Change::Summarised { .. } | Change::Dropped { .. } | Change::Cut { .. } => {
                    format!("{} earlier messages were made shorter", change.messages())
                }
            },
            RecordBody::Cancelled => "the turn was cancelled".to_owned(),
            RecordBody::Faulted { error } => format!("the turn could not go on: {error}"),
            _ => return,
        };
        self.add(Item::Note { text });
    }

    pub(super) fn ended(&mut self, ending: TurnEnding) {
        if let Some(turn) = &mut self.turn {
            turn.ending = Some(ending);
        }
    }
}
