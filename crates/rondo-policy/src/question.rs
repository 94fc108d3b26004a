//! The words of a question about a call.

use crate::analysis::{AllowedDirs, Analysis};
use rondo_core::shown;
use rondo_types::ToolKind;
use rondo_types::text::in_three;
use serde_json::Value;

/// The programs of a command that a question names.
const PROGRAMS_MAX: usize = 12;
/// A command that is longer may not be seen whole, so that its programs are named first.
const LONG_COMMAND_BYTES: usize = 200;
/// The longest program or reason that a question shows whole, in characters.
const WORDS_CHARS_MAX: usize = 200;

/// Returns the question to a person: where, which programs, the whole call, and why.
pub(crate) fn question(
    tool: &str,
    dirs: &AllowedDirs,
    analysis: &Analysis,
    arguments: &Value,
    reason: &str,
) -> String {
    let mut rest = arguments.clone();
    if let Some(fields) = rest.as_object_mut() {
        // It is in the first line.
        fields.shift_remove("working_directory");
    }
    let command = ToolKind::Execute.command_line(arguments);
    let is_long = command
        .as_deref()
        .is_some_and(|it| it.contains('\n') || it.len() > LONG_COMMAND_BYTES);
    let programs = match is_long {
        true => programs(analysis),
        false => String::new(),
    };
    format!(
        "`{tool}` wants to run{programs} in {}\n{}\nReason: {}.",
        shown::line(&dirs.current().display().to_string()),
        shown::call(&rest),
        shown::line(&shortened(reason)),
    )
}

/// Names what a command runs.
fn programs(analysis: &Analysis) -> String {
    let names = analysis.names();
    let first = names.iter().take(PROGRAMS_MAX);
    let mut parts: Vec<String> = first.map(|name| shown::line(&shortened(name))).collect();
    if names.len() > PROGRAMS_MAX {
        parts.push(format!("{} more", names.len() - PROGRAMS_MAX));
    }
    if analysis.has_hidden_names() {
        parts.push("unknown programs".to_owned());
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(" {}", parts.join(", ")),
    }
}

/// Returns a text with its middle left out if it is long.
pub(crate) fn shortened(text: &str) -> String {
    let parts = in_three(text, WORDS_CHARS_MAX);
    parts.map_or(text.to_owned(), |[begin, _, end]| format!("{begin}…{end}"))
}
