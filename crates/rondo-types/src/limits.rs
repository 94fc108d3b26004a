//! The limits of a turn.

use crate::NanoUsd;
use crate::time::{duration_ms, optional_duration_ms};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that bounds a turn. Immutable while it runs; no tool, provider or prompt can raise it.
///
/// An absent limit is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model requests of a turn: corrective requests, summaries and the final request count,
    /// retries and fallbacks of the same request do not. At least 1.
    pub max_steps: u32,
    /// Tool calls in one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls_per_step: Option<u32>,
    /// Treatment of a reply with more calls than `max_tool_calls_per_step`.
    pub overflow: Overflow,
    /// Tool calls of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tokens of a turn, prompt and generated together, over all its requests; `limits.max_tokens` in the
    /// settings. One reply is bounded by [`Sampling::max_output_tokens`](crate::Sampling::max_output_tokens).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "max_tokens"
    )]
    pub max_tokens_total: Option<u64>,
    /// Cost of a turn, over all its requests.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "max_cost_nanousd"
    )]
    pub max_cost: Option<NanoUsd>,
    /// The longest time from sending a request to the end of its reply.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "step_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub step_timeout: Option<Duration>,
    /// The longest time from sending a request to the first content of its reply.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "first_byte_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub first_byte_timeout: Option<Duration>,
    /// The longest time between two pieces of content.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "idle_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub idle_timeout: Option<Duration>,
    /// The longest time that one tool call may run.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "tool_timeout_ms",
        with = "optional_duration_ms"
    )]
    pub tool_timeout: Option<Duration>,
    /// The longest time from the start of the turn to its end; the turn's deadline is its start plus this.
    /// The command line's `--deadline` sets it.
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
    /// How failed requests are retried.
    pub retry: RetryPolicy,
    /// Reserves a part of the budget for one last request without tools.
    pub reserve_final: bool,
    /// Tool calls that may run at once; 1 runs them one after another.
    pub max_parallel: u32,
}

/// Treatment of a reply with more calls than [`Limits::max_tool_calls_per_step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Run the first ones and tell the model that the rest was not run.
    RunFirst,
    /// Run none and stop the turn.
    Stop,
}

/// When a failed request is sent again. Only retryable failures are retried, and only if nothing of the
/// reply has been shown. The numbers are `[limits.retry]` of the profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Retries of one request; each fallback model starts again from zero.
    pub max_retries: u32,
    /// The wait before the first retry; it doubles with each further one.
    #[serde(rename = "base_ms", with = "duration_ms")]
    pub base: Duration,
    /// The longest wait. When the provider asks for a longer one, the request is not retried.
    #[serde(rename = "max_ms", with = "duration_ms")]
    pub max: Duration,
    /// The most that is randomly added to each wait, in percent of it; `max` still holds.
    pub jitter_percent: u32,
}
