//! A request to the interpreter's owner, and its reply.

use crate::capture::Texts;
use crate::cell::{LiveOutput, Until};
use crate::error::{SessionError, Stop};
use crate::terminal::CellTerminal;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

/// Something to be done in the interpreter.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) until: Until,
    /// Where its end goes. Who drops the other side has it ended.
    pub(crate) done: oneshot::Sender<Result<Done, SessionError>>,
}

/// What the helper is asked for.
pub(crate) struct Request {
    /// One of its operations.
    pub(crate) operation: &'static str,
    /// Its arguments, by their names.
    pub(crate) arguments: Value,
    /// Where its output is shown.
    pub(crate) live: LiveOutput,
    /// Whether what was written since the last request counts as its output; otherwise that stays
    /// for the next one.
    pub(crate) takes_earlier_output: bool,
    /// Whether what is written meanwhile is its own; that of a look for the prompt is not.
    pub(crate) owns_output: bool,
    /// The user's terminal, where the user runs it.
    pub(crate) terminal: Option<CellTerminal>,
}

/// How a job ended whose interpreter goes on.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) reply: Reply,
    pub(crate) texts: Texts,
    /// What was typed at its terminal.
    pub(crate) typed: Typed,
    /// Why it was stopped, if it was.
    pub(crate) stopped: Option<Stop>,
    /// Whether it is the first in an interpreter that took the place of a lost one.
    pub(crate) is_restarted: bool,
}

/// What was typed while a job ran.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    pub(crate) unread: Vec<u8>,
    pub(crate) has_read: bool,
}

/// What the helper says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    pub(crate) ok: bool,
    /// What it found, where it is well.
    pub(crate) result: Value,
    /// Otherwise the code of the failure, as the design names them.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Value,
    /// Why it was not done: the directory to go to first cannot be entered.
    pub(crate) directory_error: Option<i32>,
    /// Whether it failed because it was interrupted.
    pub(crate) interrupted: bool,
}
