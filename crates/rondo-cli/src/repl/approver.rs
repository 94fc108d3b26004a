//! Sends the questions of a running turn to the task that reads the keyboard.

use crate::changes::{Changes, Look};
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::form::Form;
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<PromptQuestion>,
    screen: Screen,
    changes: Changes,
    /// The user's name, for the records.
    user: String,
}

/// A question, what it is shown with, and where its answer goes.
#[derive(Debug)]
pub(super) struct PromptQuestion {
    pub(super) question: Question,
    /// What the call would make of its file.
    pub(super) look: Look,
    /// What is asked for in place of a yes.
    pub(super) form: Option<Form>,
    /// Takes the answer, and what is allowed with a yes from then on; closed once the turn no longer waits for it.
    pub(super) answer: oneshot::Sender<(AnswerValue, Option<Grant>)>,
}

/// Builds the two ends.
pub(super) fn channel(
    screen: Screen,
    changes: Changes,
    user: String,
) -> (PromptApprover, mpsc::Receiver<PromptQuestion>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let approver = PromptApprover {
        questions,
        screen,
        changes,
        user,
    };
    (approver, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let form = match &question.kind {
            QuestionKind::Input { schema } => match Form::of(schema) {
                Some(form) => Some(form),
                None => {
                    let reason = "it asks for too much at once";
                    return QuestionReply::denied(question, &self.user, reason);
                }
            },
            _ => None,
        };
        let (look, _held) = match question.is_about_call() {
            true => (self.changes.look(question).await, None),
            // The turn writes to the screen meanwhile.
            false => (None, Some(self.screen.hold().await)),
        };
        self.screen.aside().await;
        let (answer, answered) = oneshot::channel();
        let put = PromptQuestion {
            question: question.clone(),
            look,
            form,
            answer,
        };
        // If somebody else answers first, this is dropped, and the view says so.
        self.screen.set_open(Some(question.id.clone()));
        let sent = self.questions.send(put).await;
        let answered = answered.await;
        self.screen.set_open(None);
        match answered {
            Ok((value, remember)) if sent.is_ok() => {
                let mut answer = question.answered(&self.user, value);
                answer.remember = remember;
                QuestionReply::Answered(answer, None)
            }
            _ => QuestionReply::denied(question, &self.user, "nobody is there to ask"),
        }
    }
}
