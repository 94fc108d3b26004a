//! Steps and cost of a session's turns.

use rondo_runtime::view::{Item, StepView, Totals};
use rondo_tui::call_line;
use rondo_tui::prompt::reply::{Reply, ReplyText};
use rondo_types::units::{counted, dollars, tokens, took};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Characters of an argument or a result that `/trace` shows.
const SHOWN_CHARS_MAX: usize = 4000;
/// Columns of a call's line that its time takes.
const TIME_COLUMNS: usize = 12;
/// The reply of a session without a turn.
const NO_TURN: &str = "no question was asked yet";

pub(super) fn cost(totals: &Totals) -> Reply {
    if totals.turns == 0 {
        return Reply::words(NO_TURN);
    }
    let known = (totals.cost_usd > 0.0).then(|| dollars(totals.cost_usd));
    let cost = match (known, totals.is_cost_partial) {
        (Some(cost), false) => cost,
        (Some(cost), true) => format!("at least {cost} (not every price is known)"),
        (None, false) => "at no cost".to_owned(),
        (None, true) => "the price is not known".to_owned(),
    };
    let turns = counted(totals.turns, "turn");
    Reply::words(format!("{turns}, {}, {cost}", tokens(totals.usage)))
}

pub(super) fn steps(totals: &Totals, columns: usize) -> Reply {
    let text = steps_text(totals, |text, (tool, arguments), (_, error, ms)| {
        let line = call_line(tool, arguments, columns.saturating_sub(TIME_COLUMNS));
        let time = took(ms);
        let _ = match error {
            None => writeln!(text, "  • {line}  {time}"),
            Some(failure) => writeln!(text, "  ✗ {line}  {time}, {failure}"),
        };
    });
    shown(text, ReplyText::Lines)
}

pub(super) fn trace(totals: &Totals) -> Reply {
    let text = steps_text(totals, |text, (tool, arguments), (result, error, ms)| {
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        let mark = if error.is_some() { "✗" } else { "•" };
        let _ = writeln!(text, "  {mark} {tool} {}", indented(&arguments));
        let failure = error.map_or(String::new(), |failure| format!(", {failure}"));
        let fields = serde_json::from_str::<Map<String, Value>>(result);
        let fields = fields.and_then(|fields| serde_json::to_string_pretty(&fields));
        let result = fields.unwrap_or_else(|_| result.to_owned());
        let time = took(ms);
        let _ = writeln!(text, "    after {time}{failure}: {}", indented(&result));
    });
    shown(text, ReplyText::Pages)
}

fn shown(text: Option<String>, how: impl FnOnce(String) -> ReplyText) -> Reply {
    match text {
        Some(text) => Reply {
            shown: how(text),
            change: None,
        },
        None => Reply::words(NO_TURN),
    }
}

/// Returns the steps of the latest turn; none without a turn. `write_call` writes a call: its tool and arguments, its result,
/// how it failed, and its duration in milliseconds.
fn steps_text(
    totals: &Totals,
    write_call: impl Fn(&mut String, (&str, &Value), (&str, Option<&str>, u64)),
) -> Option<String> {
    let mut text = String::new();
    for (step, took_ms) in totals.latest()?.timed_steps() {
        let _ = writeln!(text, "{}", step_line(step, took_ms));
        for item in &step.items {
            if let Item::Result {
                tool,
                arguments,
                text: result,
                took_ms,
                ..
            } = item
            {
                let failure = item.failure();
                let end = (result.as_str(), failure.as_deref(), *took_ms);
                write_call(&mut text, (tool, arguments), end);
            }
        }
    }
    text.truncate(text.trim_end().len());
    (!text.is_empty()).then_some(text)
}

fn step_line(step: &StepView, took_ms: Option<u64>) -> String {
    let time = took_ms.map_or("unfinished".to_owned(), took);
    let cost = step.cost_usd;
    let cost = cost.map_or(String::new(), |usd| format!(", {}", dollars(usd)));
    let usage = tokens(step.usage.unwrap_or_default());
    format!("step {}  {time}, {usage}{cost}", step.number)
}

fn indented(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let more = text.chars().count().saturating_sub(SHOWN_CHARS_MAX);
    let more = match more {
        0 => String::new(),
        more => format!("\n    [{more} more characters]"),
    };
    shown.trim_end().replace('\n', "\n    ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn totals(turns: u32, cost_usd: f64, is_cost_partial: bool) -> Totals {
        let mut totals = Totals::default();
        totals.turns = turns;
        totals.cost_usd = cost_usd;
        totals.is_cost_partial = is_cost_partial;
        (totals.usage.input, totals.usage.output) = (10, 5);
        totals
    }

    #[test]
    fn a_command_that_failed_is_marked() {
        let result = |code: i64| Item::Result {
            tool: "exec".to_owned(),
            arguments: json!({"command": "ls x"}),
            error: None,
            text: json!({"stdout": "", "exitCode": code}).to_string(),
            took_ms: 0,
        };
        assert_eq!(result(0).failure(), None);
        assert_eq!(result(2).failure(), Some("exit 2".to_owned()));
    }

    #[test]
    fn a_cost_that_is_not_known_is_not_shown_as_a_sum() {
        let told = |totals: Totals| match cost(&totals).shown {
            ReplyText::Words(text) => text,
            other => panic!("{other:?}"),
        };
        let tokens = "2 turns, 10 tokens in, 5 out";
        assert_eq!(told(totals(0, 0.0, false)), "no question was asked yet");
        assert_eq!(
            told(totals(2, 0.0, true)),
            format!("{tokens}, the price is not known")
        );
        assert_eq!(told(totals(2, 0.0, false)), format!("{tokens}, at no cost"));
        assert_eq!(
            told(totals(2, 0.5, true)),
            format!(
                "{tokens}, at least {} (not every price is known)",
                dollars(0.5)
            )
        );
        assert_eq!(
            told(totals(2, 0.5, false)),
            format!("{tokens}, {}", dollars(0.5))
        );
    }
}
