//! A question about a call on the terminal, and the keys that answer it.

use super::approver::{Question, denied};
use super::draft::Draft;
use super::keys::{Key, edit};
use super::permissions::{Permissions, pattern_for};
use crate::output::Output;
use crate::render::fitted;
use rondo_core::Approval;
use rondo_core::shown::line;
use rondo_runtime::sanitize::plain;

/// Unreadable answers after which a call is denied.
const ATTEMPTS_MAX: u32 = 3;

/// The question that stands on the terminal.
pub(super) struct Asked {
    pub(super) question: Question,
    pattern: Option<String>,
    draft: Option<Draft>,
    is_editing: bool,
    answer: String,
    attempts: u32,
}

impl Asked {
    /// Puts a question.
    pub(super) fn put(question: Question, output: &Output) -> Self {
        let Question { request, look, .. } = &question;
        let size = (output.rows(), output.columns());
        let has_color = output.stderr_color;
        let shown = fitted(&request.prompt, &request.arguments, look, size, has_color);
        output.stderr(&format!("\r\x1b[K{shown}"));
        let asked = Self {
            pattern: match question.is_inside {
                true => None,
                false => pattern_for(&question.request),
            },
            draft: Draft::of(&question.request),
            question,
            is_editing: false,
            answer: String::new(),
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
        let always = self.pattern.as_deref();
        let change = self.draft.as_ref().map_or("", |_| "/e");
        let (letter, meaning) = match always {
            Some(pattern) => ("/a", format!("; a: always {}", line(pattern))),
            None => ("", String::new()),
        };
        let edits = if change.is_empty() { "" } else { "; e: edit" };
        output.stderr(&format!(
            "Run it? y/n{letter}{change}, then Enter (Enter alone: no{meaning}{edits}): "
        ));
    }

    /// Takes a key of an answer; returns the question while it is open.
    pub(super) fn take(
        self,
        key: &Key,
        output: &Output,
        permissions: &Permissions,
    ) -> Option<Self> {
        match (self.is_editing, key) {
            (true, Key::Enter) => self.end_edit(output),
            (true, Key::Stop) => Some(self.drop_edit(output)),
            (true, key) => Some(self.change(key, output)),
            (false, Key::Enter) => self.choose(output, permissions),
            (false, key) => Some(self.spell(key, output)),
        }
    }

    fn spell(mut self, key: &Key, output: &Output) -> Self {
        let before = self.answer.chars().count();
        edit(&mut self.answer, key);
        let after = self.answer.chars().count();
        match key {
            Key::Text(text) => output.stderr(&plain(text)),
            _ => output.stderr(&"\x08 \x08".repeat(before.saturating_sub(after))),
        }
        self
    }

    fn choose(mut self, output: &Output, permissions: &Permissions) -> Option<Self> {
        output.stderr("\n");
        let answer = std::mem::take(&mut self.answer).trim().to_ascii_lowercase();
        let approval = match (answer.as_str(), &self.pattern) {
            ("y" | "yes", _) => Approval::Approved,
            ("a" | "always", Some(pattern)) => {
                permissions.allow(pattern);
                Approval::Approved
            }
            ("e" | "edit", _) if self.draft.is_some() => {
                self.is_editing = true;
                self.show_draft(output);
                return Some(self);
            }
            ("n" | "no" | "", _) => denied("the user said no"),
            _ if self.attempts + 1 >= ATTEMPTS_MAX => denied("the user gave no answer"),
            _ => {
                self.attempts += 1;
                self.show_choice(output);
                return Some(self);
            }
        };
        self.send(approval);
        None
    }

    fn change(mut self, key: &Key, output: &Output) -> Self {
        if let Some(draft) = self.draft.as_mut() {
            draft.take(key);
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
                let edited = |arguments| Approval::Edited { arguments };
                self.send(changed.map_or(Approval::Approved, edited));
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
        self.draft = Draft::of(&self.question.request);
        self.show_choice(output);
        self
    }

    /// No answer is awaited once the turn was stopped.
    fn send(self, approval: Approval) {
        let _ = self.question.answer.send(approval);
    }
}
