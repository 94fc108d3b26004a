//! The question that stands at the line prompt, and the keys that answer it.

use super::approver::PromptQuestion;
use super::keyboard::Act;
use crate::asking::Next;
use crate::output::Output;
use crate::render::around_caret;
use crossterm::event::Event;
use rondo_core::shown;
use rondo_runtime::sanitize::plain;
use rondo_tui::question::Step;
use rondo_types::{AnswerValue, Grant};
use textwrap::core::display_width;

/// The question that stands on the terminal.
pub(super) struct Asked(pub(super) PromptQuestion);

impl Asked {
    /// Puts a question.
    pub(super) fn put(mut put: PromptQuestion, output: &Output) -> Self {
        let text = put.written.begin((output.rows(), output.columns()));
        output.stderr(&format!("\r\x1b[K{text}"));
        Self(put)
    }

    /// Returns whether a key that would stop the turn only goes back to the choice.
    pub(super) fn is_editing(&self) -> bool {
        matches!(
            self.0.written.open.step(),
            Step::Reason | Step::Command | Step::Json
        )
    }

    /// Takes a key of an answer; returns the question while it is open.
    pub(super) fn take(mut self, act: Act, event: &Event, output: &Output) -> Option<Self> {
        match act {
            Act::Edit if self.is_editing() && output.stderr_erases => {
                self.0.written.open.type_in(event);
                self.show_row(output);
            }
            Act::Edit => self.spell(event, output),
            Act::Stop => {
                self.0.written.open.back();
                output.stderr(&format!("\n{}", self.0.written.open.line_prompt()));
            }
            Act::Enter => {
                output.stderr("\n");
                match self.0.written.enter(output.columns()) {
                    Next::Ask(text) => output.stderr(&text),
                    Next::Answered(value, remember) => {
                        self.send(value, remember);
                        return None;
                    }
                }
                if self.is_editing() && output.stderr_erases {
                    self.show_row(output);
                }
            }
        }
        Some(self)
    }

    /// Draws the row anew that is edited.
    fn show_row(&self, output: &Output) {
        let open = &self.0.written.open;
        let (prompt, typed) = (open.line_prompt(), open.typed());
        let room = output.columns().saturating_sub(display_width(&prompt) + 1);
        let (before, after) = (shown::line(typed.before()), shown::line(typed.after()));
        let text = around_caret(&before, &after, room);
        output.stderr(&format!("\r\x1b[K{prompt}{text}"));
    }

    /// Types at the end of the answer, or takes its end back. A dumb terminal can show nothing else.
    fn spell(&mut self, event: &Event, output: &Output) {
        let open = &mut self.0.written.open;
        let before = open.typed().text().to_owned();
        open.type_in(event);
        open.typed_mut().go_to_end();
        let now = open.typed().text();
        let same = before.chars().zip(now.chars());
        let same = same.take_while(|(one, other)| one == other);
        let kept: usize = same.map(|(c, _)| c.len_utf8()).sum();
        let gone = display_width(before.get(kept..).unwrap_or_default());
        let new = now.get(kept..).unwrap_or_default();
        output.stderr(&format!("{}{}", "\x08 \x08".repeat(gone), plain(new)));
    }

    /// No answer is awaited once the turn was stopped.
    fn send(self, value: AnswerValue, remember: Option<Grant>) {
        let _ = self.0.answer.send((value, remember));
    }
}
