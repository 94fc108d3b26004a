//! Renders the records of a session as Markdown, HTML or JSON. One turn at a time, so that memory is bounded.
//!
//! # Layout
//! - `fold`: groups records into turns, steps and messages.
//! - `cells`: the user's Python cells between turns, and what a script did.
//! - `markdown`, `html`: the two renderings; the data are the types here, as JSON.
//! - `words`: the format of figures and times in both.

mod cells;
mod fold;
mod html;
mod markdown;
mod words;

pub(crate) use fold::Fold;

use crate::cli::StoryFormat;
use rondo_runtime::sanitize;

use rondo_types::{Question, StopReason, TimeMs, TodoItem, Usage};
use serde::Serialize;
use serde_json::{Value, json};

/// A session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Story {
    /// Its id.
    pub(crate) session: String,
    /// What it is about; may be empty.
    pub(crate) title: String,
    /// The directory it works in; may be empty.
    pub(crate) directory: String,
    /// Whether it is that of a script.
    pub(crate) is_script: bool,
}

impl Story {
    /// Returns what stands before the turns.
    pub(crate) fn head(&self, format: StoryFormat) -> String {
        match format {
            StoryFormat::Markdown => sanitize::plain(&markdown::head(self)),
            StoryFormat::Html => html::head(self),
            StoryFormat::Json => format!(
                "{{\"session\":{},\"title\":{},\"directory\":{},\"turns\":[",
                json!(self.session),
                json!(self.title),
                json!(self.directory)
            ),
        }
    }

    /// Returns what stands behind them: the to-do list as it is now, and the sessions that calls started.
    pub(crate) fn tail(
        &self,
        format: StoryFormat,
        todo: &[TodoItem],
        children: &[String],
    ) -> String {
        let heading = match self.is_script {
            true => "Conversations",
            false => "Subagents",
        };
        match format {
            StoryFormat::Markdown => sanitize::plain(&markdown::tail(todo, heading, children)),
            StoryFormat::Html => html::tail(todo, heading, children),
            StoryFormat::Json => {
                let mut text = "]".to_owned();
                if !todo.is_empty() {
                    text += &format!(",\"todo\":{}", json!(todo));
                }
                if !children.is_empty() {
                    text += &format!(",\"children\":{}", json!(children));
                }
                text + "}\n"
            }
        }
    }
}

impl Turn {
    /// Returns the turn as it stands behind others, or first.
    pub(crate) fn shown(&self, format: StoryFormat, is_first: bool) -> String {
        match format {
            StoryFormat::Markdown => sanitize::plain(&markdown::turn(self)),
            StoryFormat::Html => html::turn(self),
            StoryFormat::Json => {
                let before = if is_first { "" } else { "," };
                let turn = serde_json::to_string(self).unwrap_or_default();
                format!("{before}{turn}")
            }
        }
    }
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Turn {
    /// From 1; 0 for what came before the first turn, or in a session without turns: cells, and what a script did.
    pub(crate) number: u32,
    /// The profile it ran under.
    pub(crate) profile: String,
    /// When it began.
    pub(crate) began_ms: TimeMs,
    /// From its beginning to its last record, without the time when no process worked on it.
    pub(crate) took_ms: u64,
    /// Tokens of all its requests.
    pub(crate) usage: Usage,
    /// Money, where the price of each model is known.
    pub(crate) cost_usd: Option<f64>,
    /// What was said before the first step.
    pub(crate) said: Vec<Item>,
    /// Its steps, in order.
    pub(crate) steps: Vec<Step>,
    /// How it ended; absent where it was cut off or waits.
    pub(crate) ending: Option<TurnEnding>,
    /// What it waits for, where it is parked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<Question>,
    /// What the user ran in Python before the next turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cells: Vec<Item>,
    /// What a script did outside of its conversations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) script: Vec<Item>,
}

impl Turn {
    /// A turn of which only its beginning is known.
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
        }
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Step {
    /// From 1; a summary that compaction asked for has the number of the step it was made for.
    pub(crate) number: u32,
    /// Who was asked, `provider/model`.
    pub(crate) model: String,
    /// When its request was sent first.
    pub(crate) asked_ms: TimeMs,
    /// From there to the reply; absent where there is none.
    pub(crate) replied_after_ms: Option<u64>,
    /// How often its request was sent.
    pub(crate) requests: u32,
    /// Tokens; absent where the provider did not say.
    pub(crate) usage: Option<Usage>,
    /// Money, where the price is known.
    pub(crate) cost_usd: Option<f64>,
    /// What happened in it, in order.
    pub(crate) items: Vec<Item>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Item {
    /// The user said something.
    User {
        /// What.
        text: String,
    },
    /// The runtime said something to the model.
    Runtime {
        /// What.
        text: String,
    },
    /// The model thought.
    Reasoning {
        /// What.
        text: String,
    },
    /// The model said something.
    Text {
        /// What.
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
        /// The tool; empty for a call that was never begun.
        tool: String,
        /// The arguments that it was run with.
        arguments: Value,
        /// The error's code, if it failed.
        error: Option<String>,
        /// What came of it.
        text: String,
        /// How long it ran.
        took_ms: u64,
    },
    /// The user ran a cell in the Python session.
    Cell {
        /// The code, as far as it is kept.
        code: String,
        /// What came of it; absent where its end is not recorded.
        result: Option<String>,
        /// How long it ran.
        took_ms: u64,
    },
    /// Something else that is worth a line.
    Note {
        /// What.
        text: String,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TurnEnding {
    /// Why.
    pub(crate) stop_reason: StopReason,
    /// The answer.
    pub(crate) text: String,
    /// Whether it is less than it could be.
    pub(crate) degraded: bool,
}

#[cfg(test)]
mod tests;
