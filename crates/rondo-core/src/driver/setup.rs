//! The setup of a turn that needs little.

use super::TurnSetup;
use crate::ports::{
    Approver, Commit, Gate, GateRequest, MemoryJournal, Model, QuestionReply, Verdict,
};
use crate::{OutsideText, Toolbox};
use async_trait::async_trait;
use rondo_types::{Profile, Question, SessionId, TurnId};
use std::sync::Arc;

impl TurnSetup {
    /// Returns the setup of the first turn of a session that is kept in memory: one model, and nothing else. A gate and
    /// an approver that refuse everything stand in until a program sets its own.
    #[must_use]
    pub fn new(
        session: SessionId,
        turn: TurnId,
        model: Arc<dyn Model>,
        profile: Arc<Profile>,
    ) -> Self {
        Self {
            session,
            turn,
            turn_number: 1,
            model,
            fallbacks: Vec::new(),
            tools: Toolbox::default(),
            tool_sources: Vec::new(),
            gate: Arc::new(Closed),
            approver: Arc::new(Closed),
            interceptors: Vec::new(),
            budgets: Vec::new(),
            journal: Arc::new(MemoryJournal::default()),
            profile,
            system: Arc::default(),
            response_schema: None,
            answer_check: None,
            opening: Commit::default(),
            seed: 1,
            outside_text: OutsideText::default(),
        }
    }
}

/// Refuses every call and every question.
struct Closed;

#[async_trait]
impl Gate for Closed {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Deny {
            reason: "this program allows no calls".to_owned(),
        }
    }
}

#[async_trait]
impl Approver for Closed {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::denied(question, "program", "nobody is here to allow it")
    }
}
