//! The inputs and actions of the machine, and its configuration.

use crate::ports::{Approval, Interception, Purpose, Reconciled, RecordBody, Reservation, Verdict};
use rondo_types::{
    AskReason, CallId, EventBody, InDoubtDecision, InitEvent, Message, ModelError, ModelInfo,
    ModelRequest, Outcome, Profile, QuestionId, Recovery, Reply, SessionId, TimeMs, ToolOutcome,
    ToolSpec, Transcript, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a turn; immutable while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnConfig {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The turn's number in its session, from 1; it makes call ids unique.
    pub turn_number: u32,
    /// The model.
    pub model: ModelInfo,
    /// The models to use when its requests fail, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelInfo>,
    /// Limits, rendering and texts.
    pub profile: Arc<Profile>,
    /// The ordered blocks of the system prompt.
    pub system: Arc<Vec<String>>,
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
        InitEvent {
            schema_version: rondo_types::EVENT_SCHEMA_VERSION,
            model: self.model.full_name(),
            fallbacks: self.fallbacks.iter().map(ModelInfo::full_name).collect(),
            profile: self.profile.name.clone(),
            limits: self.profile.limits.clone(),
            tools: Arc::clone(&self.tools).into(),
        }
    }
}

/// Prepares arguments and checks answers: pure, and the same for the same text.
pub trait Arguments {
    /// Parses, repairs and validates the arguments of a call to a tool that exists.
    fn prepare(&self, tool: &str, raw: &str) -> PreparedCall;

    /// Checks an answer against the response schema, if there is one, and returns it without a surrounding
    /// code fence.
    ///
    /// # Errors
    /// The mismatch, worded for the model.
    fn check_answer(&self, text: String) -> Result<String, String>;

    /// Checks an answer that fits the schema for what a schema cannot express. The refusal is recorded, so
    /// this need not be deterministic.
    ///
    /// # Errors
    /// The problem, worded for the model.
    fn refuse_answer(&self, _answer: &str) -> Result<(), String> {
        Ok(())
    }
}

impl<A: Arguments + ?Sized> Arguments for &A {
    fn prepare(&self, tool: &str, raw: &str) -> PreparedCall {
        (**self).prepare(tool, raw)
    }

    fn check_answer(&self, text: String) -> Result<String, String> {
        (**self).check_answer(text)
    }

    fn refuse_answer(&self, answer: &str) -> Result<(), String> {
        (**self).refuse_answer(answer)
    }
}

/// The result of preparing a call's arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedCall {
    /// They fit the schema, possibly after repairs.
    Ready {
        /// As they will be run.
        arguments: Value,
        /// One line for each repair.
        diff: Vec<String>,
        /// Set if a repair went beyond notation.
        meaning_changed: bool,
    },
    /// They do not fit the schema.
    Invalid {
        /// Problem and expectation, worded for the model.
        message: String,
        /// The same as data.
        details: Value,
    },
}

/// An input of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// The turn begins.
    Begin {
        /// The session so far.
        history: Transcript,
        /// The user's message.
        message: Arc<Message>,
    },
    /// The model's reply arrived completely.
    Reply {
        /// The reply.
        reply: Reply,
    },
    /// The model request failed.
    ReplyFailed {
        /// Error of the request.
        error: ModelError,
        /// Text of the answer that had arrived.
        partial: String,
        /// Set if anything of the reply was already shown, so that it cannot be retried.
        committed: bool,
        /// Set if anything of the reply arrived, so that it is charged for.
        received: bool,
    },
    /// The gate judged a call.
    Gate {
        /// Id of the call.
        call_id: CallId,
        /// Verdict of the gate.
        verdict: Verdict,
    },
    /// The approval question of a call was answered.
    Approval {
        /// Id of the call.
        call_id: CallId,
        /// The answer.
        approval: Approval,
    },
    /// Interceptors decided about a call or the request that are about to begin, or about a result that follows. The
    /// action that it is about is taken back, and comes again as it is then, if at all.
    Intercepted {
        /// Decision of the interceptors.
        what: Interception,
    },
    /// Nothing speaks against the request that is held, as far as this check goes.
    RequestPassed {
        /// The check.
        check: RequestCheck,
    },
    /// The budgets have nothing left for the request that is held.
    BudgetSpent {
        /// Refused reservation.
        reservation: Reservation,
    },
    /// A question is put to a person. The time until its answer counts against no limit, but for that of the call that
    /// asks.
    Asked {
        /// The question.
        question: QuestionId,
        /// The call that it is about, or that asks it.
        call: Option<CallId>,
        /// Set if the call runs meanwhile.
        is_of_running_call: bool,
    },
    /// A person answered a question. The subject of the answer is another input.
    Answered {
        /// The question.
        question: QuestionId,
    },
    /// The turn continues in another process. Whether a call runs again that a person was asked about is decided again.
    Resumed {
        /// The request that was sent and has no reply; it is sent again.
        unanswered: Option<Box<ModelCall>>,
    },
    /// A call was begun and its end is not known, after a crash; then [`Action::Settle`].
    CutOff {
        /// Id of the call.
        call_id: CallId,
        /// The recovery that its tool declares now.
        recovery: Recovery,
        /// State of the call, according to its tool.
        known: Reconciled,
    },
    /// It is decided what is done about a call that was cut off.
    InDoubt {
        /// Id of the call.
        call_id: CallId,
        /// Decision about it.
        decision: InDoubtDecision,
        /// Set if it still runs and is waited for, instead of being run again.
        still_running: bool,
    },
    /// The gate of this process judged calls that an earlier one had judged. Those that may run begin with the others that
    /// were to begin at the same time.
    JudgedAgain {
        /// The verdicts.
        verdicts: Vec<(CallId, Verdict)>,
    },
    /// A question is put again in another process, or a person must say whether a call runs that a record has
    /// cleared.
    AskAgain {
        /// Id of the call.
        call_id: CallId,
        /// The question.
        prompt: String,
        /// Why the gate asks.
        reasons: Vec<AskReason>,
        /// Set if the call was begun before, so that it may have been done.
        has_begun: bool,
    },
    /// A call ended.
    ToolFinished {
        /// Id of the call.
        call_id: CallId,
        /// Outcome of the call.
        outcome: ToolOutcome,
        /// How long it ran.
        duration_ms: u64,
    },
    /// The tools on offer changed before the request of a step is sent, which is made again.
    Equip {
        /// All tools on offer from now on.
        specs: Arc<Vec<ToolSpec>>,
    },
    /// The user sent a message while the turn runs.
    Steer {
        /// It.
        message: Message,
    },
    /// The turn was cancelled.
    Cancel,
    /// The time of [`Action::Wait`] has come.
    Time,
    /// The runtime failed, for example because the journal cannot be written.
    Fault {
        /// Error of the request.
        error: ModelError,
    },
}

/// An action for the driver to carry out. Of those that lead to an input, at most one is outstanding, except
/// for [`Action::Ask`], of which there can be one per call.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send an event to the listener.
    Emit(EventBody),
    /// Record a change that the machine made to the transcript, durable with the next action.
    Record(Box<RecordBody>),
    /// Check the request that is held; then [`Input::RequestPassed`], or what the check found instead.
    CheckRequest(RequestCheck),
    /// Send a request; then [`Input::Reply`] or [`Input::ReplyFailed`].
    CallModel(ModelCall),
    /// A request that is held is not sent: [`Input::ReplyFailed`] with this error.
    EndRequest {
        /// The request.
        call: Box<ModelCall>,
        /// The error.
        error: ModelError,
    },
    /// Judge these calls; then one [`Input::Gate`] each, or [`Input::Intercepted`].
    CheckGate(Vec<PlannedCall>),
    /// The gate of this process has the answer to a question: [`Input::Approval`] with it.
    Answer {
        /// Id of the call.
        call_id: CallId,
        /// The answer.
        approval: Approval,
    },
    /// Ask the approver; then [`Input::Approval`].
    Ask {
        /// Call in question.
        call: Box<PlannedCall>,
        /// The question.
        prompt: String,
        /// Why the gate asks.
        reasons: Vec<AskReason>,
        /// Set if the question is about a call that a record has cleared, which runs unchanged or not at all.
        is_repeat: bool,
    },
    /// This is done about a call that was cut off: [`Input::InDoubt`], which is recorded first.
    Settle {
        /// Id of the call.
        call_id: CallId,
        /// Decision about it.
        decision: InDoubtDecision,
        /// Set if it still runs and is waited for.
        still_running: bool,
    },
    /// Nothing is to be done about this call: [`Input::ToolFinished`] with this outcome.
    EndCall {
        /// Call to check.
        call: Box<PlannedCall>,
        /// The outcome.
        outcome: ToolOutcome,
    },
    /// Run these calls at once; then one [`Input::ToolFinished`] each.
    RunTools(Vec<PlannedCall>),
    /// Of these calls, judge those again that only an earlier process has judged; then [`Input::JudgedAgain`].
    JudgeAgain(Vec<PlannedCall>),
    /// A person must say in this process whether this call runs: [`Input::AskAgain`].
    AskAgain {
        /// Call to run.
        call: Box<PlannedCall>,
        /// The question.
        prompt: String,
        /// Why the gate asks.
        reasons: Vec<AskReason>,
        /// Set if it was begun before, so that it may have been done.
        has_begun: bool,
    },
    /// Run a call again whose beginning is recorded; then [`Input::ToolFinished`].
    RepeatCall(Box<PlannedCall>),
    /// Wait; then [`Input::Time`].
    Wait {
        /// The instant.
        until: TimeMs,
    },
    /// Stop the request and calls that are running; their results still arrive as inputs.
    Abort,
    /// The turn is over.
    Done(Box<Outcome>),
}

/// A check that a request must pass before it is sent, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestCheck {
    /// Changed tools on offer; then [`Input::Equip`].
    Tools,
    /// Decision of the interceptors about the step; then [`Input::Intercepted`] if they add something or stop the turn.
    Interceptors,
    /// Rest of the budgets; then [`Input::BudgetSpent`] if there is none.
    Budgets,
}

/// One model request, with its bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The request.
    pub request: Arc<ModelRequest>,
    /// The model: 0 is [`TurnConfig::model`], `n` the `n`-th of [`TurnConfig::fallbacks`].
    pub model: usize,
    /// The step, from 1.
    pub step: u32,
    /// The attempt, from 0 for each model; retries count up.
    pub attempt: u32,
    /// Purpose of its reply.
    pub purpose: Purpose,
    /// How long the first content may take.
    pub first_byte_timeout: Option<Duration>,
    /// How long the next content may take.
    pub idle_timeout: Option<Duration>,
    /// When the reply must be complete.
    pub end: Option<StepEnd>,
}

impl ModelCall {
    /// Moves its end on, by the time that a person was waited for before it could be sent.
    pub(crate) fn delay(&mut self, by: Duration) {
        if let Some(end) = &mut self.end {
            end.at = end.at.after(by);
        }
    }
}

/// The end of the time for a step, and which limit sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The instant.
    pub at: TimeMs,
    /// Set if the turn's deadline sets it (less the time reserved for the final answer), rather than the
    /// step's timeout.
    pub is_deadline: bool,
}

/// One call that may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// Id of the call.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as they will be run.
    pub arguments: Value,
    /// Action of a resumed turn if its end is not recorded.
    pub recovery: Recovery,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// When it is abandoned, after it was cancelled or timed out.
    pub end_by: Option<TimeMs>,
}
