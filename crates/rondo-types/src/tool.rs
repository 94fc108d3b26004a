//! Tool specifications and the outcomes of tool calls.

use crate::Media;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The specification of a tool: what the model reads, and what the engine needs to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by. Every provider accepts `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// What it does; written for the model.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its arguments, an object schema.
    pub parameters: Value,
    /// Whether it may change anything outside the conversation.
    pub effects: Effects,
    /// Whether it may run beside other calls of the same step.
    pub concurrency: Concurrency,
    /// What happens after a crash to a call whose start was recorded and whose end was not.
    pub recovery: Recovery,
    /// Whether repeating a call with the same result is expected, as with a tool that polls a
    /// state. The profile's [`LoopGuard`](crate::LoopGuard) does not count such calls; the other
    /// limits apply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
}

/// Whether a tool may change anything outside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// It changes nothing.
    ReadOnly,
    /// It may change something.
    Writes,
}

/// Whether a tool may run beside other calls of the same step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// May run beside other shared calls.
    Shared,
    /// A barrier: runs alone, after all calls before it and before all calls after it.
    Exclusive,
}

/// What a resumed turn does with a call whose start was recorded and whose end was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Run it again. The gate judges the call again, so the user may be asked.
    ReadOnly,
    /// Run it again with the same idempotency key, by which the tool recognises it. The gate judges
    /// the call again.
    Idempotent,
    /// Ask the tool how it ended. A call that was not done, or still runs, runs again or is
    /// continued; one that the tool does not know fails with code `in_doubt`.
    Checkable,
    /// Never run it again. It fails with code `in_doubt`, which the model reads.
    AtMostOnce,
    /// Ask the user whether to run it again.
    Confirm,
}

/// What a resumed turn decided about a call whose start was recorded and whose end was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubtDecision {
    /// It had ended, and the tool returned its outcome.
    Done,
    /// It runs again, or continues, with the same idempotency key.
    Retry,
    /// The user is asked whether to run it again.
    Ask,
    /// It fails with code `in_doubt`, which the model reads.
    Fail,
}

/// Why a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorCode {
    /// The arguments are not JSON, or do not fit the schema.
    InvalidArgs,
    /// No tool has that name.
    UnknownTool,
    /// User code in the Python session raised.
    PythonException,
    /// The tool ran and failed.
    Failed,
    /// The tool ran longer than its timeout.
    Timeout,
    /// The turn was cancelled while the tool ran.
    Cancelled,
    /// The gate or the user denied the call.
    Denied,
    /// The call was not run: a limit was reached, the turn was cancelled first, or it was ignored.
    NotRun,
    /// The call was started, and how it ended is not known.
    InDoubt,
    /// The runtime itself failed.
    Internal,
}

impl ToolErrorCode {
    /// Returns the name of the code in results and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgs => "invalid_args",
            Self::UnknownTool => "unknown_tool",
            Self::PythonException => "python_exception",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::NotRun => "not_run",
            Self::InDoubt => "in_doubt",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ToolErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It succeeded.
    Ok(ToolOutput),
    /// It failed, or was not run.
    Error(ToolError),
}

impl ToolOutcome {
    /// Builds a successful text outcome.
    pub fn text(text: impl Into<String>) -> Self {
        Self::json(Value::String(text.into()))
    }

    /// Builds a successful JSON outcome.
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self::Ok(ToolOutput {
            value,
            ..ToolOutput::default()
        })
    }

    /// Builds a failed outcome without details.
    pub fn error(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self::Error(ToolError {
            code,
            message: message.into(),
            details: Value::Null,
        })
    }

    /// Returns whether the call succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }

    /// Returns the error's code, if it failed.
    #[must_use]
    pub fn code(&self) -> Option<ToolErrorCode> {
        match self {
            Self::Ok(_) => None,
            Self::Error(error) => Some(error.code),
        }
    }
}

/// The output of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The result: a string is text, anything else is JSON. Bounded by the tool.
    pub value: Value,
    /// Images and files that the tool returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the middle of the output was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The path of the file that has the whole output, which the model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

/// The error of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of failure.
    pub code: ToolErrorCode,
    /// What happened; written for the model and the user.
    pub message: String,
    /// Further details: an object, or null. Includes the output that was produced before a timeout.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}
