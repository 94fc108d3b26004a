//! The parts that all turns of an agent share.

use crate::budget::TurnBudget;
use crate::ids;
use crate::run::{Run, RunStart};
use crate::typed::Expected;
use rondo_core::history::last_turn;
use rondo_core::ports::{Commit, NoJournal, ToolSource};
use rondo_core::{
    Approver, Budgets, Gate, Interceptor, Journal, Model, OutsideText, Toolbox, TurnSetup,
};
use rondo_types::{Message, Profile, SessionId, Transcript};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Precedes the schema in the system prompt, since not every provider enforces a schema, and some
/// do not when there are tools.
const ANSWER_PROMPT: &str = "When you are done, answer with JSON alone, without any words around \
    it, that fits this JSON Schema:";
/// Replaces the profile's corrective message, which asks for plain text.
const ANSWER_CORRECTIVE: &str = "Your last reply could not be used: {problem}. Call a tool, or \
    answer with JSON alone that fits the schema.";
/// Replaces the profile's message of the last request.
const ANSWER_FINALISE: &str = "Stop here: {limit}. No more tools are available. Answer now, with \
    JSON alone that fits the schema, by what you have found.";

/// The parts that all turns of an agent share.
pub(crate) struct Parts {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) fallbacks: Vec<Arc<dyn Model>>,
    pub(crate) tools: Toolbox,
    pub(crate) tool_sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(crate) budgets: Vec<Arc<dyn Budgets>>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) system: Vec<String>,
    pub(crate) response_schema: Option<Value>,
    /// The working directory of the built-in tools, shown in lists of stored sessions.
    pub(crate) directory: Option<PathBuf>,
}

/// The parameters of one turn.
pub(crate) struct Task {
    pub(crate) session: SessionId,
    pub(crate) turn_number: u32,
    pub(crate) journal: Arc<dyn Journal>,
    /// The schema and check of this turn's answer, instead of the agent's schema.
    pub(crate) answer: Option<Expected>,
    pub(crate) outside_text: OutsideText,
}

impl Parts {
    /// Starts a turn in a session of its own.
    pub(crate) fn start(
        &self,
        history: Transcript,
        message: Message,
        answer: Option<Expected>,
    ) -> Run {
        let task = Task {
            session: ids::new_session(),
            turn_number: turns_of(&history).saturating_add(1),
            journal: Arc::new(NoJournal::default()),
            answer,
            outside_text: OutsideText::default(),
        };
        let history = Arc::new(Mutex::new(history));
        Run::start(self.setup(task), RunStart::Ask(message), history, None)
    }

    pub(crate) fn setup(&self, task: Task) -> TurnSetup {
        let (answer, answer_check) = match task.answer {
            Some(expected) => (Some(expected.schema), Some(expected.check)),
            None => (self.response_schema.clone(), None),
        };
        let (mut profile, mut system) = (Arc::clone(&self.profile), self.system.clone());
        if let Some(schema) = &answer {
            system.push(format!("{ANSWER_PROMPT}\n{schema}"));
            let texts = &mut Arc::make_mut(&mut profile).texts;
            texts.corrective = ANSWER_CORRECTIVE.to_owned();
            texts.finalise = ANSWER_FINALISE.to_owned();
        }
        TurnSetup {
            turn: ids::turn(&task.session, task.turn_number),
            session: task.session,
            turn_number: task.turn_number,
            model: Arc::clone(&self.model),
            fallbacks: self.fallbacks.clone(),
            tools: self.tools.clone(),
            tool_sources: self.tool_sources.clone(),
            gate: Arc::clone(&self.gate),
            approver: Arc::clone(&self.approver),
            interceptors: self.interceptors.clone(),
            budgets: self.budgets.iter().cloned().map(TurnBudget::wrap).collect(),
            journal: task.journal,
            profile,
            system: system.into(),
            response_schema: answer,
            answer_check,
            opening: Commit::default(),
            seed: ids::random(),
            outside_text: task.outside_text,
        }
    }
}

/// Returns an upper bound on the number of the last turn in a history. Each turn adds at least one
/// message; a history that was shortened has call ids with higher turn numbers than its length.
pub(crate) fn turns_of(history: &Transcript) -> u32 {
    let messages = u32::try_from(history.len()).unwrap_or(u32::MAX);
    messages.max(last_turn(history))
}
