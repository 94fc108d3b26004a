//! What a subagent does, as branches below the card of the call that started it.

use super::card::Card;
use super::entry::cut;
use crate::text::{Piece, Row, clean, columns};
use crate::theme::Theme;
use rondo_types::units::took;
use rondo_types::{CallId, EventBody, TurnEvent};

/// Calls of a subagent that are kept; the oldest ones give way.
const CALLS_MAX: usize = 64;
/// Subagents within each other whose calls are shown.
const DEPTH_MAX: usize = 6;
/// Columns of a branch's text at least.
const TEXT_COLUMNS_MIN: usize = 4;

/// A subagent, as far as it was heard of.
#[derive(Debug, Default)]
pub(crate) struct Child {
    calls: Vec<Call>,
    step: u32,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Works,
    /// For an answer to a question.
    Waits,
    /// It ended; in words, and whether it has done its task.
    Ended(String, bool),
}

#[derive(Debug)]
struct Call {
    id: CallId,
    line: String,
    /// Whether it succeeded, and how long it ran; none while it runs.
    end: Option<(bool, u64)>,
    child: Option<Box<Child>>,
}

impl Child {
    /// Takes an event of its session.
    pub(crate) fn take(&mut self, event: &TurnEvent) {
        match &event.body {
            EventBody::StepStarted { step } => {
                self.step = *step;
                self.state = State::Works;
            }
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } => self.begin(id, Card::call(name, arguments).line()),
            EventBody::ToolCallFinished {
                id,
                ok,
                duration_ms,
                ..
            } => {
                if let Some(call) = self.call(id) {
                    call.end = Some((*ok, *duration_ms));
                }
            }
            EventBody::ChildEvent { id, event } => {
                if let Some(call) = self.call(id) {
                    call.child.get_or_insert_default().take(event);
                }
            }
            EventBody::Parked { .. } => self.state = State::Waits,
            EventBody::Resumed { .. } => self.state = State::Works,
            EventBody::Result(result) => {
                let first = result.text.lines().next().unwrap_or_default();
                let said = clean::line(&format!("{}: {first}", result.stop_reason));
                let is_done = result.stop_reason == rondo_types::StopReason::Complete;
                self.state = State::Ended(said, is_done);
            }
            _ => {}
        }
    }

    fn begin(&mut self, id: &CallId, line: String) {
        if self.calls.len() >= CALLS_MAX {
            self.calls.remove(0);
        }
        self.calls.push(Call {
            id: id.clone(),
            line,
            end: None,
            child: None,
        });
    }

    fn call(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|it| it.id == *id)
    }

    /// Returns what is said of it in a few words.
    pub(crate) fn state(&self) -> String {
        match &self.state {
            State::Works if self.step == 0 => "starts".to_owned(),
            State::Works => format!("step {}", self.step),
            State::Waits => "waits for an answer".to_owned(),
            State::Ended(said, _) => said.clone(),
        }
    }

    /// Returns all of it as lines, indented by two blanks.
    pub(crate) fn source(&self) -> String {
        self.calls
            .iter()
            .map(|it| format!("\n  {}", it.line))
            .collect()
    }

    /// Returns a row for each of its latest calls, and for those of subagents of its own, at most so wide.
    pub(crate) fn rows(&self, width: usize, theme: &Theme, calls_max: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        self.branches("", width, theme, calls_max, &mut rows);
        rows
    }

    fn branches(
        &self,
        before: &str,
        width: usize,
        theme: &Theme,
        calls_max: usize,
        rows: &mut Vec<Row>,
    ) {
        let skipped = self.calls.len().saturating_sub(calls_max);
        if skipped > 0 {
            let text = format!("{before}├ … {skipped} before (Alt-E)");
            rows.push(Row::of(cut(&text, width), theme.dim));
        }
        for call in self.calls.iter().skip(skipped) {
            rows.push(call.row(before, width, theme));
            if let Some(child) = &call.child
                && before.chars().count() < 2 * DEPTH_MAX
            {
                let inner = format!("{before}│ ");
                child.branches(&inner, width, theme, calls_max, rows);
            }
        }
        let (mark, style) = match &self.state {
            State::Works => ("● ", theme.accent),
            State::Waits => ("▲ ", theme.warn),
            State::Ended(_, true) => ("✓ ", theme.good),
            State::Ended(_, false) => ("✗ ", theme.bad),
        };
        let branch = format!("{before}└ ");
        rows.push(branch_row(
            &branch,
            (mark, style),
            &self.state(),
            "",
            width,
            theme,
        ));
    }
}

impl Call {
    fn row(&self, before: &str, width: usize, theme: &Theme) -> Row {
        let mark = match self.end {
            None => ("● ", theme.accent),
            Some((true, _)) => ("✓ ", theme.good),
            Some((false, _)) => ("✗ ", theme.bad),
        };
        let took = self.end.map_or_else(String::new, |it| took(it.1));
        let branch = format!("{before}├ ");
        branch_row(&branch, mark, &self.line, &took, width, theme)
    }
}

fn branch_row(
    branch: &str,
    (mark, style): (&str, ratatui_core::style::Style),
    text: &str,
    took: &str,
    width: usize,
    theme: &Theme,
) -> Row {
    let taken = columns(branch) + columns(mark) + columns(took) + 2;
    let room = width.saturating_sub(taken).max(TEXT_COLUMNS_MIN);
    Row {
        gutter: vec![Piece::new(branch, theme.frame), Piece::new(mark, style)],
        pieces: vec![
            Piece::new(cut(text, room), theme.text),
            Piece::new(format!("  {took}"), theme.dim),
        ],
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;
    use rondo_types::{SessionId, TimeMs, TurnId};
    use serde_json::json;

    fn event(body: EventBody) -> TurnEvent {
        TurnEvent {
            session: SessionId::new("s.c"),
            turn: TurnId::new("t"),
            seq: 0,
            at: TimeMs(0),
            body,
        }
    }

    fn pending(id: &str, name: &str, command: &str) -> EventBody {
        EventBody::ToolCallPending {
            id: CallId::new(id),
            name: name.to_owned(),
            arguments: json!({ "command": command }),
        }
    }

    fn finished(id: &str, ok: bool) -> EventBody {
        let body = json!({"type": "tool_call_finished", "id": id, "ok": ok, "result": null, "truncated": false, "duration_ms": 1200});
        serde_json::from_value(body).unwrap()
    }

    fn shown(child: &Child, calls_max: usize) -> Vec<String> {
        let rows = child.rows(40, &Theme::of(Colours::None), calls_max);
        rows.iter()
            .map(|it| it.whole().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn calls_and_subagents_of_a_subagent_are_branches() {
        let mut child = Child::default();
        assert_eq!(shown(&child, 5), ["└ ● starts"]);
        child.take(&event(EventBody::StepStarted { step: 2 }));
        child.take(&event(pending("a", "exec", "ls\u{1b}[2J -la")));
        child.take(&event(finished("a", true)));
        child.take(&event(pending("b", "subagent", "look")));
        let inner = Box::new(event(pending("c", "exec", "cat x")));
        child.take(&event(EventBody::ChildEvent {
            id: CallId::new("b"),
            event: inner,
        }));
        assert_eq!(
            shown(&child, 5),
            [
                "├ ✓ exec ls -la  1.2 s",
                "├ ● subagent look",
                "│ ├ ● exec cat x",
                "│ └ ● starts",
                "└ ● step 2",
            ]
        );
        assert_eq!(shown(&child, 1)[0], "├ … 1 before (Alt-E)");
    }

    #[test]
    fn a_question_of_a_subagent_is_told() {
        let mut child = Child::default();
        child.take(&event(EventBody::Parked {
            questions: Vec::new(),
        }));
        assert_eq!(shown(&child, 5), ["└ ▲ waits for an answer"]);
    }

    #[test]
    fn of_many_calls_the_latest_are_kept() {
        let mut child = Child::default();
        for at in 0..200 {
            child.take(&event(pending(
                &at.to_string(),
                "exec",
                &format!("echo {at}"),
            )));
        }
        assert_eq!(child.calls.len(), CALLS_MAX);
        assert!(shown(&child, 1)[1].contains("echo 199"));
    }
}
