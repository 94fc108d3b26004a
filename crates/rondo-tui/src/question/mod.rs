//! A question to a person while it is being answered, for all that ask: the screen's panel, the line prompt and `rondo ask`.
//!
//! It is a plain value. Each of them paints it, and says what was chosen: by a key, or by a line.

mod remember;

pub use remember::{Remember, remembered, shown_change};

use crate::prompt::{Editor, edit};
use crossterm::event::Event;
use rondo_runtime::form::{Form, FormStep};
use rondo_runtime::granting::PolicyChange;
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};
use serde_json::Value;

/// Lines that are no answer after which the question is answered with no.
const ATTEMPTS_MAX: u32 = 3;
/// The longest text that is offered to be edited, in bytes.
const EDITED_BYTES_MAX: usize = 64 << 10;
/// The argument that is the command of a call.
const COMMAND: &str = "command";

/// A question that is being answered.
#[derive(Debug)]
pub struct OpenQuestion {
    kind: QuestionKind,
    /// The arguments of the call that it is about.
    arguments: Value,
    offers: Vec<Grant>,
    /// Characters of it that are not shown. Until they are, it is allowed once, and not from now on.
    left_out: usize,
    editing: Editing,
    step: Step,
    typed: Editor,
    attempts: u32,
}

/// How a call is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// In a box of several rows.
    InBox,
    /// On one row, which is drawn anew after each key.
    OnRow,
    /// By a line that is typed anew, as nothing can be drawn anew.
    Anew,
}

/// A step of the answer.
#[derive(Debug)]
pub enum Step {
    /// Yes or no.
    Choose,
    /// Why not.
    Reason,
    /// The command to run in place of the call's.
    Command,
    /// The arguments to run the call with, or what was asked for, as JSON.
    Json,
    /// A field of what was asked for.
    Field(Form),
    /// Yes or no to this change of the user's rules, which allows calls for ever.
    Rule(PolicyChange, Grant),
}

/// A choice.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Yes, or to fill in what is asked for.
    Yes,
    /// No.
    No,
    /// No, and why.
    Because,
    /// To edit the call.
    Edit,
    /// To see what is left out.
    Rest,
    /// Yes, and what runs from now on.
    Remember(Remember),
}

/// The result of a choice, or of a text that was entered.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// It is open still, at the step where it is now; why, if what was entered is no answer.
    Open(Option<String>),
    /// All of it is to be shown.
    ShowAll,
    /// The change of the user's rules is to be shown that allows calls for ever.
    ShowRule(Grant),
    /// That change is to be written, and then it is a yes.
    WriteRule(PolicyChange, Grant),
    /// It is answered; what runs from now on.
    Answered(AnswerValue, Option<Grant>),
}

impl OpenQuestion {
    /// Opens a question.
    pub fn new(question: &Question, editing: Editing) -> Self {
        Self {
            kind: question.kind.clone(),
            arguments: question.subject.arguments.clone(),
            offers: question.offers.clone(),
            left_out: 0,
            editing,
            step: Step::Choose,
            typed: Editor::default(),
            attempts: 0,
        }
    }

    /// Sets the arguments of the call that it is about, where more of them is known than the question says.
    pub fn set_arguments(&mut self, arguments: Value) {
        self.arguments = arguments;
    }

    /// Returns the arguments of the call that it is about.
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Says how many characters of it are not shown.
    pub fn leaves_out(&mut self, chars: usize) {
        self.left_out = chars;
    }

    /// Returns how many characters of it are not shown.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns what is being answered.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns what is being typed, for an answer that takes words, and for lines.
    pub fn typed(&self) -> &Editor {
        &self.typed
    }

    /// The same, to be changed.
    pub fn typed_mut(&mut self) -> &mut Editor {
        &mut self.typed
    }

    /// Returns whether words are asked for, and no choice.
    pub fn takes_words(&self) -> bool {
        !matches!(self.step, Step::Choose | Step::Rule(..))
    }

    /// Types a key or a paste. A paste chooses nothing.
    pub fn type_in(&mut self, event: &Event) {
        match event {
            Event::Key(key) => edit(&mut self.typed, key),
            Event::Paste(text) if self.takes_words() => drop(self.typed.paste(text)),
            _ => {}
        }
    }

    /// Returns what a yes can let run from now on.
    pub fn offers(&self) -> &[Grant] {
        match self.left_out {
            0 => &self.offers,
            _ => &[],
        }
    }

    /// Returns whether its call can be edited.
    pub fn can_edit(&self) -> bool {
        let is_call = self.kind == QuestionKind::Approval && !self.arguments.is_null();
        is_call && self.draft().len() <= EDITED_BYTES_MAX
    }

    /// Returns whether somebody reads why it is answered with no.
    pub fn takes_reason(&self) -> bool {
        self.kind != QuestionKind::Trust
    }

    /// Returns whether a value is asked for.
    pub fn takes_value(&self) -> bool {
        matches!(self.kind, QuestionKind::Input { .. })
    }

    fn command(&self) -> Option<&str> {
        self.arguments.get(COMMAND)?.as_str()
    }

    fn draft(&self) -> String {
        match (self.command(), self.editing) {
            (Some(command), _) => command.to_owned(),
            (None, Editing::InBox) => format!("{:#}", self.arguments),
            (None, Editing::OnRow | Editing::Anew) => self.arguments.to_string(),
        }
    }

    /// Takes a choice.
    pub fn choose(&mut self, choice: Choice) -> Outcome {
        self.typed.take();
        match choice {
            Choice::Yes => return self.yes(),
            Choice::No => return Outcome::Answered(AnswerValue::no(), None),
            Choice::Because => self.step = Step::Reason,
            Choice::Edit => {
                if self.editing != Editing::Anew {
                    self.typed.set(&self.draft());
                }
                self.step = match self.command() {
                    Some(_) => Step::Command,
                    None => Step::Json,
                };
            }
            Choice::Rest => {
                self.left_out = 0;
                return Outcome::ShowAll;
            }
            Choice::Remember(Remember::InSession(grant)) => {
                return Outcome::Answered(AnswerValue::Approve, Some(grant));
            }
            Choice::Remember(Remember::ForEver(grant)) => return Outcome::ShowRule(grant),
        }
        Outcome::Open(None)
    }

    fn yes(&mut self) -> Outcome {
        if let Step::Rule(..) = self.step
            && let Step::Rule(change, grant) = std::mem::replace(&mut self.step, Step::Choose)
        {
            return Outcome::WriteRule(change, grant);
        }
        let QuestionKind::Input { schema } = &self.kind else {
            return Outcome::Answered(AnswerValue::Approve, None);
        };
        self.step = match Form::of(schema) {
            Some(form) => Step::Field(form),
            None => {
                if self.editing != Editing::Anew {
                    self.typed.set("{}");
                }
                Step::Json
            }
        };
        Outcome::Open(None)
    }

    /// Asks whether this change of the user's rules is written.
    pub fn ask_about_rule(&mut self, change: PolicyChange, grant: Grant) {
        self.step = Step::Rule(change, grant);
    }

    /// Goes back to the choice.
    pub fn back(&mut self) {
        self.step = Step::Choose;
        self.typed.take();
    }

    /// Takes what was typed for the answer of this step.
    pub fn enter(&mut self) -> Outcome {
        let text = self.typed.whole();
        match &mut self.step {
            Step::Choose => {
                self.typed.take();
                self.chosen_by(text.trim())
            }
            Step::Rule(..) => match text.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => self.choose(Choice::Yes),
                _ => self.go_back(),
            },
            Step::Reason if text.trim().is_empty() => self.choose(Choice::No),
            Step::Reason => Outcome::Answered(AnswerValue::deny(text.trim()), None),
            Step::Command | Step::Json if text.trim().is_empty() => self.go_back(),
            Step::Command => {
                let mut arguments = self.arguments.clone();
                if let Some(command) = arguments.get_mut(COMMAND) {
                    *command = Value::String(text);
                }
                self.edited(arguments)
            }
            Step::Json => match serde_json::from_str::<Value>(&text) {
                Ok(value) if self.takes_value() || value.is_object() => self.edited(value),
                Ok(_) => Outcome::Open(Some("arguments are a JSON object".to_owned())),
                Err(err) => Outcome::Open(Some(format!("this is no JSON: {err}"))),
            },
            Step::Field(form) => {
                self.typed.take();
                match form.answer(&text) {
                    FormStep::Next(why) => Outcome::Open(why),
                    FormStep::Done(value) => Outcome::Answered(AnswerValue::value(value), None),
                    FormStep::Declined(reason) => {
                        Outcome::Answered(AnswerValue::deny(reason), None)
                    }
                }
            }
        }
    }

    fn go_back(&mut self) -> Outcome {
        self.back();
        Outcome::Open(None)
    }

    fn edited(&self, value: Value) -> Outcome {
        let answer = match value == self.arguments && !self.takes_value() {
            true => AnswerValue::Approve,
            false => AnswerValue::value(value),
        };
        Outcome::Answered(answer, None)
    }

    /// Takes a line that chooses by a letter or a word.
    fn chosen_by(&mut self, line: &str) -> Outcome {
        let line = line.to_ascii_lowercase();
        let choice = match line.as_str() {
            "y" | "yes" => Some(Choice::Yes),
            "n" | "no" | "" => Some(Choice::No),
            "b" | "because" if self.takes_reason() => Some(Choice::Because),
            "e" | "edit" if self.can_edit() => Some(Choice::Edit),
            "v" | "view" if self.left_out > 0 => Some(Choice::Rest),
            line => Remember::chosen_by(line, self.offers()).map(Choice::Remember),
        };
        if let Some(choice) = choice {
            return self.choose(choice);
        }
        self.attempts += 1;
        match self.attempts < ATTEMPTS_MAX {
            true => Outcome::Open(None),
            false => Outcome::Answered(AnswerValue::deny("the user gave no answer"), None),
        }
    }

    /// Returns what is asked of a person who answers by lines; what is typed stands behind its last line.
    pub fn line_prompt(&self) -> String {
        match &self.step {
            Step::Choose => self.choices(),
            Step::Rule(..) => {
                "Write this and run it? y/n, then Enter (Enter alone: no): ".to_owned()
            }
            Step::Reason => "Why not? The model reads it: ".to_owned(),
            Step::Command if self.editing == Editing::Anew => {
                "The command to run instead (Enter alone: back): ".to_owned()
            }
            Step::Json if self.editing == Editing::Anew => {
                "The arguments as JSON (Enter alone: back): ".to_owned()
            }
            Step::Command | Step::Json => "edit: ".to_owned(),
            Step::Field(form) => form.prompt(),
        }
    }

    /// Returns the letters that choose, below the lines that say what they mean.
    fn choices(&self) -> String {
        let (letters, mut meaning) = remember::choice(self.offers());
        let asks = match self.kind {
            // It ends with a question of its own.
            QuestionKind::Trust => "",
            QuestionKind::Approval | QuestionKind::Repeat => "Run it? ",
            QuestionKind::Permission | QuestionKind::Budget | QuestionKind::Input { .. } => {
                "Go on? "
            }
        };
        let (mut letters, mut words) = (format!("y/n{letters}"), "Enter alone: no".to_owned());
        if self.can_edit() {
            letters.push_str("/e");
            words.push_str("; e: edit");
        }
        if self.left_out > 0 {
            let until = match self.kind {
                QuestionKind::Trust => "",
                _ => "; until then y allows this call only",
            };
            let count = self.left_out;
            meaning.push_str(&format!(
                "v: show the {count} characters that are left out{until}\n"
            ));
            letters.push_str("/v");
        }
        if self.takes_reason() {
            letters.push_str("/b");
            words.push_str("; b: no, because…");
        }
        format!("{meaning}{asks}{letters}, then Enter ({words}): ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::{Terms, question_about_call};
    use rondo_types::{CallId, QuestionSubject};
    use serde_json::json;

    fn asked(kind: QuestionKind, arguments: Value, editing: Editing) -> OpenQuestion {
        let subject = QuestionSubject {
            tool: "exec".to_owned(),
            arguments,
            ..QuestionSubject::default()
        };
        let (call, words) = (CallId::new("c"), String::new());
        let question = question_about_call(subject, &call, kind, words, &Terms::default());
        OpenQuestion::new(&question, editing)
    }

    fn about(arguments: Value, editing: Editing) -> OpenQuestion {
        asked(QuestionKind::Approval, arguments, editing)
    }

    fn enter(open: &mut OpenQuestion, line: &str) -> Outcome {
        open.typed_mut().set(line);
        open.enter()
    }

    #[test]
    fn a_line_that_is_no_answer_is_asked_again_twice() {
        let mut open = about(json!({"command": "ls"}), Editing::Anew);
        assert_eq!(enter(&mut open, "a"), Outcome::Open(None));
        assert_eq!(enter(&mut open, "what?"), Outcome::Open(None));
        let gone = AnswerValue::deny("the user gave no answer");
        assert_eq!(enter(&mut open, "x"), Outcome::Answered(gone, None));
    }

    #[test]
    fn no_says_why_where_somebody_reads_it() {
        let mut open = about(json!({"command": "ls"}), Editing::OnRow);
        assert_eq!(enter(&mut open, "b"), Outcome::Open(None));
        assert_eq!(open.line_prompt(), "Why not? The model reads it: ");
        let why = AnswerValue::deny("not here");
        assert_eq!(enter(&mut open, " not here "), Outcome::Answered(why, None));
        assert_eq!(
            enter(&mut open, ""),
            Outcome::Answered(AnswerValue::no(), None)
        );
        let mut trust = asked(QuestionKind::Trust, Value::Null, Editing::Anew);
        assert_eq!(trust.line_prompt(), "y/n, then Enter (Enter alone: no): ");
        assert_eq!(enter(&mut trust, "b"), Outcome::Open(None));
        assert!(matches!(trust.step(), Step::Choose));
    }

    #[test]
    fn a_command_is_edited_as_text_and_what_is_unchanged_is_a_yes() {
        let arguments = json!({"command": "touch a", "timeout_ms": 5});
        let mut open = about(arguments.clone(), Editing::OnRow);
        enter(&mut open, "e");
        assert_eq!(open.typed().text(), "touch a");
        assert_eq!(open.enter(), Outcome::Answered(AnswerValue::Approve, None));
        open.type_in(&Event::Paste("b\nls".to_owned()));
        let changed = json!({"command": "touch ab\nls", "timeout_ms": 5});
        let changed = Outcome::Answered(AnswerValue::value(changed), None);
        assert_eq!(open.enter(), changed);
        assert_eq!(enter(&mut open, " "), Outcome::Open(None));
        assert!(matches!(open.step(), Step::Choose));
        let mut open = about(arguments, Editing::Anew);
        enter(&mut open, "e");
        assert!(open.typed().is_empty());
    }

    #[test]
    fn other_arguments_are_edited_as_json_and_what_is_none_is_refused() {
        let mut open = about(json!({"path": "a"}), Editing::OnRow);
        enter(&mut open, "edit");
        assert_eq!(open.typed().text(), r#"{"path":"a"}"#);
        for (typed, why) in [
            ("{", "this is no JSON"),
            ("[]", "arguments are a JSON object"),
        ] {
            let outcome = enter(&mut open, typed);
            let Outcome::Open(Some(said)) = &outcome else {
                panic!("{outcome:?}")
            };
            assert!(said.contains(why), "{said}");
        }
        let long = "x".repeat(EDITED_BYTES_MAX);
        assert!(!about(json!({ "content": long }), Editing::OnRow).can_edit());
    }

    #[test]
    fn a_paste_chooses_nothing_and_what_was_not_shown_is_allowed_once() {
        let mut open = about(json!({"command": "ls"}), Editing::OnRow);
        open.type_in(&Event::Paste("y".to_owned()));
        assert!(open.typed().is_empty());
        open.leaves_out(7);
        assert_eq!(
            open.line_prompt(),
            "v: show the 7 characters that are left out; until then y allows this call only\n\
             Run it? y/n/e/v/b, then Enter (Enter alone: no; e: edit; b: no, because…): "
        );
        assert_eq!(enter(&mut open, "v"), Outcome::ShowAll);
        assert_eq!(open.left_out(), 0);
    }
}
