//! The result of a command as the model reads it.

use crate::denial;
use crate::follow::StopCause;
use rondo_launch::{CallStatus, Exceeded, Prompt, StartError};
use rondo_types::units::seconds;
use rondo_types::{ToolError, ToolErrorCode, ToolOutcome, ToolOutput};
use serde_json::{Map, Value};
use std::error::Error as _;
use std::time::Duration;

/// Why a call has no status.
pub(crate) type Refusal = Box<ToolError>;

/// How long a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    /// The bound that counts.
    pub(crate) limit: Duration,
    /// Requested time limit, if it exceeds the allowed one.
    pub(crate) asked: Option<Duration>,
}

impl TimeLimit {
    /// Describes the time limit that the command exceeded.
    fn exceeded(self) -> String {
        let limit = seconds(self.limit);
        match self.asked {
            Some(asked) => format!(
                "the command exceeded its time limit of {limit} and was ended; `timeout` asked for {}, and a call may take no \
                 longer than that limit here (`limits.tool_timeout_ms` of the profile, or what is left of the turn)",
                seconds(asked)
            ),
            None => format!("the command exceeded its time limit of {limit} and was ended"),
        }
    }
}

/// Returns the outcome of a call whose command has ended.
///
/// `time` is unknown of a command that an earlier process started.
pub(crate) fn outcome(status: CallStatus, time: Option<TimeLimit>) -> ToolOutcome {
    let truncated = status.omitted_bytes > 0;
    let spill = status
        .full_output
        .as_ref()
        .map(|path| path.display().to_string());
    let is_cut_short = status.timed_out || status.cancelled || status.exit_code.is_none();
    let (timed_out, exceeded) = (status.timed_out, status.exceeded);
    let value = render(status, spill.as_ref());
    if let Some(exceeded) = exceeded {
        return ToolOutcome::Error(ToolError {
            code: ToolErrorCode::Failed,
            message: of_exceeded(exceeded),
            details: value,
            used: None,
        });
    }
    if !is_cut_short {
        return ToolOutcome::Ok(ToolOutput {
            value,
            truncated,
            spill,
            ..ToolOutput::default()
        });
    }
    let cut = match timed_out {
        true => StopCause::TimedOut,
        false => StopCause::Cancelled,
    };
    let (code, message) = said(cut, time);
    ToolOutcome::Error(ToolError {
        code,
        message,
        details: value,
        used: None,
    })
}

/// Describes the limit that ended a command.
fn of_exceeded(exceeded: Exceeded) -> String {
    match exceeded {
        Exceeded::Memory(bytes) => format!(
            "the command was ended because its processes used more than {} MiB of memory",
            bytes >> 20
        ),
        Exceeded::Processes(count) => {
            format!("the command was ended because it started more than {count} processes")
        }
    }
}

fn said(cut: StopCause, time: Option<TimeLimit>) -> (ToolErrorCode, String) {
    match cut {
        StopCause::TimedOut => {
            let unknown = || "the command exceeded its time limit and was ended".to_owned();
            let message = time.map_or_else(unknown, TimeLimit::exceeded);
            (ToolErrorCode::Timeout, message)
        }
        StopCause::Cancelled => (
            ToolErrorCode::Cancelled,
            "the command was ended before it was finished".to_owned(),
        ),
    }
}

/// Returns the outcome of a call whose command was ended without its supervisor.
pub(crate) fn cut_off(cut: StopCause, time: TimeLimit) -> Refusal {
    let (code, message) = said(cut, Some(time));
    refusal(code, message)
}

fn render(status: CallStatus, spill: Option<&String>) -> Value {
    let denial = denial::said(&status);
    let mut result = Map::new();
    result.insert("stdout".to_owned(), Value::String(status.stdout));
    if let Some(code) = status.exit_code {
        result.insert("exitCode".to_owned(), code.into());
    }
    if let Some(signal) = status.signal {
        result.insert("signal".to_owned(), signal.into());
    }
    if status.omitted_bytes > 0 {
        result.insert("truncated".to_owned(), true.into());
    }
    if let Some(path) = spill {
        result.insert("full_output".to_owned(), path.clone().into());
    }
    if status.timed_out {
        result.insert("timed_out".to_owned(), true.into());
    }
    if status.survivors {
        result.insert("survivors".to_owned(), true.into());
    }
    let notes = status.prompts.iter().map(prompted);
    let left = (status.left_running > 0).then(|| left_running(status.left_running));
    let notes: Vec<String> = notes.chain(left).collect();
    if !notes.is_empty() {
        result.insert("note".to_owned(), notes.join("\n").into());
    }
    if let Some(said) = denial {
        result.insert("sandbox".to_owned(), said.into());
    }
    Value::Object(result)
}

/// Names the program that wanted input from a user.
fn prompted(prompt: &Prompt) -> String {
    let Prompt { program, text, .. } = prompt;
    let shown = match text.is_empty() {
        true => String::new(),
        false => format!(", after the line `{text}`"),
    };
    match prompt.is_ended {
        true => format!(
            "`{program}` waited for key presses on the terminal{shown}, which has no user, and was ended. Run it without its full screen, or run another program"
        ),
        false => format!(
            "`{program}` waited for input on the terminal{shown}, which has no user, and was given the end of input. Pass the input as an option, a file or a variable"
        ),
    }
}

/// Describes the processes that the model may take for running.
fn left_running(count: u32) -> String {
    let what = match count {
        1 => "a process running, which was ended with it".to_owned(),
        _ => format!("{count} processes running, which were ended with it"),
    };
    format!("the command left {what}: nothing keeps running in the background after a call")
}

/// Returns the outcome of a call whose command was not run.
pub(crate) fn could_not_run(err: &StartError) -> Refusal {
    let cause = err
        .source()
        .map_or_else(String::new, |cause| format!(": {cause}"));
    let code = match err {
        StartError::Cancelled => return refusal(ToolErrorCode::Cancelled, err.to_string()),
        StartError::Refused(_) | StartError::TooLong => ToolErrorCode::Failed,
        StartError::NoSupervisor
        | StartError::NotAbsolute(_)
        | StartError::Spawn(_)
        | StartError::Lost(_) => ToolErrorCode::Internal,
    };
    refusal(code, format!("Error executing command: {err}{cause}"))
}

pub(crate) fn refusal(code: ToolErrorCode, message: impl Into<String>) -> Refusal {
    Box::new(ToolError {
        code,
        message: message.into(),
        details: Value::Null,
        used: None,
    })
}

pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
    refusal(ToolErrorCode::InvalidArgs, message)
}

pub(crate) fn internal(message: &str) -> Refusal {
    refusal(ToolErrorCode::Internal, message)
}
