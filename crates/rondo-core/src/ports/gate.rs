//! The ports to permission: the gate that judges a call, and the approver that asks a person.

use async_trait::async_trait;
use rondo_types::{CallId, SessionId, ToolSpec, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Decides on each call before it runs.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Judges one call, whose arguments already fit the schema.
    async fn check(&self, request: &GateRequest) -> Verdict;
}

/// A call that wants to run.
#[derive(Debug, Clone)]
pub struct GateRequest {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose reply asked for it, from 1.
    pub step: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// The arguments as they would be run.
    pub arguments: Value,
}

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Do not run it; the model reads why.
    Deny {
        /// Why.
        reason: String,
    },
    /// A person must say.
    Ask {
        /// What they are asked.
        prompt: String,
    },
}

/// Puts a question to a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks about one call.
    ///
    /// # Cancel safety
    /// Dropped when the turn is cancelled or its deadline comes; the call is then denied.
    async fn ask(&self, request: &ApprovalRequest) -> Approval;
}

/// A question about one call.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step whose reply asked for it, from 1.
    pub step: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The question.
    pub prompt: String,
    /// Whether [`Approval::Edited`] is an answer to it. A call that was cut off and may run again does
    /// so as it was, or not at all.
    pub can_edit: bool,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "approval", rename_all = "snake_case")]
pub enum Approval {
    /// Run it.
    Approved,
    /// Do not run it; the model reads why.
    Denied {
        /// Why.
        reason: String,
    },
    /// Run it with these arguments instead. The gate is asked whether it denies them, and the model
    /// reads of them with the call's result.
    Edited {
        /// All arguments, as the tool takes them.
        arguments: Value,
    },
}

/// Why a call that was cut off is not run with other arguments.
const NOT_EDITABLE: &str = "a call that was cut off runs again as it was, or not at all";

impl Approval {
    /// Returns whether a call that was cut off runs again, and if not, why.
    pub(crate) fn of_a_repeat(&self) -> (bool, Option<String>) {
        match self {
            Self::Approved => (true, None),
            Self::Denied { reason } => (false, Some(reason.clone())),
            Self::Edited { .. } => (false, Some(NOT_EDITABLE.to_owned())),
        }
    }
}
