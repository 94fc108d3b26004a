//! View of a turn for every frontend: steps, texts, calls, tokens, cost and its end. Pure: no I/O, no clock.
//!
//! # Layout
//! - `records`: from the records of a session; `events`: from the events of a turn that runs; `calls`: how far calls are.
//! - `cells`: Python cells between turns, and what a script did; `totals`: all turns of a session together.
//! - `notes`: words for what happens beside the answer; `failure`: why there is no answer, and what to do about it.

mod calls;
mod cells;
mod events;
mod failure;
mod notes;
mod questions;
mod records;
mod totals;

pub use calls::{CallState, CallView, command_failure};
pub use failure::{Failure, stopped_by};
pub use notes::Note;
pub use records::Fold;
pub use totals::Totals;

use rondo_types::{Limits, ModelError, Question, StopReason, TimeMs, Usage};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// A turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnView {
    /// From 1; 0 for what came before the first turn, or in a session without turns: cells, and what a script did.
    pub number: u32,
    /// The profile it ran under.
    pub profile: String,
    /// When it began.
    pub began_ms: TimeMs,
    /// From its beginning to its last record or event, without the time when no process worked on it.
    pub took_ms: u64,
    /// Tokens of all its requests.
    pub usage: Usage,
    /// Money, if the price of each model is known.
    pub cost_usd: Option<f64>,
    /// Messages before the first step.
    pub said: Vec<Item>,
    /// Its steps, in order.
    pub steps: Vec<StepView>,
    /// How it ended; absent while it runs, and if it was cut off or waits.
    pub ending: Option<TurnEnding>,
    /// The questions that it waits for: if it is parked, or one was asked as it ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Question>,
    /// Cells that the user ran in Python before the next turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Item>,
    /// Acts of a script outside of its conversations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<Item>,
    /// Limits, if the turn was seen as it ran.
    #[serde(skip)]
    pub limits: Option<Limits>,
    /// Money of the replies whose price is known.
    #[serde(skip)]
    pub known_cost_usd: f64,
    /// Replies whose price is not known.
    #[serde(skip)]
    unpriced: u32,
}

impl TurnView {
    /// A turn of which only the beginning is known.
    fn begun(number: u32, profile: &str, began_ms: TimeMs) -> Self {
        Self {
            number,
            profile: profile.to_owned(),
            began_ms,
            took_ms: 0,
            usage: Usage::default(),
            cost_usd: None,
            said: Vec::new(),
            steps: Vec::new(),
            ending: None,
            waits_for: Vec::new(),
            cells: Vec::new(),
            script: Vec::new(),
            limits: None,
            known_cost_usd: 0.0,
            unpriced: 0,
        }
    }

    /// Returns the number of the latest step; 0 before the first.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.number)
    }

    /// Returns the steps, each with its duration in milliseconds; without one if it is not over.
    pub fn timed_steps(&self) -> impl Iterator<Item = (&StepView, Option<u64>)> {
        let end = self.began_ms.after(Duration::from_millis(self.took_ms));
        let end = self.ending.as_ref().map(|_| end);
        let ends = self.steps.iter().skip(1).map(|next| Some(next.asked_ms));
        self.steps.iter().zip(ends.chain([end])).map(|(step, end)| {
            let took = end.map(|end| end.since(step.asked_ms).as_millis());
            (step, took.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)))
        })
    }

    /// Returns the texts of the model, in order.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().flat_map(StepView::texts)
    }

    /// Returns the model's text of the latest step that has one.
    #[must_use]
    pub fn last_said(&self) -> String {
        let steps = self.steps.iter().rev();
        let mut said = steps.map(|step| step.texts().collect::<String>());
        said.find(|said| !said.is_empty()).unwrap_or_default()
    }

    /// Returns the answer if no step said it: one that the runtime built.
    #[must_use]
    pub fn built_answer(&self) -> Option<&str> {
        let ending = self.ending.as_ref()?;
        let is_said = self.last_said().contains(&ending.text);
        (!is_said && !ending.text.is_empty()).then_some(&ending.text)
    }

    /// Returns why the turn stopped, from an answer that the runtime built.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        let built = self.built_answer()?;
        Some(
            built
                .split_once("\n\n")
                .map_or(built, |(stopped, _)| stopped),
        )
    }

    /// Returns the results of the calls, from an answer that the runtime built: without why the turn stopped, and
    /// without the model's text before. Empty for an answer of the model.
    #[must_use]
    pub fn found(&self) -> &str {
        let built = self.built_answer().unwrap_or_default();
        let mut rest = built.split_once("\n\n").map_or("", |(_, rest)| rest);
        let error = self.ending.as_ref().and_then(|it| it.error.as_ref());
        if let Some(error) = error {
            let why = format!("Reason: {error}.");
            rest = rest.strip_prefix(&why).unwrap_or(rest).trim_start();
        }
        for said in self.texts().map(str::trim).filter(|it| !it.is_empty()) {
            rest = rest.strip_prefix(said).unwrap_or(rest).trim_start();
        }
        rest
    }

    /// Adds to the latest step, or to what was said before the first.
    fn add(&mut self, item: Item) {
        match self.steps.last_mut() {
            Some(step) => step.items.push(item),
            None => self.said.push(item),
        }
    }

    /// Forgets all items. Only the two latest steps have any if this is done at each item.
    fn forget_items(&mut self) {
        self.said.clear();
        let latest = self.steps.iter_mut().rev().take(2);
        latest.for_each(|step| step.items.clear());
    }

    /// Returns the text that the model said last, if nothing but figures followed it.
    #[must_use]
    pub fn latest_text(&self) -> Option<&str> {
        let items = self.steps.last().map_or(&self.said, |step| &step.items);
        match items.last()? {
            Item::Text { text } => Some(text),
            _ => None,
        }
    }

    /// Returns the tool and the arguments of the call that ended last, if nothing happened since.
    #[must_use]
    pub fn latest_result(&self) -> Option<(&str, &Value)> {
        let items = self.steps.last().map_or(&self.said, |step| &step.items);
        match items.last()? {
            Item::Result {
                tool, arguments, ..
            } => Some((tool, arguments)),
            _ => None,
        }
    }

    /// Notes a request. One that is sent again belongs to its step.
    fn request(&mut self, number: u32, model: &str, at: TimeMs) {
        let is_open = |step: &&mut StepView| {
            step.number == number && step.model == model && step.replied_after_ms.is_none()
        };
        if let Some(step) = self.steps.last_mut().filter(is_open) {
            step.requests += 1;
            return;
        }
        self.steps.push(StepView {
            number,
            model: model.to_owned(),
            asked_ms: at,
            replied_after_ms: None,
            requests: 1,
            usage: None,
            cost_usd: None,
            items: Vec::new(),
        });
    }

    /// Counts the reply to the latest request.
    fn count(&mut self, at: TimeMs, usage: Option<Usage>, cost_usd: Option<f64>) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        let after = at.since(step.asked_ms).as_millis();
        step.replied_after_ms = Some(u64::try_from(after).unwrap_or(u64::MAX));
        step.usage = usage;
        step.cost_usd = cost_usd;
        self.usage += usage.unwrap_or_default();
        match cost_usd {
            Some(cost) => self.known_cost_usd += cost,
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
        self.cost_usd = (self.unpriced == 0).then_some(self.known_cost_usd);
    }

    /// Records the time at which the turn was last seen.
    fn seen(&mut self, at: TimeMs) {
        let took = at.since(self.began_ms).as_millis();
        self.took_ms = self.took_ms.max(u64::try_from(took).unwrap_or(u64::MAX));
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepView {
    /// From 1; a summary that compaction asked for has the number of the step it was made for.
    pub number: u32,
    /// The model that was asked, `provider/model`.
    pub model: String,
    /// When its request was sent first.
    pub asked_ms: TimeMs,
    /// From there to the reply; absent without a reply.
    pub replied_after_ms: Option<u64>,
    /// How often its request was sent.
    pub requests: u32,
    /// Tokens; absent if the provider did not say.
    pub usage: Option<Usage>,
    /// Money, if the price is known.
    pub cost_usd: Option<f64>,
    /// Items of the turn, in order.
    pub items: Vec<Item>,
}

impl StepView {
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match item {
            Item::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// The user said something.
    User {
        /// The words.
        text: String,
    },
    /// The runtime said something to the model.
    Runtime {
        /// The words.
        text: String,
    },
    /// The model thought.
    Reasoning {
        /// The words.
        text: String,
    },
    /// The model said something.
    Text {
        /// The words.
        text: String,
    },
    /// The model asked for a call.
    Call {
        /// The tool.
        tool: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// A call ended.
    Result {
        /// The tool; empty for a call of which nothing is known.
        tool: String,
        /// The arguments that it was run with.
        arguments: Value,
        /// The error's code, if it failed.
        error: Option<String>,
        /// The result.
        text: String,
        /// How long it ran.
        took_ms: u64,
    },
    /// The user ran a cell in the Python session.
    Cell {
        /// The code, as far as it is kept.
        code: String,
        /// The result; absent if its end is not recorded.
        result: Option<String>,
        /// How long it ran.
        took_ms: u64,
    },
    /// Something else that is worth a line.
    Note {
        /// The line.
        text: String,
    },
}

impl Item {
    /// Returns how a call failed: the code of its error, or how its command ended. Absent for one that succeeded, and for
    /// what is not a result.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let Self::Result { error, text, .. } = self else {
            return None;
        };
        error.clone().or_else(|| {
            let result = serde_json::from_str(text).ok()?;
            command_failure(&result)
        })
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnEnding {
    /// Reason of the end.
    pub stop_reason: StopReason,
    /// The answer.
    pub text: String,
    /// Set if it is less than it could be.
    pub degraded: bool,
    /// The error that ended the turn, if the turn was seen as it ran. Records have it in a note.
    #[serde(skip)]
    pub error: Option<ModelError>,
}

/// Returns a result as text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
