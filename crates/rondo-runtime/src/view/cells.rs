//! Items between the turns of a recorded session: Python cells, questions about its folder, and acts of a script.

use super::{Item, TurnView};
use rondo_core::ports::{CellEnding, RecordBody, ScriptCall};
use rondo_types::text::first_line;
use rondo_types::{AnswerValue, TimeMs};
use serde_json::Value;

/// Takes a record of the user's Python session, of a question about the folder, or of a script, into what followed a turn.
pub(super) fn tell(turn: &mut TurnView, body: &RecordBody) {
    match body {
        RecordBody::CellStarted { code, .. } => turn.cells.push(Item::Cell {
            code: code.clone(),
            result: None,
            took_ms: 0,
        }),
        RecordBody::CellFinished {
            ending,
            stdout,
            stderr,
            duration_ms,
            ..
        } => {
            if let Some(Item::Cell {
                result, took_ms, ..
            }) = turn.cells.last_mut()
            {
                *result = Some(shown(ending, stdout, stderr));
                *took_ms = *duration_ms;
            }
        }
        RecordBody::CellsRepeated {
            repeated,
            not_restored,
        } => turn.cells.push(Item::Note {
            text: format!("{repeated} cells were run again, {not_restored} were not restored"),
        }),
        RecordBody::FolderAsked { question } => turn.cells.push(Item::Note {
            text: question
                .prompt
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned(),
        }),
        RecordBody::FolderAnswered { answer } => turn.cells.push(Item::Note {
            text: match &answer.value {
                AnswerValue::Deny { reason } => format!("{}: no, {reason}", answer.actor),
                AnswerValue::Approve | AnswerValue::Value { .. } => {
                    format!("{}: yes", answer.actor)
                }
            },
        }),
        RecordBody::ScriptStarted(run) => {
            let words = [std::slice::from_ref(&run.name), run.arguments.as_slice()].concat();
            let text = format!("`{}` began", words.join(" "));
            turn.script.push(Item::Note { text });
        }
        RecordBody::ScriptCallFinished { call, result } => turn.script.push(Item::Note {
            text: script_call(call, result),
        }),
        RecordBody::ScriptFinished { exit_code, error } => turn.script.push(Item::Note {
            text: match error {
                Some(why) => format!("the script failed: {why}"),
                None => format!("the script ended with exit code {exit_code}"),
            },
        }),
        _ => {}
    }
}

/// Characters of a result that are shown.
const RESULT_CHARS_MAX: usize = 200;

fn script_call(call: &ScriptCall, result: &Value) -> String {
    let branch = match call.branch.is_empty() {
        true => String::new(),
        false => format!(" (branch {})", call.branch),
    };
    let told = match (result.get("ok"), result.get("error")) {
        (_, Some(why)) => format!(" failed: {}", shown_value(why)),
        (None | Some(Value::Null), None) => String::new(),
        (Some(value), None) => format!(" returned {}", shown_value(value)),
    };
    let line = call.line;
    let told = first_line(&told, RESULT_CHARS_MAX);
    format!("line {line}{branch}: `{}`{told}", call.function)
}

/// A text is shown unchanged; an answer of an agent is its text.
fn shown_value(value: &Value) -> String {
    let text = value.as_str().or_else(|| value.get("text")?.as_str());
    text.map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the turn that holds the cells before the first turn, and the actions of a script.
pub(super) fn before_turns(at: TimeMs) -> TurnView {
    TurnView::begun(0, "", at)
}

fn shown(ending: &CellEnding, stdout: &str, stderr: &str) -> String {
    let end = match ending {
        CellEnding::Returned { value_repr } => value_repr.clone().unwrap_or_default(),
        CellEnding::Raised { exc_type, message } => format!("{exc_type}: {message}"),
        CellEnding::Interrupted => "KeyboardInterrupt".to_owned(),
        CellEnding::Lost { message } | CellEnding::NotRun { message } => message.clone(),
    };
    let parts = [stdout.trim_end(), stderr.trim_end(), end.as_str()];
    let parts = parts.into_iter().filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}
