//! Differences between a recording and its replay, in words.

use rondo_core::replay::{Difference, PartDifference, ReplayedEnd, RequestDifference, Rerun};
use rondo_types::{ToolError, ToolOutcome};
use serde_json::{Value, json};
use similar::TextDiff;

/// Lines of a diff around each change.
const CONTEXT_LINES: usize = 3;

/// Describes a difference in a line.
pub(in crate::commands) fn line(difference: &Difference) -> String {
    match difference {
        Difference::Request(request) => request_line(request),
        Difference::Call { call_id, tool, .. } => {
            format!("call {call_id}: `{tool}` has other arguments")
        }
        Difference::Unused { record, kind } => {
            format!("record {record}: {kind} that is no longer requested")
        }
        Difference::Ending { recorded, now } => match now {
            None => format!(
                "the turn would continue past its records, which end with `{}`",
                recorded.stop_reason
            ),
            Some(now) if now.stop_reason == recorded.stop_reason => {
                format!(
                    "the turn ends with a different answer (`{}`)",
                    now.stop_reason
                )
            }
            Some(now) => format!(
                "the turn ends with `{}`, not with `{}`",
                now.stop_reason, recorded.stop_reason
            ),
        },
        Difference::Exit { recorded, now } => {
            format!("the process ends with exit code {now}, not with {recorded}")
        }
    }
}

fn request_line(request: &RequestDifference) -> String {
    let parts: Vec<String> = request.parts.iter().map(|it| it.part.to_string()).collect();
    let what = match parts.is_empty() {
        true => "is another".to_owned(),
        false => format!("differs: {}", parts.join(", ")),
    };
    format!(
        "record {}, step {}: the request {what}",
        request.record, request.step
    )
}

/// Describes a difference in full.
pub(super) fn full(difference: &Difference) -> String {
    match difference {
        Difference::Request(request) => request.parts.iter().map(part_diff).collect(),
        Difference::Call { recorded, now, .. } => diff(&pretty(recorded), &pretty(now)),
        Difference::Unused { .. } | Difference::Exit { .. } => String::new(),
        Difference::Ending { recorded, now } => {
            let now = now.as_ref().map(ending_text).unwrap_or_default();
            diff(&ending_text(recorded), &now)
        }
    }
}

fn ending_text(ending: &ReplayedEnd) -> String {
    let less = match ending.degraded {
        true => ", less than it could be",
        false => "",
    };
    format!("({}{less})\n{}", ending.stop_reason, ending.text)
}

fn part_diff(part: &PartDifference) -> String {
    let diff = match (&part.recorded, &part.now) {
        (None, Some(now)) => format!(
            "(the recorded text cannot be rebuilt; this is the current text)\n{}\n",
            now.trim_end()
        ),
        (recorded, now) => diff(
            recorded.as_deref().unwrap_or_default(),
            now.as_deref().unwrap_or_default(),
        ),
    };
    format!("--- {}\n{diff}", part.part)
}

fn diff(recorded: &str, now: &str) -> String {
    let (recorded, now) = (format!("{recorded}\n"), format!("{now}\n"));
    let diff = TextDiff::from_lines(&recorded, &now);
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT_LINES).to_string()
}

/// Describes the result of a call that was run again, in a line and with its diff.
pub(super) fn rerun(call: &Rerun) -> String {
    let head = format!("call {} {} {}", call.call_id, call.tool, call.arguments);
    match &call.now {
        None => format!("{head}: not run again\n"),
        Some(_) if !call.has_drifted() => format!("{head}: the same\n"),
        Some(now) => {
            let diff = diff(&outcome_text(&call.recorded), &outcome_text(now));
            format!("{head}: drifted\n{diff}")
        }
    }
}

fn outcome_text(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Ok(output) => match &output.value {
            Value::String(text) => text.clone(),
            other => pretty(other),
        },
        ToolOutcome::Error(ToolError { code, message, .. }) => format!("error ({code}): {message}"),
    }
}

/// Returns a difference as data.
pub(super) fn data(difference: &Difference) -> Value {
    match difference {
        Difference::Request(request) => json!({
            "kind": "request",
            "record": request.record,
            "step": request.step,
            "parts": request.parts.iter().map(part_data).collect::<Vec<_>>(),
        }),
        Difference::Call {
            call_id,
            tool,
            recorded,
            now,
        } => json!({
            "kind": "call",
            "call": call_id,
            "tool": tool,
            "recorded": recorded,
            "now": now,
        }),
        Difference::Unused { record, kind } => {
            json!({ "kind": "unused", "record": record, "what": kind })
        }
        Difference::Ending { recorded, now } => json!({
            "kind": "ending",
            "recorded": ending_data(recorded),
            "now": now.as_ref().map(ending_data),
        }),
        Difference::Exit { recorded, now } => {
            json!({ "kind": "exit_code", "recorded": recorded, "now": now })
        }
    }
}

fn part_data(part: &PartDifference) -> Value {
    json!({ "part": part.part.to_string(), "recorded": part.recorded, "now": part.now })
}

fn ending_data(ending: &ReplayedEnd) -> Value {
    json!({
        "stop_reason": ending.stop_reason,
        "text": ending.text,
        "degraded": ending.degraded,
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
