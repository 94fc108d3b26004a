//! Approval questions that another task of the program answers.

use async_trait::async_trait;
use rondo_core::{Approval, ApprovalReply, ApprovalRequest, Approver};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for an answer at once; a turn asks one at a time.
const QUESTIONS_WAITING: usize = 64;

/// Returns an approver, and the receiver of its questions for another task.
///
/// The call is denied when the receiver or the question is dropped.
#[must_use]
pub fn approvals() -> (impl Approver + 'static, ApprovalQuestions) {
    let (sender, receiver) = mpsc::channel(QUESTIONS_WAITING);
    (Questioner(sender), ApprovalQuestions(receiver))
}

/// The receiver of the questions of all turns that share an approver, in the order they are asked.
#[derive(Debug)]
pub struct ApprovalQuestions(mpsc::Receiver<ApprovalQuestion>);

impl ApprovalQuestions {
    /// Waits for the next question; `None` when every agent with the approver was dropped. Skips
    /// questions that no longer need an answer.
    ///
    /// # Cancel safety
    /// Cancel safe: no question is lost.
    pub async fn next(&mut self) -> Option<ApprovalQuestion> {
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
pub struct ApprovalQuestion {
    request: ApprovalRequest,
    answer: oneshot::Sender<Approval>,
}

impl ApprovalQuestion {
    /// Returns the tool, its arguments, and the question for the user.
    #[must_use]
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// Waits until the answer is no longer needed: the turn was cancelled, or its time is up. Use it
    /// to take a question off the screen.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }

    /// Lets the call run.
    pub fn approve(self) {
        self.answer(Approval::Approved);
    }

    /// Refuses the call; the model reads the reason.
    pub fn deny(self, reason: impl Into<String>) {
        self.answer(Approval::Denied {
            reason: reason.into(),
        });
    }

    /// Lets the call run with other arguments, if the request's `can_edit` is set. They must fit
    /// the tool's schema, and the gate may still deny them. The result tells the model of the change.
    pub fn edit(self, arguments: Value) {
        self.answer(Approval::edited(arguments));
    }

    fn answer(self, approval: Approval) {
        // A turn that has ended in the meantime no longer waits for the answer.
        let _ = self.answer.send(approval);
    }
}

struct Questioner(mpsc::Sender<ApprovalQuestion>);

#[async_trait]
impl Approver for Questioner {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let (answer, answered) = oneshot::channel();
        let question = ApprovalQuestion {
            request: request.clone(),
            answer,
        };
        if self.0.send(question).await.is_err() {
            return denied("nobody is here to allow it").into();
        }
        let answer = answered.await;
        let answer = answer.unwrap_or_else(|_| denied("nobody answered whether it may run"));
        answer.into()
    }
}

/// Denies every call: the approver of an agent that was given none.
pub(crate) struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, _request: &ApprovalRequest) -> ApprovalReply {
        denied("nobody is here to allow it").into()
    }
}

/// An approver that calls a function.
pub(crate) struct Asks<F>(pub(crate) F);

#[async_trait]
impl<F, R> Approver for Asks<F>
where
    F: Fn(ApprovalRequest) -> R + Send + Sync,
    R: Future<Output = Approval> + Send,
{
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        (self.0)(request.clone()).await.into()
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}
