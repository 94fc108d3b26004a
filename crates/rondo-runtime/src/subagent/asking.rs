//! Questions of subagents.

use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_types::{Question, QuestionKind};
use std::sync::Arc;

/// Says of each question about a call, or of a running one, that a subagent asks it. What is answered is the child's own question, whose hash
/// does not depend on these words.
pub(super) struct SubagentApprover {
    pub(super) approver: Arc<dyn Approver>,
    /// The agent's name, or none.
    pub(super) agent: Option<String>,
}

#[async_trait]
impl Approver for SubagentApprover {
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
