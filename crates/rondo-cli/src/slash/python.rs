//! The live Python session.

use super::{Context, wrong};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::repl::GO_ELSEWHERE;
use rondo_python::{Capability, CellLimits, Session, SessionError};
use rondo_runtime::sanitize::plain;
use rondo_tui::prompt::reply::{Reply, ReplyText};
use rondo_types::ToolOutcome;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Shows the exception that was raised last.
///
/// # Errors
/// When the interpreter cannot be asked.
pub(super) async fn last_error(context: &Context) -> Result<Reply> {
    let last = session(context)?.last_exception().await.map_err(failed)?;
    Ok(match last {
        Some(exception) => Reply {
            shown: ReplyText::Traceback(plain(exception.traceback.trim_end())),
            change: None,
        },
        None => Reply::words("no cell raised an exception"),
    })
}

/// Shows the documentation of an expression.
///
/// # Errors
/// When there is no expression.
pub(super) async fn inspect(expression: &str, context: &Context) -> Result<Reply> {
    if expression.is_empty() {
        return Err(wrong("`/inspect` takes a name"));
    }
    let arguments = json!({"expr": expression});
    let told = session(context)?
        .call(Capability::Inspect, &arguments, CellLimits::default())
        .await;
    Ok(Reply {
        shown: ReplyText::Lines(inspected(&told).trim_end().to_owned()),
        change: None,
    })
}

/// Returns the live Python session.
pub(super) fn session(context: &Context) -> Result<&Session> {
    context.python.as_deref().ok_or_else(no_session)
}

/// The error of a command that needs the live Python session.
fn no_session() -> CliError {
    wrong("there is no live Python session")
}

/// Converts an error of the live Python session.
pub(crate) fn failed(err: SessionError) -> CliError {
    let hint = matches!(err, SessionError::Directory { .. }).then(|| GO_ELSEWHERE.to_owned());
    CliError {
        hint,
        ..CliError::caused(Exit::Error, anyhow::Error::new(err))
    }
}

/// Returns the documentation of a value, part by part.
fn inspected(told: &ToolOutcome) -> String {
    let parts = match told {
        ToolOutcome::Ok(output) => output.value.as_object(),
        ToolOutcome::Error(error) => return format!("{}\n", error.message),
    };
    let mut text = String::new();
    for (name, part) in parts.into_iter().flatten() {
        let shown = match part.get("qualified").or(part.get(name)).unwrap_or(part) {
            Value::Null => continue,
            Value::String(shown) => shown.trim_end().to_owned(),
            Value::Array(items) => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                items.join(" ")
            }
            other => other.to_string(),
        };
        let gap = if shown.contains('\n') { "\n" } else { " " };
        let _ = writeln!(text, "{name}:{gap}{shown}");
    }
    text
}
