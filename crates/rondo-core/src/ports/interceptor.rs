//! The port to code that watches a turn and may change it: hooks, scripts and a program's own middleware.

use super::gate::GateRequest;
use async_trait::async_trait;
use rondo_types::{CallId, Outcome, SessionId, ToolOutcome, Transcript, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How long an interceptor may take to answer once, within the turn's time.
pub const INTERCEPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that one interceptor may add before a step; the rest is cut off.
pub const NOTE_BYTES_MAX: usize = 16 << 10;
/// Bytes of the arguments that an interceptor may put in the place of others; a call with more is denied.
pub const REWRITTEN_BYTES_MAX: usize = 1 << 20;
/// Bytes of a reason that an interceptor gives, and of its name; the rest is cut off.
pub const REASON_BYTES_MAX: usize = 1 << 10;

/// Watches a turn, and may deny or change what it does.
///
/// The interceptors of a turn are asked in their order, and each sees the changes of those before it. Their
/// decisions are recorded before anything follows from them, and are not asked for again when the turn is resumed; a
/// replay needs no interceptor. An answer that was not recorded before a crash is asked for again.
///
/// Each has [`INTERCEPT_TIMEOUT`] for an answer. One that panics or takes longer decides by that: a call is denied, a
/// result is withheld from the model, and a step continues without it.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// Returns its name, for records, events and what the model reads. The same at every call.
    fn name(&self) -> &str;

    /// Asked before the first step of a turn, before [`Self::step_start`].
    async fn turn_start(&self, _step: &StepContext) -> StepDecision {
        StepDecision::Continue
    }

    /// Asked before the first request of each step, but for one that has the model continue with a reply that its
    /// provider paused.
    async fn step_start(&self, _step: &StepContext) -> StepDecision {
        StepDecision::Continue
    }

    /// Asked about each call before the gate is, which judges the result of this decision. Also asked about the
    /// arguments that a person put in the place of a call's; these may be denied and not rewritten.
    async fn before_tool(&self, _call: &GateRequest) -> CallDecision {
        CallDecision::Allow
    }

    /// Asked about each result of a tool before the model reads it. Until it has answered, the call counts as
    /// running.
    async fn after_tool(&self, _call: &FinishedCall) -> ResultDecision {
        ResultDecision::Keep
    }

    /// Called after the end of the turn, once it is recorded and shown: at most once, and not if the process ends
    /// first.
    async fn turn_end(&self, _outcome: &Outcome) {}
}

/// A step that is about to begin.
#[derive(Debug, Clone)]
pub struct StepContext {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The turn's place in its session, from 1.
    pub turn_number: u32,
    /// The step, from 1.
    pub step: u32,
    /// The model that is asked, as `provider/model`.
    pub model: String,
    /// Transcript that it will read.
    pub transcript: Transcript,
}

/// Decision about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepDecision {
    /// It begins.
    Continue,
    /// It begins, and the model reads this after all other messages.
    Add {
        /// The text; empty adds nothing.
        text: String,
    },
    /// It does not begin, and the turn ends with what it has.
    Stop {
        /// Why, for the answer.
        reason: String,
    },
}

/// Decision about a call. A denial by one interceptor, or by the gate, beats all other decisions.
#[derive(Debug, Clone, PartialEq)]
pub enum CallDecision {
    /// The gate judges it.
    Allow,
    /// It does not run; the model reads why.
    Deny {
        /// Reason of the denial.
        reason: String,
    },
    /// The gate judges it with other arguments. These are checked like the model's, which reads of the change with
    /// the call's result.
    Rewrite {
        /// All arguments, as the tool takes them.
        arguments: Value,
    },
}

/// A call that a tool has ended.
#[derive(Debug, Clone)]
pub struct FinishedCall {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that it ran with.
    pub arguments: Value,
    /// How it ended.
    pub outcome: ToolOutcome,
    /// How long it ran.
    pub duration_ms: u64,
}

/// Decision about the model's view of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultDecision {
    /// Keeps the tool's result.
    Keep,
    /// This text. Whether the call succeeded stays as it was; data and media of the result are left out.
    Rewrite {
        /// The text.
        text: String,
    },
}

/// Decision of interceptors: an input of the machine, and a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Interception {
    /// A call goes to the gate as it is.
    Allowed {
        /// Id of the call.
        call_id: CallId,
    },
    /// A call goes to the gate with other arguments.
    Rewritten {
        /// Id of the call.
        call_id: CallId,
        /// Interceptors that changed them, in order; never empty.
        by: Vec<String>,
        /// All arguments.
        arguments: Value,
    },
    /// A call does not run.
    Denied {
        /// Id of the call.
        call_id: CallId,
        /// Interceptor that denied it.
        by: String,
        /// Why, as the model reads it.
        reason: String,
    },
    /// The model reads this in place of the call's result, which follows.
    ResultRewritten {
        /// Id of the call.
        call_id: CallId,
        /// Interceptors that changed it, in order; never empty.
        by: Vec<String>,
        /// The text.
        text: String,
    },
    /// Messages join the request that is about to be sent.
    Added {
        /// One for each; never empty.
        notes: Vec<Note>,
    },
    /// The turn ends instead of that request.
    Stopped {
        /// Interceptor that stopped it.
        by: String,
        /// Reason of the stop.
        reason: String,
    },
}

impl Interception {
    /// Returns the call that it settles the way to the gate of.
    #[must_use]
    pub fn judged_call(&self) -> Option<&CallId> {
        match self {
            Self::Allowed { call_id }
            | Self::Rewritten { call_id, .. }
            | Self::Denied { call_id, .. } => Some(call_id),
            Self::ResultRewritten { .. } | Self::Added { .. } | Self::Stopped { .. } => None,
        }
    }
}

/// Addition of an interceptor before a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Interceptor that adds it.
    pub by: String,
    /// The text.
    pub text: String,
}
