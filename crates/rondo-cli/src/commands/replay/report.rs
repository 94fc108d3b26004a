//! Output of `rondo replay`.

use super::differences::{data, full, line, rerun};
use super::exit_now;
use crate::cli::OutputFormat;
use crate::commands::report::write_failed;
use crate::error::Result;
use crate::output::Output;
use crate::render::{DeniedCall, result_of_process};
use rondo_core::replay::{ReplayedTurn, Rerun};
use rondo_types::units::counted;
use rondo_types::{EventBody, SessionId, TurnEvent};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Differences of a turn that are named; the rest is counted.
const NAMED_MAX: usize = 10;

/// Report of a replay, gathered turn by turn. Events and calls that were run again go out at once.
pub(super) struct Report {
    session: SessionId,
    format: OutputFormat,
    strict: bool,
    output: Output,
    turns: usize,
    requests: usize,
    differs: bool,
    /// Set once a difference was shown in full; nothing is shown after it.
    is_full: bool,
    /// The report of the turns and of the calls that were run again.
    lines: [String; 2],
    /// The turns as data.
    data: Vec<Value>,
    reruns: usize,
}

impl Report {
    /// Begins a report.
    pub(super) fn new(
        session: SessionId,
        format: OutputFormat,
        strict: bool,
        output: Output,
    ) -> Self {
        Self {
            session,
            format,
            strict,
            output,
            turns: 0,
            requests: 0,
            differs: false,
            is_full: false,
            lines: Default::default(),
            data: Vec::new(),
            reruns: 0,
        }
    }

    /// Takes the next turn.
    ///
    /// # Errors
    /// When standard output has no reader.
    pub(super) fn turn(&mut self, turn: &ReplayedTurn) -> Result<()> {
        self.turns += 1;
        self.requests += turn.requests;
        self.differs |= !turn.differences.is_empty();
        match self.format {
            OutputFormat::Text => self.tell(turn),
            OutputFormat::Json => self.data.push(turn_data(turn)),
            OutputFormat::StreamJson => return self.events(turn),
        }
        Ok(())
    }

    fn tell(&mut self, turn: &ReplayedTurn) {
        if self.is_full {
            return;
        }
        let [lines, _] = &mut self.lines;
        let _ = writeln!(lines, "turn {}: {}", self.turns, turn_line(turn));
        for difference in turn.differences.iter().take(NAMED_MAX) {
            let _ = writeln!(lines, "  {}", line(difference));
            if self.strict {
                lines.push_str(&full(difference));
                self.is_full = true;
                return;
            }
        }
        let more = turn.differences.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            let _ = writeln!(lines, "  and {more} more");
        }
    }

    /// Events that `rondo ask` and `rondo resume` printed, with the deltas joined.
    fn events(&self, turn: &ReplayedTurn) -> Result<()> {
        let mut text = String::new();
        for event in turn.streams.iter().flatten() {
            let _ = writeln!(text, "{}", printed(event, turn));
        }
        self.output.json(&text).map_err(write_failed)
    }

    /// Takes the next call that was run again.
    ///
    /// # Errors
    /// When standard output has no reader.
    pub(super) fn rerun(&mut self, call: &Rerun) -> Result<()> {
        self.differs |= call.has_drifted();
        self.reruns += 1;
        match self.format {
            OutputFormat::Text => {
                let [_, lines] = &mut self.lines;
                lines.push_str(&rerun(call));
            }
            OutputFormat::Json => {
                let before = if self.reruns == 1 { RERUNS } else { "," };
                let text = format!("{before}{}", rerun_data(call));
                return self.output.json(&text).map_err(write_failed);
            }
            OutputFormat::StreamJson => {}
        }
        Ok(())
    }

    /// Reports the remaining differences, and returns whether anything differs from the records.
    ///
    /// # Errors
    /// When standard output has no reader.
    pub(super) fn end(self) -> Result<bool> {
        let shown = match self.format {
            OutputFormat::Text => self.output.stdout(&self.text()),
            OutputFormat::Json => self.output.json(&self.rest()),
            OutputFormat::StreamJson => Ok(()),
        };
        shown.map_err(write_failed)?;
        Ok(self.differs)
    }

    fn text(&self) -> String {
        let [turns, reruns] = &self.lines;
        let reruns = if self.is_full { "" } else { reruns };
        format!(
            "{}: {}, {}\n{turns}{reruns}",
            self.session,
            counted(self.turns, "turn"),
            counted(self.requests, "request")
        )
    }

    /// The end of the object that the calls begin.
    fn rest(&self) -> String {
        let before = if self.reruns == 0 { RERUNS } else { "" };
        let (same, session) = (json!(!self.differs), json!(self.session));
        let turns = json!(self.data);
        format!("{before}],\"same\":{same},\"session\":{session},\"turns\":{turns}}}\n")
    }
}

/// The beginning of the object that `--json` prints.
const RERUNS: &str = "{\"reruns\":[";

fn rerun_data(call: &Rerun) -> Value {
    json!({
        "call": call.call_id,
        "tool": call.tool,
        "arguments": call.arguments,
        "recorded": call.recorded,
        "now": call.now,
        "drifted": call.has_drifted(),
    })
}

/// Returns an event as the command line prints it, which adds to the last one how the process ended.
fn printed(event: &TurnEvent, turn: &ReplayedTurn) -> Value {
    let is_result = matches!(event.body, EventBody::Result(_));
    let printed = match exit_now(turn).filter(|_| is_result) {
        Some(exit) => result_of_process(event.clone(), exit, &denied(turn)).ok(),
        None => serde_json::to_value(event).ok(),
    };
    printed.unwrap_or_default()
}

/// Returns the calls that were denied because there was no user to ask.
fn denied(turn: &ReplayedTurn) -> Vec<DeniedCall> {
    let process = turn.process.iter();
    let ids = process.flat_map(|process| &process.needed_approval);
    let asked = ids.filter_map(|id| turn.asked.iter().find(|it| it.call_id == *id));
    let denied = asked.map(|it| DeniedCall {
        id: it.call_id.clone(),
        tool: it.tool.clone(),
        arguments: it.arguments.clone(),
        // Only the live hint says why.
        reasons: Vec::new(),
    });
    denied.collect()
}

/// Returns the turn's last event, if it ended.
fn result(turn: &ReplayedTurn) -> Option<Value> {
    let last = turn.streams.last()?.last()?;
    matches!(last.body, EventBody::Result(_)).then(|| printed(last, turn))
}

fn turn_line(turn: &ReplayedTurn) -> String {
    let end = match &turn.outcome {
        Some(outcome) => format!(
            "{} after {} and {}",
            outcome.stop_reason,
            counted(outcome.steps as usize, "step"),
            counted(outcome.tool_calls as usize, "tool call"),
        ),
        None => "cut off".to_owned(),
    };
    let changed = turn.requests_changed();
    let others = turn.differences.len() - changed;
    match (changed, others) {
        (0, 0) => format!("{end}, as recorded"),
        (0, others) => format!("{end}; {}", counted(others, "difference")),
        (changed, _) => format!("{end}; {changed} of {} requests differ", turn.requests),
    }
}

fn turn_data(turn: &ReplayedTurn) -> Value {
    let differences = turn.differences.iter().map(data);
    json!({
        "turn": turn.turn,
        "stop_reason": turn.outcome.as_ref().map(|it| it.stop_reason),
        "text": turn.outcome.as_ref().map(|it| &it.text),
        "result": result(turn),
        "requests": turn.requests,
        "requests_changed": turn.requests_changed(),
        "differences": differences.collect::<Vec<_>>(),
    })
}
