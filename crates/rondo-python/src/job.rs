//! A request to the interpreter's owner, and its reply.

use crate::capture::Texts;
use crate::cell::{CellLimits, LiveOutput};
use crate::error::{SessionError, Stop};
use crate::terminal::CellTerminal;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

/// Something to be done in the interpreter.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) until: CellLimits,
    /// Receiver of the result. The job is interrupted if the other side is dropped.
    pub(crate) done: oneshot::Sender<Result<FinishedJob, SessionError>>,
}

/// Request to the helper.
pub(crate) struct Request {
    /// One of its operations.
    pub(crate) operation: &'static str,
    /// Its arguments, by their names.
    pub(crate) arguments: Value,
    /// Destination of live output.
    pub(crate) live: LiveOutput,
    /// Counts output since the last request as its own; otherwise that stays
    /// for the next one.
    pub(crate) takes_earlier_output: bool,
    /// Set if output meanwhile is its own; that of a look for the prompt is not.
    pub(crate) owns_output: bool,
    /// The user's terminal, if the user runs it.
    pub(crate) terminal: Option<CellTerminal>,
}

/// How a job ended whose interpreter continues.
#[derive(Debug)]
pub(crate) struct FinishedJob {
    pub(crate) reply: Reply,
    pub(crate) texts: Texts,
    /// Input at its terminal.
    pub(crate) typed: TypedInput,
    /// Why it was stopped, if it was.
    pub(crate) stopped: Option<Stop>,
    /// Set if it is the first in an interpreter that replaced a lost one.
    pub(crate) is_restarted: bool,
}

/// Input that was typed while a job ran.
#[derive(Debug, Default)]
pub(crate) struct TypedInput {
    pub(crate) unread: Vec<u8>,
    pub(crate) has_read: bool,
}

/// Reply of the helper.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    pub(crate) ok: bool,
    /// Result, if it succeeded.
    pub(crate) result: Value,
    /// Otherwise the code of the failure, as the design names them.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Value,
    /// Why it was not done: the directory to go to first cannot be entered.
    pub(crate) directory_error: Option<i32>,
    /// Set if it failed because it was interrupted.
    pub(crate) interrupted: bool,
}
