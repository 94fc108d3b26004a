//! A question as text that is written below what is there, and never changed: for the line prompt and `rondo ask`.

use crate::changes::Look;
use crate::output::Output;
use crate::render::{Fitted, fitted, in_full};
use rondo_runtime::form::Form;
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::sanitize::plain;
use rondo_tui::question::{Choice, Editing, OpenQuestion, Outcome, shown_change};
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};

/// Why a question is denied that asks for more than lines can answer.
pub(crate) const TOO_MUCH: &str = "it asks for too much at once";

/// A question that is answered by lines.
#[derive(Debug)]
pub(crate) struct WrittenQuestion {
    pub(crate) open: OpenQuestion,
    question: Question,
    /// What the call would make of its file.
    look: Look,
    policy: UserPolicy,
    output: Output,
}

/// What follows a line.
#[derive(Debug)]
pub(crate) enum Next {
    /// The question is open still; this is to be written, and what is typed stands behind it.
    Ask(String),
    /// It is answered, and this runs from now on.
    Answered(AnswerValue, Option<Grant>),
}

impl WrittenQuestion {
    /// Opens a question; none where more is asked than lines can answer.
    pub(crate) fn new(
        question: &Question,
        look: Look,
        policy: &UserPolicy,
        output: Output,
        editing: Editing,
    ) -> Option<Self> {
        if let QuestionKind::Input { schema } = &question.kind {
            Form::of(schema)?;
        }
        Some(Self {
            open: OpenQuestion::new(question, editing),
            question: question.clone(),
            look,
            policy: policy.clone(),
            output,
        })
    }

    /// Returns the question, for a terminal of so many rows and columns.
    pub(crate) fn begin(&mut self, size: (usize, usize)) -> String {
        let question = &self.question;
        let arguments = &question.subject.arguments;
        let has_color = self.output.stderr_color;
        let Fitted { text, left_out } =
            fitted(&question.prompt, arguments, &self.look, size, has_color);
        self.open.leaves_out(left_out);
        if self.open.takes_value() {
            self.open.choose(Choice::Yes);
        }
        format!("{text}{}", self.open.line_prompt())
    }

    /// Takes the line that was typed, at a terminal of so many columns.
    pub(crate) fn enter(&mut self, columns: usize) -> Next {
        let shown = match self.open.enter() {
            Outcome::Open(why) => why.map_or_else(String::new, |it| said(&it)),
            Outcome::ShowAll => {
                let question = &self.question;
                let arguments = &question.subject.arguments;
                let has_color = self.output.stderr_color;
                in_full(&question.prompt, arguments, &self.look, columns, has_color)
            }
            Outcome::ShowRule(grant) => match self.policy.with(&grant) {
                Ok(change) => {
                    let shown = shown_change(&change);
                    self.open.ask_about_rule(change, grant);
                    shown
                }
                Err(error) => said(&error.line()),
            },
            Outcome::WriteRule(change, grant) => match change.save() {
                Ok(()) => {
                    let note = format!("written to `{}`", change.path().display());
                    self.output.note(&note);
                    return Next::Answered(AnswerValue::Approve, Some(grant));
                }
                Err(error) => said(&error.line()),
            },
            Outcome::Answered(value, remember) => return Next::Answered(value, remember),
        };
        Next::Ask(format!("{shown}{}", self.open.line_prompt()))
    }
}

fn said(text: &str) -> String {
    format!("{}\n", plain(text))
}
