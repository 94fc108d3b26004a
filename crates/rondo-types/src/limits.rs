//! The limits of a turn.

use crate::NanoUsd;
use crate::time::{duration_ms, optional_duration_ms};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that bounds a turn. Immutable while it runs; no tool, provider or prompt can raise it.
///
/// Absent means unlimited, which the profiles use only where their design says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model requests of a turn, corrective and final ones included; transport retries are not
    /// steps. At least 1.
    pub max_steps: u32,
    /// Tool calls that one reply may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls_per_step: Option<u32>,
    /// What happens when a reply asks for more.
    pub overflow: Overflow,
    /// Tool calls of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tokens of a turn, prompt and generated together, over all its requests.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "max_tokens"
    )]
    pub max_tokens_total: Option<u64>,
    /// Money of a turn.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "max_cost_nanousd"
    )]
    pub max_cost: Option<NanoUsd>,
    /// From sending a request to the end of its reply.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "step_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub step_timeout: Option<Duration>,
    /// From sending a request to its first content.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "first_byte_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub first_byte_timeout: Option<Duration>,
    /// Between two pieces of content.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "idle_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub idle_timeout: Option<Duration>,
    /// Of one tool call.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "tool_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub tool_timeout: Option<Duration>,
    /// From the turn's beginning to its end; its instant is the turn's deadline.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "turn_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub turn_timeout: Option<Duration>,
    /// How long cancelled work may take to end before it is abandoned.
    #[serde(rename = "cancel_grace_ms", with = "duration_ms")]
    pub cancel_grace: Duration,
    /// Corrective requests of a turn: one budget shared by blocked, empty and malformed replies.
    pub invalid_retries: u32,
    /// Repeated requests after transport failures.
    pub retry: RetryPolicy,
    /// Whether a slice of the budget is held back for one last tool-free request.
    pub reserve_final: bool,
    /// Calls that may run at once; 1 is serial.
    pub max_parallel: u32,
}

/// What happens when a reply asks for more calls than [`Limits::max_tool_calls_per_step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Run the first ones and tell the model that the rest was not run.
    RunFirst,
    /// Run none and stop the turn.
    Stop,
}

/// When and how a failed request is sent again: only retryable failures, only before any output
/// was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Repetitions of one step's request.
    pub max_retries: u32,
    /// The wait before the first.
    #[serde(rename = "base_ms", with = "duration_ms")]
    pub base: Duration,
    /// The longest wait. A provider that asks for more is not retried.
    #[serde(rename = "max_ms", with = "duration_ms")]
    pub max: Duration,
    /// How much of each wait is random, in percent; the wait doubles each time.
    pub jitter_percent: u32,
}
