//! Sends the questions of a running turn to the task that reads the keyboard.

use crate::changes::{Changes, Look};
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approval, ApprovalReply, ApprovalRequest, Approver};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<Question>,
    screen: Screen,
    changes: Changes,
}

/// A question, and where its answer is waited for.
#[derive(Debug)]
pub(super) struct Question {
    /// The call.
    pub(super) request: ApprovalRequest,
    /// What the call would make of its file.
    pub(super) look: Look,
    /// Takes the answer; closed once the turn no longer waits for it.
    pub(super) answer: oneshot::Sender<Approval>,
}

/// Builds the two ends.
pub(super) fn channel(
    screen: Screen,
    changes: Changes,
) -> (PromptApprover, mpsc::Receiver<Question>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    let approver = PromptApprover {
        questions,
        screen,
        changes,
    };
    (approver, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let look = self.changes.look(request).await;
        self.screen.aside().await;
        let (answer, answered) = oneshot::channel();
        let request = request.clone();
        let question = Question {
            request,
            look,
            answer,
        };
        let sent = self.questions.send(question).await;
        match answered.await {
            Ok(approval) if sent.is_ok() => approval.into(),
            _ => denied("nobody is there to ask").into(),
        }
    }
}

/// Builds a denial.
pub(super) fn denied(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}
