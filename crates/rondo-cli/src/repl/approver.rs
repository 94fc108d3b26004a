//! Sends the questions of a running turn to the task that reads the keyboard.

use crate::asking::{TOO_MUCH, WrittenQuestion};
use crate::changes::Changes;
use crate::output::Output;
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::parking;
use rondo_runtime::settings::Settings;
use rondo_tui::question::Editing;
use rondo_types::{AnswerValue, Grant, Question};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<PromptQuestion>,
    screen: Screen,
    changes: Changes,
    output: Output,
    policy: UserPolicy,
    /// The user's name, for the records.
    user: String,
}

/// A question, and where its answer goes.
#[derive(Debug)]
pub(super) struct PromptQuestion {
    pub(super) written: WrittenQuestion,
    /// Takes the answer, and what is allowed with a yes from then on; closed once the turn no longer waits for it.
    pub(super) answer: oneshot::Sender<(AnswerValue, Option<Grant>)>,
}

/// Builds the two ends.
pub(super) fn channel(
    screen: Screen,
    changes: Changes,
    output: Output,
    settings: &Settings,
) -> (PromptApprover, mpsc::Receiver<PromptQuestion>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let approver = PromptApprover {
        questions,
        screen,
        changes,
        output,
        policy: UserPolicy::of(&settings.paths),
        user: parking::user(&settings.env),
    };
    (approver, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let (look, _held) = match question.is_about_call() {
            true => (self.changes.look(question).await, None),
            // The turn writes to the screen meanwhile.
            false => (None, Some(self.screen.hold().await)),
        };
        let editing = match self.output.stderr_erases {
            true => Editing::OnRow,
            false => Editing::Anew,
        };
        let written = WrittenQuestion::new(question, look, &self.policy, self.output, editing);
        let Some(written) = written else {
            return QuestionReply::denied(question, &self.user, TOO_MUCH);
        };
        self.screen.aside().await;
        let (answer, answered) = oneshot::channel();
        let put = PromptQuestion { written, answer };
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
