//! Converts the result of a job to a tool outcome, which the model reads.

use crate::capability::Capability;
use crate::error::{SessionError, Stop, TOLD};
use crate::job::{FinishedJob, Reply};
use rondo_core::ports::CellEnding;
use rondo_types::{ToolError, ToolErrorCode, ToolOutcome, ToolOutput};
use serde_json::{Map, Value, json};
use std::error::Error as _;

/// Note with the first result of an interpreter that replaced a lost one, if
/// the function's result has room for a note.
const RESTARTED: &str =
    "a new interpreter was started, as the last one was lost: earlier variables are gone";

pub(crate) fn of(capability: Capability, ended: Result<FinishedJob, SessionError>) -> ToolOutcome {
    match ended {
        Ok(done) => of_done(capability, done),
        Err(SessionError::Lost(loss)) => {
            let code = loss.stopped.map_or(ToolErrorCode::Failed, code_of);
            let details = json!({ "stdout": loss.stdout, "stderr": loss.stderr });
            error(code, loss.to_string(), details)
        }
        Err(SessionError::NotRun(stop)) => error(
            code_of(stop),
            SessionError::NotRun(stop).to_string(),
            Value::Null,
        ),
        Err(SessionError::TooLong { max }) => invalid(SessionError::TooLong { max }.to_string()),
        Err(failure) => error(ToolErrorCode::Failed, with_cause(&failure), Value::Null),
    }
}

/// Reads the outcome of code from what a model was told of it by `run_code` or `eval_expr`, as is
/// recorded of a call. None if it did not run.
#[must_use]
pub fn ending_of(outcome: &ToolOutcome) -> Option<CellEnding> {
    let error = match outcome {
        ToolOutcome::Ok(output) => {
            let told = output.value.get("value_repr").and_then(Value::as_str);
            // A cell has no value where an expression has `None`.
            let value_repr = told.filter(|it| *it != "None").map(str::to_owned);
            return Some(CellEnding::Returned { value_repr });
        }
        ToolOutcome::Error(error) => error,
    };
    if let Some(how) = error.message.strip_suffix(TOLD) {
        let message = how.to_owned();
        return Some(CellEnding::Lost { message });
    }
    match error.code {
        ToolErrorCode::PythonException => {
            let text = |name: &str| {
                let text = error.details.get(name).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            Some(CellEnding::Raised {
                exc_type: text("exc_type"),
                message: text("message"),
            })
        }
        ToolErrorCode::Timeout | ToolErrorCode::Cancelled => Some(CellEnding::Interrupted),
        _ => None,
    }
}

/// Returns whether code ran in an interpreter that took the place of a lost one, as `run_code` says.
#[must_use]
pub fn is_after_loss(outcome: &ToolOutcome) -> bool {
    let note = match outcome {
        ToolOutcome::Ok(output) => output.value.get("note"),
        ToolOutcome::Error(error) => error.details.get("note"),
    };
    note.and_then(Value::as_str) == Some(RESTARTED)
}

pub(crate) fn invalid(message: String) -> ToolOutcome {
    error(ToolErrorCode::InvalidArgs, message, Value::Null)
}

fn of_done(capability: Capability, mut done: FinishedJob) -> ToolOutcome {
    if capability == Capability::RunCode && done.reply.ok {
        done.reply = of_cell(done.reply);
    }
    if let Some(stop) = done.stopped.filter(|_| done.reply.interrupted) {
        return interrupted(stop, &done);
    }
    if done.reply.ok {
        return found(capability, done);
    }
    let code = match done.reply.code.as_str() {
        "invalid_args" => ToolErrorCode::InvalidArgs,
        "python_exception" => ToolErrorCode::PythonException,
        _ => ToolErrorCode::Internal,
    };
    let mut details = done.reply.details;
    if let (Capability::RunCode, Some(fields)) = (capability, details.as_object_mut()) {
        fields.insert("stdout".to_owned(), json!(done.texts.stdout));
        fields.insert("stderr".to_owned(), json!(done.texts.stderr));
        note_restart(fields, done.is_restarted);
    }
    error(code, done.reply.message, details)
}

/// A cell's exception is part of its result, for a prompt; for a model it is a failure.
fn of_cell(reply: Reply) -> Reply {
    let Some(exception) = reply.result.get("exception").filter(|it| !it.is_null()) else {
        return reply;
    };
    let text = |name: &str| {
        exception
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let message = match text("message") {
        "" => text("exc_type").to_owned(),
        message => format!("{}: {message}", text("exc_type")),
    };
    let interrupted = reply.result.get("interrupted") == Some(&Value::Bool(true));
    Reply {
        ok: false,
        code: "python_exception".to_owned(),
        message,
        details: exception.clone(),
        interrupted,
        ..Reply::default()
    }
}

fn interrupted(stop: Stop, done: &FinishedJob) -> ToolOutcome {
    let message = format!("the code was interrupted: {stop}; the session keeps its variables");
    let traceback = done.reply.details.get("traceback").cloned();
    let details = json!({
        "traceback": traceback,
        "stdout": done.texts.stdout,
        "stderr": done.texts.stderr,
    });
    error(code_of(stop), message, details)
}

fn found(capability: Capability, done: FinishedJob) -> ToolOutcome {
    let mut value = done.reply.result;
    if let Some(fields) = value.as_object_mut() {
        match capability {
            Capability::EvalExpr => add_output(fields, &done.texts.stdout, &done.texts.stderr),
            Capability::RunCode => {
                fields.retain(|name, _| name == "value_repr");
                add_output(fields, &done.texts.stdout, &done.texts.stderr);
                note_restart(fields, done.is_restarted);
            }
            Capability::Inspect => note_restart(fields, done.is_restarted),
            _ => {}
        }
    }
    ToolOutcome::Ok(ToolOutput {
        value,
        truncated: capability.runs_code() && done.texts.is_truncated,
        ..ToolOutput::default()
    })
}

fn add_output(fields: &mut Map<String, Value>, stdout: &str, stderr: &str) {
    fields.insert("stdout".to_owned(), json!(stdout));
    fields.insert("stderr".to_owned(), json!(stderr));
}

fn note_restart(fields: &mut Map<String, Value>, is_restarted: bool) {
    if is_restarted {
        fields.insert("note".to_owned(), json!(RESTARTED));
    }
}

fn code_of(stop: Stop) -> ToolErrorCode {
    match stop {
        Stop::Deadline => ToolErrorCode::Timeout,
        Stop::Cancelled | Stop::Unwanted => ToolErrorCode::Cancelled,
    }
}

fn error(code: ToolErrorCode, message: String, details: Value) -> ToolOutcome {
    ToolOutcome::Error(ToolError {
        code,
        message,
        details,
        used: None,
    })
}

fn with_cause(error: &SessionError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
