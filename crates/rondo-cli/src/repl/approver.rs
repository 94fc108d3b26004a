//! Questions of a running turn, put to whoever has the keyboard.

use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approval, ApprovalRequest, Approver};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a turn asks one at a time.
const QUESTIONS: usize = 1;

/// Hands questions to the keyboard.
#[derive(Debug)]
pub(super) struct PromptApprover {
    questions: mpsc::Sender<Question>,
    screen: Screen,
}

/// A question, and where its answer is waited for.
#[derive(Debug)]
pub(super) struct Question {
    /// The call.
    pub(super) request: ApprovalRequest,
    /// Takes the answer; closed once nobody waits for it.
    pub(super) answer: oneshot::Sender<Approval>,
}

/// Builds the two ends.
pub(super) fn channel(screen: Screen) -> (PromptApprover, mpsc::Receiver<Question>) {
    let (questions, asked) = mpsc::channel(QUESTIONS);
    (PromptApprover { questions, screen }, asked)
}

#[async_trait]
impl Approver for PromptApprover {
    async fn ask(&self, request: &ApprovalRequest) -> Approval {
        self.screen.aside().await;
        let (answer, answered) = oneshot::channel();
        let request = request.clone();
        let question = Question { request, answer };
        let sent = self.questions.send(question).await;
        match answered.await {
            Ok(approval) if sent.is_ok() => approval,
            _ => denied("nobody is there to ask"),
        }
    }
}

/// Builds the answer of somebody who does not want it.
pub(super) fn denied(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}
