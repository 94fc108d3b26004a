//! Python cells of a recorded session.

use super::{Item, Turn};
use rondo_core::ports::{CellEnding, RecordBody};
use rondo_types::TimeMs;

/// Takes a record of the user's Python session into what followed a turn.
pub(super) fn tell(turn: &mut Turn, body: &RecordBody) {
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
        _ => {}
    }
}

/// Returns what holds the cells that were run before the first turn.
pub(super) fn before_turns(at: TimeMs) -> Turn {
    Turn::begun(0, "", at)
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
