//! Edits the arguments of a call on one line of the terminal.

use super::keys::{Key, word_begins};
use crate::render::columns_max;
use rondo_core::shown;
use rondo_types::{Question, QuestionKind};
use serde_json::Value;

/// The longest text that is offered for a change, in bytes. A longer one is no reading on one line.
const DRAFT_BYTES_MAX: usize = 4 << 10;
/// What stands before the text.
const PROMPT: &str = "edit: ";
const COMMAND: &str = "command";

/// A text with a cursor in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draft {
    before: String,
    after: String,
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
        let (form, before) = match command {
            Some(command) if !command.contains(char::is_control) => {
                (Form::Command, command.to_owned())
            }
            _ => (Form::Arguments, original.to_string()),
        };
        let can_edit = question.kind == QuestionKind::Approval;
        let fits = before.len() <= DRAFT_BYTES_MAX && can_edit;
        fits.then_some(Self {
            before,
            after: String::new(),
            form,
            original,
        })
    }

    /// Changes the text.
    pub(super) fn take(&mut self, key: &Key) {
        match key {
            Key::Text(text) => self.insert(text),
            Key::Erase => drop(self.before.pop()),
            Key::EraseWord => self.before.truncate(word_begins(&self.before)),
            Key::EraseLine => self.before.clear(),
            Key::EraseRest => self.after.clear(),
            Key::Delete => drop(self.after.drain(..first(&self.after))),
            Key::Left => {
                if let Some(last) = self.before.pop() {
                    self.after.insert(0, last);
                }
            }
            Key::Right => {
                let moved: String = self.after.drain(..first(&self.after)).collect();
                self.before.push_str(&moved);
            }
            Key::Home => self.after.insert_str(0, &std::mem::take(&mut self.before)),
            Key::End => self.before.push_str(&std::mem::take(&mut self.after)),
            Key::Enter | Key::Stop | Key::TooLong => {}
        }
    }

    /// On one line: line feeds of a paste become blanks.
    fn insert(&mut self, text: &str) {
        let room = DRAFT_BYTES_MAX.saturating_sub(self.before.len() + self.after.len());
        if text.len() <= room {
            self.before.push_str(&text.replace(char::is_control, " "));
        }
    }

    /// Returns the changed arguments; `None` where nothing was changed.
    ///
    /// # Errors
    /// What the text lacks to be arguments.
    pub(super) fn arguments(&self) -> Result<Option<Value>, String> {
        let text = format!("{}{}", self.before, self.after);
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
        let (before, after) = (shown::line(&self.before), shown::line(&self.after));
        let before_room = room.saturating_sub(width(&after).min(room / 3));
        let hidden = width(&before).saturating_sub(before_room);
        let before = skip_columns(&before, hidden);
        let after_room = room.saturating_sub(width(before));
        let after = take_columns(&after, after_room);
        // Saved and found again, since only the terminal knows how wide a character is.
        format!("\r\x1b[K{PROMPT}{before}\x1b7{after}\x1b8")
    }
}

fn first(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

fn width(text: &str) -> usize {
    text.chars().map(columns_max).sum()
}

fn skip_columns(text: &str, columns: usize) -> &str {
    let mut skipped = 0;
    let begin = text.char_indices().find(|(_, it)| {
        let is_there = skipped >= columns;
        skipped += columns_max(*it);
        is_there
    });
    let begin = begin.map_or(text.len(), |(at, _)| at);
    text.get(begin..).unwrap_or_default()
}

fn take_columns(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, it)| {
        taken += columns_max(*it);
        taken > columns
    });
    text.get(..end.map_or(text.len(), |(at, _)| at))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn hidden_characters_are_spelt_out_and_stay_in_the_command() {
        let command = "ls \u{202e}a\u{200b}";
        let mut draft = draft(json!({ "command": command })).unwrap();
        assert_eq!(
            draft.line(60),
            "\r\x1b[Kedit: ls \\u{202e}a\\u{200b}\x1b7\x1b8"
        );
        draft.take(&Key::Left);
        assert_eq!(
            draft.line(60),
            "\r\x1b[Kedit: ls \\u{202e}a\x1b7\\u{200b}\x1b8"
        );
        draft.take(&Key::Text("b".into()));
        let changed = json!({"command": "ls \u{202e}ab\u{200b}"});
        assert_eq!(draft.arguments(), Ok(Some(changed)));
    }

    #[test]
    fn a_command_is_changed_where_the_cursor_is() {
        let mut draft = draft(json!({"command": "touch aé b", "timeout_ms": 5})).unwrap();
        assert_eq!(draft.arguments(), Ok(None));
        let text = |text: &str| Key::Text(text.into());
        for (key, expected) in [
            (Key::EraseWord, "touch aé |"),
            (Key::Left, "touch aé| "),
            (Key::Erase, "touch a| "),
            (text("x\ny"), "touch ax y| "),
            (Key::Home, "|touch ax y "),
            (Key::Delete, "|ouch ax y "),
            (text("T"), "T|ouch ax y "),
            (Key::Right, "To|uch ax y "),
            (Key::Left, "T|ouch ax y "),
            (Key::End, "Touch ax y |"),
            (Key::Right, "Touch ax y |"),
            (text(&"x".repeat(DRAFT_BYTES_MAX)), "Touch ax y |"),
            (Key::Home, "|Touch ax y "),
            (Key::Left, "|Touch ax y "),
            (Key::EraseRest, "|"),
            (text("ls"), "ls|"),
        ] {
            draft.take(&key);
            assert_eq!(format!("{}|{}", draft.before, draft.after), expected);
        }
        let changed = json!({"command": "ls", "timeout_ms": 5});
        assert_eq!(draft.arguments(), Ok(Some(changed)));
    }

    #[test]
    fn other_arguments_are_changed_as_json_and_what_is_none_is_refused() {
        let mut draft = draft(json!({"path": "a"})).unwrap();
        draft.take(&Key::Erase);
        assert!(draft.arguments().unwrap_err().contains("must be JSON"));
        draft.take(&Key::Text(r#","n":1}"#.into()));
        assert_eq!(draft.arguments(), Ok(Some(json!({"path": "a", "n": 1}))));
    }

    #[test]
    fn what_is_no_line_is_not_offered() {
        assert_eq!(draft(json!({"content": "x".repeat(DRAFT_BYTES_MAX)})), None);
        let lines = draft(json!({"command": "a\nb"})).unwrap();
        assert_eq!(lines.form, Form::Arguments);
        assert_eq!(lines.before, r#"{"command":"a\nb"}"#);
    }

    #[test]
    fn the_part_around_the_cursor_is_shown() {
        let mut draft = draft(json!({"command": "0123456789"})).unwrap();
        assert_eq!(draft.line(80), "\r\x1b[Kedit: 0123456789\x1b7\x1b8");
        assert_eq!(draft.line(13), "\r\x1b[Kedit: 456789\x1b7\x1b8");
        draft.take(&Key::Left);
        draft.take(&Key::Left);
        draft.take(&Key::Left);
        assert_eq!(draft.line(13), "\r\x1b[Kedit: 3456\x1b778\x1b8");
        draft.take(&Key::Home);
        assert_eq!(draft.line(13), "\r\x1b[Kedit: \x1b7012345\x1b8");
        assert_eq!(draft.line(0), "\r\x1b[Kedit: \x1b7\x1b8");
    }
}
