//! Builds every turn, from the agent's parts and the turn's own.

use rondo_core::catalog::AnswerCheck;
use rondo_core::ports::{Commit, ToolSource};
use rondo_core::{
    Approver, Budgets, Gate, Interceptor, Journal, Model, OutsideText, Toolbox, TurnSetup,
};
use rondo_types::{Profile, SessionId, TurnId};
use serde_json::Value;
use std::sync::Arc;

/// The parts of a turn that several turns may share.
#[derive(Clone)]
pub struct TurnParts {
    /// The primary model.
    pub model: Arc<dyn Model>,
    /// The fallback models, in order; each takes over when the one before it fails.
    pub fallbacks: Vec<Arc<dyn Model>>,
    /// The tools that the model may call.
    pub tools: Toolbox,
    /// Offer tools beside them that may change between two steps.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
    /// Judges each call.
    pub gate: Arc<dyn Gate>,
    /// Answers when the gate asks for approval.
    pub approver: Arc<dyn Approver>,
    /// May deny or change calls, results and steps, in order.
    pub interceptors: Vec<Arc<dyn Interceptor>>,
    /// Budgets that turns share; each is asked before each request.
    pub budgets: Vec<Arc<dyn Budgets>>,
    /// Limits, rendering and texts.
    pub profile: Arc<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Vec<String>,
}

/// The parts of a turn that belong to it alone.
pub struct NewTurn {
    /// The session.
    pub session: SessionId,
    /// The turn's name; must be unique.
    pub turn: TurnId,
    /// The turn's place in its session, from 1.
    pub turn_number: u32,
    /// Records every effect of the turn before it happens.
    pub journal: Arc<dyn Journal>,
    /// The JSON Schema that the answer must fit, if any.
    pub response_schema: Option<Value>,
    /// A further check of answers that fit the schema, if any.
    pub answer_check: Option<AnswerCheck>,
    /// What becomes durable together with the turn's first records.
    pub opening: Commit,
    /// Seeds the jitter of retries.
    pub seed: u64,
    /// Whether the conversation holds text from outside; shared by the turns of a session.
    pub outside_text: OutsideText,
}

impl TurnParts {
    /// Builds the setup of a turn, to be run or resumed.
    ///
    /// Programs and hosts build every turn with this function, so that a new part is added for all
    /// of them at once.
    #[must_use]
    pub fn turn(self, new: NewTurn) -> TurnSetup {
        TurnSetup {
            session: new.session,
            turn: new.turn,
            turn_number: new.turn_number,
            model: self.model,
            fallbacks: self.fallbacks,
            tools: self.tools,
            tool_sources: self.tool_sources,
            gate: self.gate,
            approver: self.approver,
            interceptors: self.interceptors,
            budgets: self.budgets,
            journal: new.journal,
            profile: self.profile,
            system: self.system,
            response_schema: new.response_schema,
            answer_check: new.answer_check,
            opening: new.opening,
            seed: new.seed,
            outside_text: new.outside_text,
        }
    }
}
