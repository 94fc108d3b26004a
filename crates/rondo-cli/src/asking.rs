//! A question as text that is written below what is there, and never changed: for the line prompt and `rondo ask`.

use crate::changes::{ChangePreview, Changes};
use crate::output::Output;
use crate::render::{FittedQuestion, fitted, in_full};
use crate::screen::Screen;
use rondo_core::QuestionReply;
use rondo_runtime::env::Env;
use rondo_runtime::form::Form;
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::parking;
use rondo_runtime::paths::Paths;
use rondo_runtime::sanitize::plain;
use rondo_tui::question::{Choice, Editing, OpenQuestion, Outcome, shown_change};
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};
use std::io;

/// Puts the questions of a turn below what is shown of it.
#[derive(Debug)]
pub(crate) struct Asker {
    screen: Screen,
    changes: Changes,
    output: Output,
    policy: UserPolicy,
    /// The user's name, for the records.
    user: String,
}

/// An answer, and what runs from now on.
pub(crate) type Said = (AnswerValue, Option<Grant>);

impl Asker {
    pub(crate) fn new(
        (env, paths): (&Env, &Paths),
        output: Output,
        screen: Screen,
        changes: Changes,
    ) -> Self {
        Self {
            screen,
            changes,
            output,
            policy: UserPolicy::of(paths),
            user: parking::user(env),
        }
    }

    /// Has a question answered by lines.
    ///
    /// # Cancel safety
    /// Cancel safe: then it is not asked any more. If somebody else answers first, the view says so.
    pub(crate) async fn ask<F: Future<Output = io::Result<Said>> + Send>(
        &self,
        question: &Question,
        editing: Editing,
        converse: impl FnOnce(WrittenQuestion) -> F + Send,
    ) -> QuestionReply {
        let look = self.changes.look(question).await;
        let written = WrittenQuestion::new(question, look, &self.policy, self.output, editing);
        let Some(written) = written else {
            return self.denied(question, "it asks for too much at once");
        };
        // The view makes room for a question about a call by itself.
        let _held = match question.is_about_call() {
            true => {
                self.screen.aside().await;
                None
            }
            false => Some(self.screen.hold().await),
        };
        self.screen.set_open(Some(question.id.clone()));
        let said = converse(written).await;
        self.screen.set_open(None);
        match said {
            Ok((value, remember)) => {
                let mut answer = question.answered(&self.user, value);
                answer.remember = remember;
                QuestionReply::Answered(answer, None)
            }
            // Nobody has said that the folder is not trusted.
            Err(_) if question.kind == QuestionKind::Trust => {
                QuestionReply::Later { expires: None }
            }
            Err(err) => self.denied(question, &format!("the question could not be asked: {err}")),
        }
    }

    pub(crate) fn denied(&self, question: &Question, reason: &str) -> QuestionReply {
        QuestionReply::denied(question, &self.user, reason)
    }
}

/// A question that is answered by lines.
#[derive(Debug)]
pub(crate) struct WrittenQuestion {
    pub(crate) open: OpenQuestion,
    question: Question,
    /// The change of its file that the call would make.
    look: ChangePreview,
    policy: UserPolicy,
    output: Output,
}

/// The state after a line.
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
        look: ChangePreview,
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
        let FittedQuestion { text, left_out } =
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
