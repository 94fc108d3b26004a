//! Commands of the script's own, questions to its user, and pages of the web.

use super::Functions;
use super::files::IN_DOUBT;
use crate::error::{CallError, ScriptError};
use crate::host::UserQuestion;
use crate::ledger::{KeptPart, NextCall};
use crate::shared::{Shared, to_lua};
use mlua::Table;
use rondo_core::ports::OutputSink;
use rondo_runtime::script::Interrupted;
use rondo_types::{CallId, ToolError, ToolErrorCode, ToolOutcome};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Note that a command that was ended with its script is not repeated.
const CUT_OFF: &str =
    "it was ended when the script was stopped, before it was done; it is not repeated";

/// Adds the functions.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    to.waiting(
        "exec",
        "rondo.exec",
        |shared, lua, at, (command, options): (String, Table)| async move {
            let arguments = arguments(command, &options)?;
            let is_live: bool = options.get::<Option<bool>>("live")?.unwrap_or_default();
            let evidence = async |call: &CallId| {
                let evidence = shared.session.command_evidence(call, &arguments).await;
                evidence.ok().flatten()
            };
            let make = async |made| exec(&shared, &arguments, is_live, made).await;
            let call = shared.call_with_evidence(
                &at,
                "rondo.exec",
                &arguments,
                KeptPart::Effect,
                evidence,
                make,
            );
            Ok(to_lua(&lua, &call.await?)?)
        },
    )?;
    questions(to)
}

fn questions(to: &Functions<'_>) -> mlua::Result<()> {
    to.waiting(
        "question",
        "rondo.ask",
        |shared, lua, at, (text, options): (String, Table)| async move {
            let question = UserQuestion {
                text,
                choices: options
                    .get::<Option<Vec<String>>>("choices")?
                    .unwrap_or_default(),
                default: options.get("default")?,
            };
            let arguments = json!([question.text, question.choices]);
            let call = shared.call(&at, "rondo.ask", &arguments, KeptPart::Result, async |_| {
                tokio::select! {
                    biased;
                    () = shared.cancel.cancelled() => Err(CallError::end(ScriptError::Stopped)),
                    answer = shared.host.ask(&question) => {
                        answer.map(Value::String).map_err(CallError::Failed)
                    }
                }
            });
            Ok(to_lua(&lua, &call.await?)?)
        },
    )?;
    to.waiting(
        "fetch",
        "rondo.http.get",
        |shared, lua, at, url: String| async move {
            let arguments = json!(url);
            let call = shared.call(
                &at,
                "rondo.http.get",
                &arguments,
                KeptPart::Look,
                async |made| {
                    let cancel = shared.cancel.child_token();
                    match shared.session.page(&made.id, &url, cancel).await? {
                        ToolOutcome::Ok(output) => Ok(output.value),
                        ToolOutcome::Error(error) => Err(CallError::failed(error.message)),
                    }
                },
            );
            Ok(to_lua(&lua, &call.await?)?)
        },
    )
}

fn arguments(command: String, options: &Table) -> Result<Value, CallError> {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), Value::String(command));
    if let Some(cwd) = options.get::<Option<String>>("cwd")? {
        arguments.insert("working_directory".to_owned(), Value::String(cwd));
    }
    if let Some(timeout) = options.get::<Option<f64>>("timeout")? {
        arguments.insert("timeout".to_owned(), json!(timeout));
    }
    Ok(Value::Object(arguments))
}

async fn exec(
    shared: &Arc<Shared>,
    arguments: &Value,
    is_live: bool,
    made: NextCall,
) -> Result<Value, CallError> {
    let outcome = match made.begun {
        None => None,
        Some(evidence) => {
            let found = shared
                .session
                .command_after_crash(&made.id, arguments.clone(), evidence);
            match found.await? {
                Interrupted::Done(ToolOutcome::Error(error))
                    if error.code == ToolErrorCode::Cancelled =>
                {
                    return Err(CallError::failed(CUT_OFF));
                }
                Interrupted::Done(outcome) => Some(outcome),
                Interrupted::Again => None,
                Interrupted::Unknown => return Err(CallError::failed(IN_DOUBT)),
            }
        }
    };
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => {
            let host = Arc::clone(&shared.host);
            let live = match is_live {
                true => OutputSink::new(move |text| host.stderr(text.as_bytes())),
                false => OutputSink::discard(),
            };
            let (cancel, arguments) = (shared.cancel.child_token(), arguments.clone());
            shared
                .session
                .command(&made.id, arguments, live, cancel)
                .await?
        }
    };
    result(shared, outcome)
}

/// Returns the result of a command for the script.
fn result(shared: &Shared, outcome: ToolOutcome) -> Result<Value, CallError> {
    match outcome {
        ToolOutcome::Error(error)
            if error.code == ToolErrorCode::Cancelled && shared.cancel.is_cancelled() =>
        {
            Err(CallError::end(ScriptError::Stopped))
        }
        ToolOutcome::Error(error) if was_not_run(&error) => Err(CallError::NotDone(error.message)),
        outcome => told(outcome),
    }
}

/// Returns whether a command did not run at all: of one that did, there are details, or it is in doubt.
fn was_not_run(error: &ToolError) -> bool {
    let is_refusal = matches!(
        error.code,
        ToolErrorCode::InvalidArgs | ToolErrorCode::Failed | ToolErrorCode::Internal
    );
    is_refusal && error.details.is_null()
}

/// Returns the result of a command for Lua, whether it ended by itself or at its time.
pub(crate) fn told(outcome: ToolOutcome) -> Result<Value, CallError> {
    let told = match outcome {
        ToolOutcome::Ok(output) => output.value,
        ToolOutcome::Error(error) if error.code == ToolErrorCode::Timeout => error.details,
        ToolOutcome::Error(error) => return Err(CallError::failed(error.message)),
    };
    // A failure to run is returned as a text.
    if let Value::String(why) = told {
        return Err(CallError::Failed(why));
    }
    let code = told.get("exitCode").cloned().unwrap_or(Value::Null);
    let stdout = told
        .get("stdout")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(json!({
        "stdout": stdout.replace("\r\n", "\n"),
        "stderr": "",
        "ok": code == json!(0),
        "exit_code": code,
        "signal": told.get("signal"),
        "timed_out": told.get("timed_out").is_some(),
        "truncated": told.get("truncated").is_some(),
    }))
}
