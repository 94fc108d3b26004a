//! The inputs and actions of the machine, and the configuration it runs under.

use crate::ports::{Approval, Purpose, RecordBody, Verdict};
use rondo_types::{
    CallId, EventBody, InitEvent, Message, ModelError, ModelInfo, ModelRequest, Outcome, Profile,
    Recovery, Reply, SessionId, TimeMs, ToolOutcome, ToolSpec, Transcript, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a turn runs under; immutable while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnConfig {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The turn's place in its session, from 1; it makes call ids unique.
    pub turn_number: u32,
    /// The model.
    pub model: ModelInfo,
    /// The models that follow it when its requests fail, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelInfo>,
    /// Limits, rendering and texts.
    pub profile: Arc<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Vec<String>,
    /// The tools on offer.
    pub tools: Arc<Vec<ToolSpec>>,
    /// The JSON Schema that the answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Seeds the jitter of retries.
    pub seed: u64,
}

impl TurnConfig {
    /// Returns the first event of the turn.
    pub(crate) fn init_event(&self) -> InitEvent {
        let tools = self.tools.iter();
        InitEvent {
            schema_version: rondo_types::EVENT_SCHEMA_VERSION,
            model: self.model.full_name(),
            fallbacks: self.fallbacks.iter().map(ModelInfo::full_name).collect(),
            profile: self.profile.name.clone(),
            limits: self.profile.limits.clone(),
            tools: tools.map(|spec| spec.name.clone()).collect(),
        }
    }
}

/// Prepares arguments and checks answers: pure, and the same for the same text.
pub trait Arguments {
    /// Parses, repairs and validates the arguments of a call to a tool that exists.
    fn prepare(&self, tool: &str, raw: &str) -> PreparedCall;

    /// Checks an answer against the schema asked for, if one was, and returns it without what may
    /// stand around it.
    ///
    /// # Errors
    /// What does not fit, for the model.
    fn check_answer(&self, text: String) -> Result<String, String>;

    /// Checks an answer that fits the schema by what a schema cannot say. The refusal is recorded, so
    /// that this need not be the same for the same text.
    ///
    /// # Errors
    /// What is wrong, for the model.
    fn refuse_answer(&self, _answer: &str) -> Result<(), String> {
        Ok(())
    }
}

/// What became of a call's arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedCall {
    /// They fit.
    Ready {
        /// As they will be run.
        arguments: Value,
        /// One line for each repair.
        diff: Vec<String>,
        /// Whether a repair went beyond notation.
        meaning_changed: bool,
    },
    /// They do not.
    Invalid {
        /// What is wrong and what is expected, for the model.
        message: String,
        /// The same as data.
        details: Value,
    },
}

/// What the machine is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// The turn begins.
    Begin {
        /// The session so far.
        history: Transcript,
        /// The user's message.
        message: Message,
    },
    /// The model replied, and the reply ended as its protocol ends.
    Reply {
        /// The reply.
        reply: Reply,
    },
    /// The model request failed.
    ReplyFailed {
        /// Why.
        error: ModelError,
        /// Text of the answer that had arrived.
        partial: String,
        /// Whether anything of the reply was shown already.
        committed: bool,
        /// Whether anything of the reply had arrived: it was paid for.
        received: bool,
    },
    /// The gate judged a call.
    Gate {
        /// The call.
        call_id: CallId,
        /// Its verdict.
        verdict: Verdict,
    },
    /// A person answered.
    Approval {
        /// The call.
        call_id: CallId,
        /// Their answer.
        approval: Approval,
    },
    /// A call ended.
    ToolFinished {
        /// The call.
        call_id: CallId,
        /// How.
        outcome: ToolOutcome,
        /// How long it ran.
        duration_ms: u64,
    },
    /// The user says something while the turn runs.
    Steer {
        /// What.
        text: String,
    },
    /// The turn is to stop.
    Cancel,
    /// A wait is over.
    Time,
    /// The runtime cannot go on, as when the journal cannot be written.
    Fault {
        /// Why.
        error: ModelError,
    },
}

/// What the machine wants done. Of the kinds that await something, at most one is outstanding,
/// except [`Action::Ask`], which is one per call.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Tell the listener.
    Emit(EventBody),
    /// Record what the machine did to the transcript by itself, with what happens next.
    Record(Box<RecordBody>),
    /// Send a request; then [`Input::Reply`] or [`Input::ReplyFailed`].
    CallModel(ModelCall),
    /// Judge these calls; then one [`Input::Gate`] each.
    CheckGate(Vec<PlannedCall>),
    /// Ask a person; then [`Input::Approval`].
    Ask {
        /// The call.
        call: Box<PlannedCall>,
        /// The question.
        prompt: String,
        /// When to stop waiting for an answer.
        until: Option<TimeMs>,
    },
    /// Run these calls at once; then one [`Input::ToolFinished`] each.
    RunTools(Vec<PlannedCall>),
    /// Do nothing until then; then [`Input::Time`].
    Wait {
        /// The instant.
        until: TimeMs,
    },
    /// End what is running; its ends are still awaited.
    Abort,
    /// The turn is over.
    Done(Box<Outcome>),
}

/// One model request, with its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The request.
    pub request: Arc<ModelRequest>,
    /// Whom to send it to: 0 is [`TurnConfig::model`], `n` the `n`-th of [`TurnConfig::fallbacks`].
    pub model: usize,
    /// From 1.
    pub step: u32,
    /// From 0 for each model; repetitions after transport failures count up.
    pub attempt: u32,
    /// What its reply is for.
    pub purpose: Purpose,
    /// How long the first content may take.
    pub first_byte_timeout: Option<Duration>,
    /// How long the next content may take.
    pub idle_timeout: Option<Duration>,
    /// When the reply must be whole.
    pub end: Option<StepEnd>,
}

/// When a step must be over, and what it is called when it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEnd {
    /// The instant.
    pub at: TimeMs,
    /// Whether it is the turn's deadline (less what is held back) rather than the step's timeout.
    pub is_deadline: bool,
}

/// One call that may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as they will be run.
    pub arguments: Value,
    /// What recovery does with it.
    pub recovery: Recovery,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// When it must have ended, once it was told to.
    pub end_by: Option<TimeMs>,
}
