//! Edits the arguments of a call on one line of the terminal.

use crate::render::around_caret;
use crossterm::event::Event;
use rondo_core::shown;
use rondo_tui::prompt::{Editor, edit};
use rondo_types::{Question, QuestionKind};
use serde_json::Value;

/// The longest text that is offered for a change, in bytes. A longer one is no reading on one line.
const DRAFT_BYTES_MAX: usize = 4 << 10;
/// What stands before the text.
const PROMPT: &str = "edit: ";
const COMMAND: &str = "command";

/// The text that is edited.
#[derive(Debug)]
pub(super) struct Draft {
    editor: Editor,
    form: Form,
    original: Value,
}

/// What the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The command that the call would run.
    Command,
    /// All arguments, as JSON.
    Arguments,
}

impl Draft {
    /// Begins with what the model asked for; none where that cannot be changed, or not on a line.
    pub(super) fn of(question: &Question) -> Option<Self> {
        let original = question.subject.arguments.clone();
        let command = original.get(COMMAND).and_then(Value::as_str);
        let (form, text) = match command {
            Some(command) => (Form::Command, command.to_owned()),
            None => (Form::Arguments, original.to_string()),
        };
        let can_edit = question.kind == QuestionKind::Approval;
        let fits = text.len() <= DRAFT_BYTES_MAX && can_edit;
        fits.then(|| {
            let mut editor = Editor::default();
            editor.insert(&text);
            Self {
                editor,
                form,
                original,
            }
        })
    }

    /// Changes the text.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Key(key) => edit(&mut self.editor, key),
            Event::Paste(text) => drop(self.editor.paste(text)),
            _ => {}
        }
    }

    /// Returns the changed arguments; `None` where nothing was changed.
    ///
    /// # Errors
    /// What the text lacks to be arguments.
    pub(super) fn arguments(&self) -> Result<Option<Value>, String> {
        let text = self.editor.whole();
        let arguments = match self.form {
            Form::Command => {
                let mut arguments = self.original.clone();
                if let Some(command) = arguments.get_mut(COMMAND) {
                    *command = Value::String(text);
                }
                arguments
            }
            Form::Arguments => serde_json::from_str(&text)
                .map_err(|err| format!("These are no arguments: they must be JSON, but {err}."))?,
        };
        Ok((arguments != self.original).then_some(arguments))
    }

    /// Returns the line as the terminal shows it, with the cursor in its place.
    pub(super) fn line(&self, columns: usize) -> String {
        let room = columns.saturating_sub(PROMPT.len() + 1);
        let (before, after) = (self.editor.before(), self.editor.after());
        let text = around_caret(&shown::line(before), &shown::line(after), room);
        format!("\r\x1b[K{PROMPT}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use rondo_core::ports::{Terms, question_about_call};
    use rondo_types::{CallId, QuestionSubject};
    use serde_json::json;

    fn draft(arguments: Value) -> Option<Draft> {
        let subject = QuestionSubject {
            tool: "exec".to_owned(),
            arguments,
            ..QuestionSubject::default()
        };
        let (call, kind) = (CallId::new("c"), QuestionKind::Approval);
        let words = String::new();
        let question = question_about_call(subject, &call, kind, words, &Terms::default());
        Draft::of(&question)
    }

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn hidden_characters_are_spelt_out_and_stay_in_the_command() {
        let mut draft = draft(json!({ "command": "ls \u{202e}\n\u{200b}" })).unwrap();
        assert_eq!(draft.arguments(), Ok(None));
        draft.take(&key(KeyCode::Left));
        let line = draft.line(60);
        assert!(
            line.contains("\\u{202e}") && line.ends_with("\x1b7\\u{200b}\x1b8"),
            "{line:?}"
        );
        assert_eq!(line.lines().count(), 1);
        draft.take(&Event::Paste("a\nb".to_owned()));
        let changed = json!({"command": "ls \u{202e}\na\nb\u{200b}"});
        assert_eq!(draft.arguments(), Ok(Some(changed)));
    }

    #[test]
    fn other_arguments_are_changed_as_json_and_what_is_none_is_refused() {
        let mut draft = draft(json!({"path": "a"})).unwrap();
        draft.take(&key(KeyCode::Backspace));
        assert!(draft.arguments().unwrap_err().contains("must be JSON"));
        draft.take(&Event::Paste(r#","n":1}"#.to_owned()));
        assert_eq!(draft.arguments(), Ok(Some(json!({"path": "a", "n": 1}))));
    }

    #[test]
    fn what_is_too_long_for_a_line_is_not_offered() {
        let long = "x".repeat(DRAFT_BYTES_MAX);
        assert!(draft(json!({ "content": long })).is_none());
    }
}
