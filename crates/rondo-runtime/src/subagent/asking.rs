//! Questions of sessions that work side by side, put one at a time.

use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_types::{Question, QuestionKind};
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
    async fn ask(&self, question: &Question) -> QuestionReply {
        let _turn_to_ask = self.asking.lock().await;
        self.approver.ask(question).await
    }
}

/// Says of each question about a call, or of a running one, that a subagent asks it. What is answered is the child's own question, whose hash
/// does not depend on these words.
pub(super) struct OfSubagent {
    pub(super) approver: Arc<dyn Approver>,
    /// The agent's name, or none.
    pub(super) agent: Option<String>,
}

#[async_trait]
impl Approver for OfSubagent {
    async fn ask(&self, question: &Question) -> QuestionReply {
        if question.kind == QuestionKind::Budget {
            return self.approver.ask(question).await;
        }
        let who = match &self.agent {
            Some(agent) => format!("subagent `{agent}`"),
            None => "a subagent".to_owned(),
        };
        let question = Question {
            prompt: format!("[{who}] {}", question.prompt),
            ..question.clone()
        };
        self.approver.ask(&question).await
    }
}
