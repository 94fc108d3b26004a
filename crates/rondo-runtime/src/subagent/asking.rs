//! Questions of sessions that work side by side, put one at a time.

use async_trait::async_trait;
use rondo_core::ports::{BudgetQuestion, CallQuestionRequest};
use rondo_core::{ApprovalReply, ApprovalRequest, Approver};
use rondo_types::AnswerValue;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Hands questions to an approver one at a time, whichever of its clones is asked.
#[derive(Clone)]
pub(crate) struct OneAtATime {
    approver: Arc<dyn Approver>,
    asking: Arc<Mutex<()>>,
}

impl OneAtATime {
    pub(crate) fn new(approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            asking: Arc::default(),
        }
    }
}

#[async_trait]
impl Approver for OneAtATime {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let _turn_to_ask = self.asking.lock().await;
        self.approver.ask(request).await
    }

    async fn ask_budget(&self, question: &BudgetQuestion) -> ApprovalReply {
        let _turn_to_ask = self.asking.lock().await;
        self.approver.ask_budget(question).await
    }

    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        let _turn_to_ask = self.asking.lock().await;
        self.approver.ask_within(request).await
    }
}

/// Says of each question about a call that a subagent asks it. What is answered is the child's own question, whose hash
/// does not depend on these words.
pub(super) struct OfSubagent {
    pub(super) approver: Arc<dyn Approver>,
    /// The agent's name, or none.
    pub(super) agent: Option<String>,
}

#[async_trait]
impl Approver for OfSubagent {
    async fn ask(&self, request: &ApprovalRequest) -> ApprovalReply {
        let who = match &self.agent {
            Some(agent) => format!("subagent `{agent}`"),
            None => "a subagent".to_owned(),
        };
        let request = ApprovalRequest {
            prompt: format!("[{who}] {}", request.prompt),
            ..request.clone()
        };
        self.approver.ask(&request).await
    }

    async fn ask_budget(&self, question: &BudgetQuestion) -> ApprovalReply {
        self.approver.ask_budget(question).await
    }

    async fn ask_within(&self, request: &CallQuestionRequest) -> AnswerValue {
        self.approver.ask_within(request).await
    }
}
