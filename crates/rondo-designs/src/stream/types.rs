//! The configuration and results of a run.

use super::{FinishReason, Message, TokenUsage};
use rondo_types::{Outcome, StopReason as Stopped, ToolErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Limits of a run, and its system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// Model requests of a run; at least 1.
    pub max_turns: u32,
    /// Calls that one reply may ask for; a reply with more ends the run, and none of them is run.
    pub max_tool_calls_per_turn: u32,
    /// From sending a request to the end of its reply, in seconds.
    pub request_timeout_secs: u64,
    /// Of one tool call, in seconds.
    pub tool_timeout_secs: u64,
    /// The system prompt.
    pub system_prompt: Option<String>,
}

impl Default for AgentConfig {
    /// Returns 25 turns, 10 calls a turn, 120 s a request and 30 s a call, without a system prompt.
    fn default() -> Self {
        Self {
            max_turns: 25,
            max_tool_calls_per_turn: 10,
            request_timeout_secs: 120,
            tool_timeout_secs: 30,
            system_prompt: None,
        }
    }
}

impl AgentConfig {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`Self::max_turns`].
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: u32) -> Self {
        self.max_turns = max_turns;
        self
    }

    /// Sets [`Self::max_tool_calls_per_turn`].
    #[must_use]
    pub fn with_max_tool_calls_per_turn(mut self, max_tool_calls: u32) -> Self {
        self.max_tool_calls_per_turn = max_tool_calls;
        self
    }

    /// Sets [`Self::request_timeout_secs`].
    #[must_use]
    pub fn with_request_timeout_secs(mut self, seconds: u64) -> Self {
        self.request_timeout_secs = seconds;
        self
    }

    /// Sets [`Self::tool_timeout_secs`].
    #[must_use]
    pub fn with_tool_timeout_secs(mut self, seconds: u64) -> Self {
        self.tool_timeout_secs = seconds;
        self
    }

    /// Sets [`Self::system_prompt`].
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(system_prompt.into());
        self
    }
}

/// One model request, its reply and the calls in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    /// The text of the reply; the part that arrived, if the stream broke.
    pub text: String,
    /// The calls, in the order in which the model asked for them; each has a result, also if it
    /// was not run.
    pub tool_calls: Vec<ExecutedToolCall>,
    /// Why the model ended the reply; `Other` if it did not say, `Error` if there is none.
    pub finish_reason: FinishReason,
    /// Token counts of the request; an estimate if the provider sent none.
    pub usage: Option<TokenUsage>,
}

/// A call with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutedToolCall {
    /// The provider's id of the call; ours if it sent none.
    pub call_id: String,
    /// The tool.
    pub function_name: String,
    /// The arguments as the model wrote them: JSON, or the text if it is not JSON.
    pub arguments: Value,
    /// Result of the call.
    pub result: ToolResult,
    /// How long it ran, in milliseconds; 0 if it was not run.
    pub duration_ms: u64,
}

/// The result of a call as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Set if the tool succeeded.
    pub success: bool,
    /// Text for the model; compact JSON if the tool returned JSON.
    pub content: String,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorCode>,
}

/// How a run ended.
///
/// Beside what the design names it keeps the messages of the run, which serialize with it: a
/// continuation works on them. A program can build one without messages:
///
/// ```
/// use rondo::design::stream::{AgentLoopResult, StopReason, build_messages_from_result};
///
/// let result = AgentLoopResult {
///     final_text: "It is 4.".to_owned(),
///     stop_reason: StopReason::Complete,
///     ..AgentLoopResult::default()
/// };
/// assert_eq!(build_messages_from_result(&result)[0].text(), "It is 4.");
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentLoopResult {
    /// Every model request of the run, in order.
    pub turns: Vec<TurnResult>,
    /// The answer; after an early stop, why it stopped and what the tools found.
    pub final_text: String,
    /// The token counts of all requests, summed.
    pub total_usage: TokenUsage,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// The messages of the run and of those that it continues, the user's included. If there are none, a continuation
    /// works on the turns.
    #[serde(default, alias = "transcript")]
    pub messages: Vec<Message>,
}

impl AgentLoopResult {
    pub(super) fn new(outcome: Outcome, turns: Vec<TurnResult>) -> Self {
        Self {
            turns,
            stop_reason: StopReason::of(&outcome),
            final_text: outcome.text,
            total_usage: outcome.usage,
            messages: outcome
                .transcript
                .into_iter()
                .map(Arc::unwrap_or_clone)
                .collect(),
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    #[default]
    Complete,
    /// All turns were used.
    MaxTurns,
    /// One reply asked for too many calls.
    MaxToolCalls,
    /// [`AgentLoop::cancel`](super::AgentLoop::cancel) was called.
    Cancelled,
    /// Anything else: a failed request, a timeout, a reply that cannot be used, a refusal.
    Error(String),
}

impl StopReason {
    fn of(outcome: &Outcome) -> Self {
        match outcome.stop_reason {
            Stopped::Complete => Self::Complete,
            Stopped::MaxSteps => Self::MaxTurns,
            Stopped::MaxToolCalls => Self::MaxToolCalls,
            Stopped::Cancelled => Self::Cancelled,
            other => Self::Error(match &outcome.error {
                Some(error) => format!("{other}: {error}"),
                None => other.to_string(),
            }),
        }
    }
}

/// One reply, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccumulatedTurn {
    /// The text.
    pub text: String,
    /// The reasoning.
    pub thinking: String,
    /// The calls that came whole; one that was cut off is never run, so it is left out.
    pub tool_calls: Vec<AccumulatedToolCall>,
    /// Why the model ended the reply; `Other` if it did not say.
    pub finish_reason: FinishReason,
}

/// One call, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccumulatedToolCall {
    /// The provider's id.
    pub call_id: String,
    /// The tool.
    pub function_name: String,
    /// The arguments as text, which may not be JSON.
    pub arguments_json: String,
}

/// How long the calls of one tool took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolTiming {
    /// How many of its calls ran, those that failed or timed out included.
    pub calls: u64,
    /// How long they ran together, in milliseconds.
    pub total_ms: u64,
    /// How long the longest ran, in milliseconds.
    pub max_ms: u64,
}

impl ToolTiming {
    /// Adds a call.
    pub(super) fn note(&mut self, duration_ms: u64) {
        self.calls = self.calls.saturating_add(1);
        self.total_ms = self.total_ms.saturating_add(duration_ms);
        self.max_ms = self.max_ms.max(duration_ms);
    }
}
