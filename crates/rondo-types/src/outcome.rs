//! How a turn ended.

use crate::{CallId, FinishReason, ModelError, NanoUsd, ToolContent, Transcript, Usage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a turn ended, whatever happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer; on an early stop, what was found.
    pub text: String,
    /// Why the turn ended.
    pub stop_reason: StopReason,
    /// Who was asked last, `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer is less than what the model would have given.
    pub degraded: bool,
    /// Whether the text is the model's own rather than built from findings.
    pub answered: bool,
    /// The successful tool results of the turn, digested.
    pub findings: Vec<Finding>,
    /// Tokens of the turn.
    pub usage: Usage,
    /// Money of the turn, where the price is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "cost_nanousd"
    )]
    pub cost: Option<NanoUsd>,
    /// Model requests made.
    pub steps: u32,
    /// Tool calls run.
    pub tool_calls: u32,
    /// Wall time of the turn, in milliseconds.
    pub elapsed_ms: u64,
    /// Why the model ended its last reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// What failed, when something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelError>,
    /// Steering messages that came too late for the model: the caller's to say again.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "unheard")]
    pub undelivered_steering: Vec<String>,
    /// The session's messages, this turn's included; every call has its result.
    pub transcript: Transcript,
}

/// Why a turn ended: one closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    Complete,
    /// No model request was left.
    MaxSteps,
    /// No tool call was left, or one reply asked for too many.
    MaxToolCalls,
    /// No tokens were left.
    MaxTokens,
    /// No money was left.
    MaxCost,
    /// One step took too long.
    StepTimeout,
    /// The turn took too long.
    Deadline,
    /// The model's replies could not be used.
    InvalidResponse,
    /// The model repeated itself without learning anything.
    NoProgress,
    /// The model or its provider refused.
    Refused,
    /// Somebody stopped the turn.
    Cancelled,
    /// A model request failed.
    Error,
}

impl StopReason {
    /// Returns the reason as it is written in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::MaxSteps => "max_steps",
            Self::MaxToolCalls => "max_tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::MaxCost => "max_cost",
            Self::StepTimeout => "step_timeout",
            Self::Deadline => "deadline",
            Self::InvalidResponse => "invalid_response",
            Self::NoProgress => "no_progress",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One successful tool result, digested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The call it came from.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments, cut to 200 characters.
    pub arguments: String,
    /// The result, cut to 1,000 characters by leaving out its middle.
    pub digest: String,
}

impl Finding {
    /// The bound on [`Finding::arguments`], in characters.
    pub const ARGUMENTS_CHARS_MAX: usize = 200;
    /// The bound on [`Finding::digest`], in characters.
    pub const DIGEST_CHARS_MAX: usize = 1000;

    /// Digests a result.
    #[must_use]
    pub fn new(call_id: CallId, tool: String, arguments: &str, content: &ToolContent) -> Self {
        Self {
            call_id,
            tool,
            arguments: middle_cut(arguments, Self::ARGUMENTS_CHARS_MAX),
            digest: middle_cut(content.to_text().trim(), Self::DIGEST_CHARS_MAX),
        }
    }
}

/// Keeps two thirds of the bound from the head and the rest from the tail.
fn middle_cut(text: &str, chars_max: usize) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let head = chars_max * 2 / 3;
    let tail = chars_max - head - 1;
    text.chars()
        .take(head)
        .chain(std::iter::once('…'))
        .chain(text.chars().skip(count - tail))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_keeps_head_and_tail() {
        let text = format!("{}{}", "a".repeat(2000), "z".repeat(2000));
        let finding = Finding::new(
            CallId::new("c"),
            "exec".into(),
            "{}",
            &ToolContent::Text(text),
        );
        assert_eq!(finding.digest.chars().count(), Finding::DIGEST_CHARS_MAX);
        assert!(finding.digest.starts_with('a') && finding.digest.ends_with('z'));
    }
}
