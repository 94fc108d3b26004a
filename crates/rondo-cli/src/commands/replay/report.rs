use super::differences::{data, full, line, rerun};
use super::source::Recorded;
use crate::cli::OutputFormat;
use crate::exit::{Circumstances, Exit};
use crate::render::sanitize;
use rondo_core::replay::{Replay, ReplayedTurn, Rerun};
use rondo_types::{EventBody, Outcome, TurnEvent};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Differences of a turn that are named; the rest is counted.
const NAMED_MAX: usize = 10;

/// A replay, ready to be shown.
pub(super) struct Replayed<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) replay: &'a Replay,
    pub(super) reruns: &'a [Rerun],
    pub(super) strict: bool,
}

impl Replayed<'_> {
    /// Returns whether anything is not as it was recorded.
    pub(super) fn differs(&self) -> bool {
        let turns = self.replay.turns.iter();
        turns.flat_map(|turn| &turn.differences).next().is_some()
            || self.reruns.iter().any(Rerun::has_drifted)
    }

    /// Returns what standard output carries.
    pub(super) fn show(&self, format: OutputFormat) -> String {
        match format {
            OutputFormat::Text => sanitize::plain(&self.text()),
            OutputFormat::Json => format!("{}\n", self.data()),
            OutputFormat::StreamJson => self.stream(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{}: {}", self.recorded.session, summary(self.replay));
        for (number, turn) in (1..).zip(&self.replay.turns) {
            let _ = writeln!(text, "turn {number}: {}", turn_line(turn));
            for difference in turn.differences.iter().take(NAMED_MAX) {
                let _ = writeln!(text, "  {}", line(difference));
                if self.strict {
                    text.push_str(&full(difference));
                    return text;
                }
            }
            let more = turn.differences.len().saturating_sub(NAMED_MAX);
            if more > 0 {
                let _ = writeln!(text, "  and {more} more");
            }
        }
        text.extend(self.reruns.iter().map(rerun));
        text
    }

    fn data(&self) -> Value {
        let turns = self.replay.turns.iter().map(turn_data);
        let reruns = self.reruns.iter().map(|call| {
            json!({
                "call": call.call_id,
                "tool": call.tool,
                "arguments": call.arguments,
                "recorded": call.recorded,
                "now": call.now,
                "drifted": call.has_drifted(),
            })
        });
        json!({
            "session": self.recorded.session,
            "same": !self.differs(),
            "turns": turns.collect::<Vec<_>>(),
            "reruns": reruns.collect::<Vec<_>>(),
        })
    }

    /// What `rondo ask` and `rondo resume` printed, with the deltas joined.
    fn stream(&self) -> String {
        let mut text = String::new();
        for turn in &self.replay.turns {
            for event in turn.streams.iter().flatten() {
                let event = with_exit_code(event, turn.outcome.as_ref());
                let _ = writeln!(
                    text,
                    "{}",
                    serde_json::to_string(&event).unwrap_or_default()
                );
            }
        }
        text
    }
}

/// How the process ended is the command line's own addition to the last event.
fn with_exit_code(event: &TurnEvent, outcome: Option<&Outcome>) -> TurnEvent {
    let mut event = event.clone();
    if let (EventBody::Result(result), Some(outcome)) = (&mut event.body, outcome) {
        let exit = Exit::of_outcome(outcome, Circumstances::default());
        result.exit_code = Some(i32::from(exit.code()));
    }
    event
}

/// Says what a replay went through, in a line.
fn summary(replay: &Replay) -> String {
    let requests: usize = replay.turns.iter().map(|turn| turn.requests).sum();
    let turns = replay.turns.len();
    format!(
        "{}, {}",
        counted(turns, "turn"),
        counted(requests, "request")
    )
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
        "requests": turn.requests,
        "requests_changed": turn.requests_changed(),
        "differences": differences.collect::<Vec<_>>(),
    })
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
