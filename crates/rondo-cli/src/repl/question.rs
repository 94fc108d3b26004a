//! A question about a call on the terminal, and the keys that answer it.

use super::approver::PromptQuestion;
use super::draft::Draft;
use super::keyboard::Act;
use crate::output::Output;
use crate::remember::{self, Remember};
use crate::render::{Fitted, asks_for, fitted, in_full, offer_of_rest};
use crossterm::event::Event;
use rondo_runtime::form::FormStep;
use rondo_runtime::granting::{PolicyChange, UserPolicy};
use rondo_runtime::sanitize::plain;
use rondo_tui::prompt::{Editor, edit};
use rondo_types::{AnswerValue, Grant};

/// Unreadable answers after which a call is denied.
const ATTEMPTS_MAX: u32 = 3;

/// The question that stands on the terminal.
pub(super) struct Asked {
    pub(super) put: PromptQuestion,
    /// What a yes can also let run from then on; nothing while a part of the question is not shown.
    offers: Vec<Grant>,
    /// Characters of the question that are not shown.
    left_out: usize,
    /// A change of the user's rules that is shown, and not written yet.
    change: Option<(PolicyChange, Grant)>,
    draft: Option<Draft>,
    is_editing: bool,
    answer: Editor,
    attempts: u32,
}

impl Asked {
    /// Puts a question.
    pub(super) fn put(put: PromptQuestion, output: &Output) -> Self {
        let PromptQuestion { question, look, .. } = &put;
        let size = (output.rows(), output.columns());
        let has_color = output.stderr_color;
        let Fitted { text, left_out } = fitted(
            &question.prompt,
            &question.subject.arguments,
            look,
            size,
            has_color,
        );
        output.stderr(&format!("\r\x1b[K{text}"));
        let asked = Self {
            offers: match left_out {
                0 => question.offers.clone(),
                _ => Vec::new(),
            },
            left_out,
            change: None,
            // A dumb terminal cannot show a line again after each key.
            draft: Draft::of(question).filter(|_| output.stderr_erases),
            put,
            is_editing: false,
            answer: Editor::default(),
            attempts: 0,
        };
        asked.show_choice(output);
        asked
    }

    /// Returns whether a key that would stop the turn only ends a change of the arguments.
    pub(super) fn is_editing(&self) -> bool {
        self.is_editing
    }

    fn show_choice(&self, output: &Output) {
        if let Some(form) = &self.put.form {
            return output.stderr(&form.prompt());
        }
        if self.change.is_some() {
            return output.stderr("Write this and run it? y/n, then Enter (Enter alone: no): ");
        }
        let change = self.draft.as_ref().map_or("", |_| "/e");
        let (letters, meaning) = remember::choice(&self.offers);
        let kind = &self.put.question.kind;
        let rest = offer_of_rest(kind, self.left_out);
        let asks = asks_for(kind);
        let view = if rest.is_empty() { "" } else { "/v" };
        let edits = if change.is_empty() { "" } else { "; e: edit" };
        output.stderr(&format!(
            "{meaning}{rest}{asks}y/n{letters}{change}{view}, then Enter (Enter alone: no{edits}): "
        ));
    }

    /// Takes a key of an answer; returns the question while it is open.
    pub(super) fn take(
        self,
        act: Act,
        event: &Event,
        output: &Output,
        policy: &UserPolicy,
    ) -> Option<Self> {
        match (self.is_editing, act) {
            (true, Act::Enter) => self.end_edit(output),
            (true, Act::Stop) => Some(self.drop_edit(output)),
            (true, Act::Edit) => Some(self.change(event, output)),
            (false, Act::Enter) => self.choose(output, policy),
            (false, Act::Stop | Act::Edit) => Some(self.spell(event, output)),
        }
    }

    /// Types at the end of the answer, or takes its end back. A dumb terminal can show nothing else.
    fn spell(mut self, event: &Event, output: &Output) -> Self {
        let before = self.answer.text().to_owned();
        match event {
            Event::Key(key) => edit(&mut self.answer, key),
            Event::Paste(text) if self.put.form.is_some() => self.answer.insert(text),
            // A paste answers nothing.
            _ => {}
        }
        self.answer.go_to_end();
        let now = self.answer.text();
        let kept = before.chars().zip(now.chars());
        let kept: String = kept
            .take_while(|(one, other)| one == other)
            .map(|it| it.0)
            .collect();
        let gone = before.chars().count() - kept.chars().count();
        let new = now.get(kept.len()..).unwrap_or_default();
        output.stderr(&format!("{}{}", "\x08 \x08".repeat(gone), plain(new)));
        self
    }

    fn choose(mut self, output: &Output, policy: &UserPolicy) -> Option<Self> {
        output.stderr("\n");
        if self.put.form.is_some() {
            return self.fill(output);
        }
        let answer = self.answer.take().trim().to_ascii_lowercase();
        if let Some((change, grant)) = self.change.take() {
            return self.write(&answer, (change, grant), output);
        }
        match remember::chosen(&answer, &self.offers) {
            Some(Remember::InSession(grant)) => {
                self.send(AnswerValue::Approve, Some(grant));
                return None;
            }
            Some(Remember::ForEver(grant)) => return Some(self.show_change(grant, policy, output)),
            None => {}
        }
        let approval = match answer.as_str() {
            "y" | "yes" => AnswerValue::Approve,
            "e" | "edit" if self.draft.is_some() => {
                self.is_editing = true;
                self.show_draft(output);
                return Some(self);
            }
            "v" | "view" if self.left_out > 0 => return Some(self.show_rest(output)),
            "n" | "no" | "" => AnswerValue::no(),
            _ if self.attempts + 1 >= ATTEMPTS_MAX => AnswerValue::deny("the user gave no answer"),
            _ => {
                self.attempts += 1;
                self.show_choice(output);
                return Some(self);
            }
        };
        self.send(approval, None);
        None
    }

    /// Shows all of the question: what stood in its middle is read now.
    fn show_rest(mut self, output: &Output) -> Self {
        let PromptQuestion { question, look, .. } = &self.put;
        let (prompt, arguments) = (&question.prompt, &question.subject.arguments);
        let shown = in_full(
            prompt,
            arguments,
            look,
            output.columns(),
            output.stderr_color,
        );
        output.stderr(&shown);
        self.offers = question.offers.clone();
        self.left_out = 0;
        self.show_choice(output);
        self
    }

    /// Takes a line as the answer to the next field.
    fn fill(mut self, output: &Output) -> Option<Self> {
        let line = self.answer.take();
        match self.put.form.as_mut()?.answer(&line) {
            FormStep::Next(why) => {
                if let Some(why) = why {
                    output.stderr(&format!("{}\n", plain(&why)));
                }
                self.show_choice(output);
                Some(self)
            }
            FormStep::Done(arguments) => {
                self.send(AnswerValue::value(arguments), None);
                None
            }
            FormStep::Declined(reason) => {
                self.send(AnswerValue::deny(reason), None);
                None
            }
        }
    }

    fn show_change(mut self, grant: Grant, policy: &UserPolicy, output: &Output) -> Self {
        match remember::shown_change(policy, &grant) {
            Ok((change, shown)) => {
                output.stderr(&shown);
                self.change = Some((change, grant));
            }
            Err(error) => output.note(&error.line()),
        }
        self.show_choice(output);
        self
    }

    /// Writes the change that was shown, if the user agrees; otherwise the call is still asked about.
    fn write(
        self,
        answer: &str,
        (change, grant): (PolicyChange, Grant),
        output: &Output,
    ) -> Option<Self> {
        let written = match answer {
            "y" | "yes" => remember::write(&change, output),
            _ => {
                self.show_choice(output);
                return Some(self);
            }
        };
        match written {
            Ok(()) => {
                self.send(AnswerValue::Approve, Some(grant));
                None
            }
            Err(error) => {
                output.note(&error.line());
                self.show_choice(output);
                Some(self)
            }
        }
    }

    fn change(mut self, event: &Event, output: &Output) -> Self {
        if let Some(draft) = self.draft.as_mut() {
            draft.take(event);
        }
        self.show_draft(output);
        self
    }

    fn show_draft(&self, output: &Output) {
        if let Some(draft) = &self.draft {
            output.stderr(&draft.line(output.columns()));
        }
    }

    fn end_edit(self, output: &Output) -> Option<Self> {
        output.stderr("\n");
        match self.draft.as_ref().map(Draft::arguments)? {
            Ok(changed) => {
                let edited = changed.map_or(AnswerValue::Approve, AnswerValue::value);
                self.send(edited, None);
                None
            }
            Err(reason) => {
                output.stderr(&format!("{}\n", plain(&reason)));
                self.show_draft(output);
                Some(self)
            }
        }
    }

    fn drop_edit(mut self, output: &Output) -> Self {
        output.stderr("\n");
        self.is_editing = false;
        self.draft = Draft::of(&self.put.question);
        self.show_choice(output);
        self
    }

    /// No answer is awaited once the turn was stopped.
    fn send(self, value: AnswerValue, remember: Option<Grant>) {
        let _ = self.put.answer.send((value, remember));
    }
}
