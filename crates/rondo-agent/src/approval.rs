//! Questions that another task or a function of the program answers.

use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_types::{AnswerValue, Question, QuestionKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for an answer at once; a turn asks one at a time.
const QUESTIONS_WAITING: usize = 64;
/// The name of the person in records, as the program has no other.
const PERSON: &str = "user";
/// The name of a function of the program, and of the default approver, in records.
const PROGRAM: &str = "program";

/// Returns an approver, and the receiver of its questions for another task.
///
/// The answer is no when the receiver or the question is dropped.
#[must_use]
pub fn approvals() -> (impl Approver + 'static, PendingQuestions) {
    let (sender, receiver) = mpsc::channel(QUESTIONS_WAITING);
    (Questioner(sender), PendingQuestions(receiver))
}

/// The receiver of the questions of all turns that share an approver, in the order they are asked.
#[derive(Debug)]
pub struct PendingQuestions(mpsc::Receiver<PendingQuestion>);

impl PendingQuestions {
    /// Waits for the next question; `None` when every agent with the approver was dropped. Skips
    /// questions that no longer need an answer.
    ///
    /// # Cancel safety
    /// Cancel safe: no question is lost.
    pub async fn next(&mut self) -> Option<PendingQuestion> {
        loop {
            let question = self.0.recv().await?;
            if !question.answer.is_closed() {
                return Some(question);
            }
        }
    }
}

/// One question that waits for its answer.
#[derive(Debug)]
pub struct PendingQuestion {
    question: Question,
    answer: oneshot::Sender<AnswerValue>,
}

impl PendingQuestion {
    /// Returns the question for the user, with its kind and the tool and arguments that it is about.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Waits until the answer is no longer needed: the turn was cancelled, or its time is up. Use it
    /// to take a question off the screen.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }

    /// Says yes: the call runs, the turn continues beyond the budget.
    pub fn approve(self) {
        self.answer(AnswerValue::Approve);
    }

    /// Says no; the model reads the reason.
    pub fn deny(self, reason: impl Into<String>) {
        self.answer(AnswerValue::Deny {
            reason: reason.into(),
        });
    }

    /// Answers with a value. For [`QuestionKind::Approval`] these are the arguments that the call runs with instead: they
    /// must fit the tool's schema, and the gate may still deny them; the result tells the model of the change. For
    /// [`QuestionKind::Input`] it is what was asked for.
    pub fn give(self, value: Value) {
        self.answer(AnswerValue::value(value));
    }

    fn answer(self, value: AnswerValue) {
        // A turn that has ended in the meantime no longer waits for the answer.
        let _ = self.answer.send(value);
    }
}

struct Questioner(mpsc::Sender<PendingQuestion>);

#[async_trait]
impl Approver for Questioner {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let (answer, answered) = oneshot::channel();
        let pending = PendingQuestion {
            question: question.clone(),
            answer,
        };
        if self.0.send(pending).await.is_err() {
            return nobody(question);
        }
        match answered.await {
            Ok(value) => QuestionReply::answered(question, PERSON, value),
            Err(_) => QuestionReply::denied(question, PERSON, "no answer to the approval question"),
        }
    }
}

/// Says no to every question: the approver of an agent that was given none.
pub(crate) struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, question: &Question) -> QuestionReply {
        nobody(question)
    }
}

/// An approver that calls a function about calls, and says no to everything else.
pub(crate) struct FnApprover<F>(pub(crate) F);

#[async_trait]
impl<F, R> Approver for FnApprover<F>
where
    F: Fn(Question) -> R + Send + Sync,
    R: Future<Output = AnswerValue> + Send,
{
    async fn ask(&self, question: &Question) -> QuestionReply {
        match question.kind {
            QuestionKind::Approval | QuestionKind::Repeat | QuestionKind::Permission => {
                let value = (self.0)(question.clone()).await;
                QuestionReply::answered(question, PROGRAM, value)
            }
            QuestionKind::Input { .. } | QuestionKind::Budget | QuestionKind::Trust => {
                nobody(question)
            }
        }
    }
}

fn nobody(question: &Question) -> QuestionReply {
    let reason = match question.kind {
        QuestionKind::Input { .. } => "no user is available to give a value",
        QuestionKind::Budget => "no user is available to raise the budget",
        QuestionKind::Trust => "no user is available to trust the folder",
        QuestionKind::Approval | QuestionKind::Repeat | QuestionKind::Permission => {
            "no user is available to allow it"
        }
    };
    QuestionReply::denied(question, PROGRAM, reason)
}
