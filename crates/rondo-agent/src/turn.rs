//! The one place that builds a turn.

use rondo_core::catalog::AnswerCheck;
use rondo_core::{Approver, Gate, Journal, Model, Toolbox, TurnSetup};
use rondo_types::{Profile, SessionId, TurnId};
use serde_json::Value;
use std::sync::Arc;

/// What a turn is built from that several turns may share.
#[derive(Clone)]
pub struct TurnParts {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who is asked instead when that fails, in order.
    pub fallbacks: Vec<Arc<dyn Model>>,
    /// What may be called.
    pub tools: Toolbox,
    /// Judges each call.
    pub gate: Arc<dyn Gate>,
    /// Is asked where the gate does not know.
    pub approver: Arc<dyn Approver>,
    /// Limits, rendering and texts.
    pub profile: Arc<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Vec<String>,
}

/// What is one turn's own.
pub struct NewTurn {
    /// The session.
    pub session: SessionId,
    /// The turn's name, which no other turn has.
    pub turn: TurnId,
    /// The turn's place in its session, from 1.
    pub turn_number: u32,
    /// Where everything is recorded first.
    pub journal: Arc<dyn Journal>,
    /// The JSON Schema that the answer must fit.
    pub response_schema: Option<Value>,
    /// Checks answers that fit the schema; none where the schema says it all.
    pub answer_check: Option<AnswerCheck>,
    /// Seeds the jitter of retries.
    pub seed: u64,
}

impl TurnParts {
    /// Builds a turn, ready to be run or carried on.
    ///
    /// Every turn of Rondo is built here, be it for a program, a host or a design, so that what a turn needs is
    /// added for all of them at once.
    #[must_use]
    pub fn turn(self, new: NewTurn) -> TurnSetup {
        TurnSetup {
            session: new.session,
            turn: new.turn,
            turn_number: new.turn_number,
            model: self.model,
            fallbacks: self.fallbacks,
            tools: self.tools,
            gate: self.gate,
            approver: self.approver,
            journal: new.journal,
            profile: self.profile,
            system: self.system,
            response_schema: new.response_schema,
            answer_check: new.answer_check,
            seed: new.seed,
        }
    }
}
