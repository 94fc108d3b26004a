//! Tools: what a model is told of them, and the outcomes of their calls.

use crate::Media;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What a model is told of a tool, and what the engine must know to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by; `[A-Za-z_][A-Za-z0-9_-]{0,63}` is accepted everywhere.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its arguments, an object schema.
    pub parameters: Value,
    /// Whether it changes anything outside.
    pub effects: Effects,
    /// Whether it may run beside other calls of the same step.
    pub concurrency: Concurrency,
    /// What happens to a call that was started and whose end was not recorded.
    pub recovery: Recovery,
    /// Whether it is progress to make the same call again and read the same result, as with a tool
    /// that asks for the state of something: its calls do not count for the profile's
    /// [`LoopGuard`](crate::LoopGuard). The other limits hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
}

/// Whether a tool changes anything outside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// It only looks.
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

/// What recovery does with a call that was started and whose end was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Run it again silently.
    ReadOnly,
    /// Run it again with the same idempotency key.
    Idempotent,
    /// Ask the tool whether it was done.
    Checkable,
    /// Never run it again; tell the model that it is in doubt.
    AtMostOnce,
    /// Ask a person.
    Confirm,
}

/// What is done about a call that was started before a crash and whose end was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubtDecision {
    /// It had ended; its tool found out how.
    Done,
    /// It runs again, or goes on, with the same key.
    Retry,
    /// A person is asked whether it shall run again.
    Ask,
    /// It counts as failed with code `in_doubt`, which the model reads.
    Fail,
}

/// The closed set of reasons why a tool call has no good result.
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
    /// The tool ran longer than it may.
    Timeout,
    /// The turn was cancelled while the tool ran.
    Cancelled,
    /// The gate or a person said no.
    Denied,
    /// The call was not run: a limit, a cancel before it started, an ignored call.
    NotRun,
    /// The call was started and nobody knows how it ended.
    InDoubt,
    /// The runtime itself failed.
    Internal,
}

impl ToolErrorCode {
    /// Returns the code as it is written in results and events.
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
    /// It has a result.
    Ok(ToolOutput),
    /// It has none.
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

    /// Returns whether the call has a result.
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

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The result: a string is text, anything else is JSON. Bounded by the tool.
    pub value: Value,
    /// Images and files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the middle of the output was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The path of the file that holds the whole output, which the model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

/// Why a tool call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// What kind of failure it is.
    pub code: ToolErrorCode,
    /// What happened, for the model and for people.
    pub message: String,
    /// Whatever else is known: an object, or null. Output produced before a timeout stands here.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}
