//! Display of a turn's to-do list, and of the sessions that its calls started.

use crate::commands::ask::answers;
use rondo_core::shown::{readable, readable_line};
use rondo_runtime::todo::mark;
use rondo_tui::call_line;
use rondo_types::text::first_line;
use rondo_types::units::{counted, dollars};
use rondo_types::{EventBody, NanoUsd, ResultEvent, SessionId, TodoItem, TurnEvent};

/// Returns a line for each item of a list.
pub(super) fn todo_lines(items: &[TodoItem]) -> Vec<String> {
    let lines = items.iter();
    let lines = lines.map(|it| format!("  {} {}", mark(it.status), readable_line(&it.text)));
    lines.collect()
}

/// Effect of a child's event on the screen.
pub(super) enum Shown {
    /// Current activity, which the next one replaces.
    Now(String),
    /// A line that stays.
    Line(String),
    /// No change.
    Nothing,
}

/// Returns the text for a child's event: its current work, and one line when it is over.
pub(super) fn of_event(event: &TurnEvent, columns: usize) -> Shown {
    match &event.body {
        EventBody::StepStarted { step } => Shown::Now(format!("subagent, step {step}")),
        EventBody::ToolCallPending {
            name, arguments, ..
        } => Shown::Now(format!(
            "subagent: {}",
            call_line(name, arguments, columns / 2)
        )),
        EventBody::Result(result) => Shown::Line(over(&event.session, result, columns)),
        EventBody::Parked { questions } => Shown::Line(format!(
            "  ↳ {} waits for {}",
            readable(event.session.as_str()),
            answers(questions)
        )),
        _ => Shown::Nothing,
    }
}

fn over(session: &SessionId, result: &ResultEvent, columns: usize) -> String {
    let mut parts = vec![
        result.stop_reason.to_string(),
        counted(result.steps, "step"),
        counted(result.tool_calls, "call"),
        counted(result.usage.total(), "token"),
    ];
    let delegated = result.delegated.and_then(|it| it.cost).map(NanoUsd::usd);
    if let Some(usd) = result.cost_usd.filter(|it| *it > 0.0) {
        parts.push(dollars(usd + delegated.unwrap_or_default()));
    }
    let line = format!("  ↳ {}: {}", readable(session.as_str()), parts.join(", "));
    first_line(&line, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{StopReason, TodoStatus};

    #[test]
    fn an_item_is_a_line_with_its_mark() {
        let items = [
            TodoItem {
                text: "read\u{1b}[2J".to_owned(),
                status: TodoStatus::Done,
            },
            TodoItem {
                text: "write it all down".to_owned(),
                status: TodoStatus::InProgress,
            },
        ];
        let lines = todo_lines(&items);
        assert!(lines[0].starts_with("  [x] read") && !lines[0].contains('\u{1b}'));
        assert_eq!(lines[1], "  [>] write it all down");
    }

    #[test]
    fn the_end_of_a_child_is_one_line() {
        let mut outcome = rondo_types::Outcome::failed(rondo_types::ModelError::new(
            rondo_types::ErrorClass::Server,
            "x",
        ));
        outcome.stop_reason = StopReason::Complete;
        outcome.steps = 1;
        outcome.tool_calls = 2;
        outcome.cost = Some(NanoUsd::from_usd(0.5));
        let line = over(
            &SessionId::new("s.r00100100"),
            &ResultEvent::from_outcome(&outcome),
            80,
        );
        assert_eq!(
            line,
            "  ↳ s.r00100100: complete, 1 step, 2 calls, 0 tokens, 0.5000 USD"
        );
    }
}
