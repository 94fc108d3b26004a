//! Activity of a subagent, as branches below the card of the call that started it.

use super::entry::cut;
use crate::call_line::shortened;
use crate::text::{Piece, Row, clean, columns};
use crate::theme::Theme;
use rondo_runtime::view::{CallState, CallView, Fold};
use rondo_types::units::took;
use rondo_types::{CallId, EventBody, StopReason, TurnEvent};

/// Subagents of a subagent that are kept; the oldest ones give way.
const CHILDREN_MAX: usize = 64;
/// Subagents within each other whose calls are shown.
const DEPTH_MAX: usize = 6;
/// Columns of a branch's text at least.
const TEXT_COLUMNS_MIN: usize = 4;

/// A subagent, as far as it is known.
#[derive(Debug)]
pub(crate) struct Child {
    fold: Fold,
    /// The subagents that its own calls started.
    children: Vec<(CallId, Self)>,
}

impl Default for Child {
    fn default() -> Self {
        Self {
            fold: Fold::brief(),
            children: Vec::new(),
        }
    }
}

impl Child {
    /// Takes an event of its session.
    pub(crate) fn take(&mut self, event: &TurnEvent) {
        let _ = self.fold.event(event);
        if let EventBody::ChildEvent { id, event } = &event.body
            && let Some(child) = self.child_mut(id)
        {
            child.take(event);
        }
    }

    /// Returns the subagent that a call started.
    fn child_mut(&mut self, id: &CallId) -> Option<&mut Self> {
        if self.children.iter().all(|child| child.0 != *id) {
            if self.children.len() >= CHILDREN_MAX {
                self.children.remove(0);
            }
            self.children.push((id.clone(), Self::default()));
        }
        let mut children = self.children.iter_mut();
        children
            .find(|child| child.0 == *id)
            .map(|child| &mut child.1)
    }

    /// Returns its state in a few words.
    pub(crate) fn state(&self) -> String {
        let turn = self.fold.turn();
        match turn.map(|turn| (turn, &turn.ending)) {
            Some((_, Some(ending))) => {
                let first = ending.text.lines().next().unwrap_or_default();
                clean::line(&format!("{}: {first}", ending.stop_reason))
            }
            Some((turn, None)) if !turn.waits_for.is_empty() => "waits for an answer".to_owned(),
            Some((turn, None)) if turn.step() > 0 => format!("step {}", turn.step()),
            _ => "starts".to_owned(),
        }
    }

    /// Returns all of it as lines, indented by two blanks.
    pub(crate) fn source(&self) -> String {
        let calls = self.fold.calls().iter();
        calls.map(|call| format!("\n  {}", line(call))).collect()
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
        let calls = self.fold.calls();
        let skipped = calls.len().saturating_sub(calls_max);
        if skipped > 0 {
            let text = format!("{before}├ … {skipped} before (Alt-E)");
            rows.push(Row::of(cut(&text, width), theme.dim));
        }
        for call in calls.iter().skip(skipped) {
            rows.push(call_row(call, before, width, theme));
            let child = self.children.iter().find(|child| child.0 == call.id);
            if let Some((_, child)) = child
                && before.chars().count() < 2 * DEPTH_MAX
            {
                let inner = format!("{before}│ ");
                child.branches(&inner, width, theme, calls_max, rows);
            }
        }
        let turn = self.fold.turn();
        let ending = turn.and_then(|turn| turn.ending.as_ref());
        let mark = match ending.map(|ending| ending.stop_reason) {
            Some(StopReason::Complete) => ("✓ ", theme.good),
            Some(_) => ("✗ ", theme.bad),
            None if turn.is_some_and(|turn| !turn.waits_for.is_empty()) => ("▲ ", theme.warn),
            None => ("● ", theme.accent),
        };
        let state = match ending {
            // Its answer is below the branches.
            Some(ending) if before.is_empty() && ending.stop_reason == StopReason::Complete => {
                ending.stop_reason.to_string()
            }
            _ => self.state(),
        };
        let branch = format!("{before}└ ");
        rows.push(branch_row(&branch, mark, &state, "", width, theme));
    }
}

/// Returns a call as one line.
fn line(call: &CallView) -> String {
    clean::line(&format!("{} {}", call.tool, call.summary))
}

fn call_row(call: &CallView, before: &str, width: usize, theme: &Theme) -> Row {
    let (mark, took) = match call.state {
        CallState::Asked | CallState::Running => (("● ", theme.accent), String::new()),
        CallState::Ended {
            is_ok: true,
            took_ms,
        } => (("✓ ", theme.good), took(took_ms)),
        CallState::Ended { took_ms, .. } => (("✗ ", theme.bad), took(took_ms)),
    };
    let branch = format!("{before}├ ");
    branch_row(&branch, mark, &line(call), &took, width, theme)
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
            Piece::new(shortened(text, room), theme.text),
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
    fn the_answer_of_a_subagent_is_not_said_among_its_branches() {
        let mut outcome = rondo_types::Outcome::failed(rondo_types::ModelError::new(
            rondo_types::ErrorClass::Server,
            "x",
        ));
        outcome.stop_reason = StopReason::Complete;
        outcome.error = None;
        outcome.text = "It is **there**.".to_owned();
        let mut child = Child::default();
        let result = rondo_types::ResultEvent::from_outcome(&outcome);
        child.take(&event(EventBody::Result(Box::new(result))));
        assert_eq!(shown(&child, 5), ["└ ✓ complete"]);
        assert_eq!(child.state(), "complete: It is **there**.");
    }

    #[test]
    fn a_question_of_a_subagent_is_told() {
        let mut child = Child::default();
        let kind = json!({"kind": "approval"});
        let question = json!({"id": "c", "kind": kind, "prompt": "run it?", "hash": "1"});
        let question = serde_json::from_value(question).unwrap();
        child.take(&event(EventBody::Parked {
            questions: vec![question],
        }));
        assert_eq!(shown(&child, 5), ["└ ▲ waits for an answer"]);
    }
}
