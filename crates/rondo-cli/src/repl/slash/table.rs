//! The slash commands.

use std::fmt::Write as _;

/// A command of the prompt.
struct Entry {
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
}

const fn entry(name: &'static str, arguments: &'static str, does: &'static str) -> Entry {
    Entry {
        name,
        arguments,
        does,
    }
}

/// All commands, in display order.
const TABLE: [Entry; 24] = [
    entry("help", "", "show this help"),
    entry(
        "mode",
        "[NAME]",
        "switch to agent, shell or python, or to the next mode",
    ),
    entry("model", "[NAME]", "show or change the model"),
    entry(
        "profile",
        "[NAME]",
        "show or change the profile: limits, tools and prompt",
    ),
    entry(
        "memory",
        "[on|off]",
        "whether a question includes the conversation before it",
    ),
    entry(
        "approve",
        "[PATTERN]",
        "show or extend the list of what runs without asking",
    ),
    entry("include", "FILE", "attach a file to the next question"),
    entry("run", "FILE", "enter the lines of a file at the prompt"),
    entry("inspect", "NAME", "inspect a Python value"),
    entry("last_error", "", "show the last Python exception"),
    entry(
        "explain",
        "",
        "ask the agent about the last failed cell (or press Alt-A)",
    ),
    entry("clear", "", "start a new conversation"),
    entry(
        "compact",
        "[FOCUS]",
        "replace the conversation with a summary of it",
    ),
    entry("undo", "", "undo the last turn; files are not changed"),
    entry("fork", "", "continue in a copy of the session"),
    entry("sessions", "", "list recorded sessions"),
    entry(
        "resume",
        "[ID]",
        "resume an interrupted turn, or continue another session",
    ),
    entry(
        "restore",
        "[NUMBER...]",
        "run the session's Python cells again to restore its variables",
    ),
    entry("steps", "", "show the steps of the last turn"),
    entry("trace", "", "show the last turn in full"),
    entry("cost", "", "show tokens and cost"),
    entry("ps", "", "list the shell's jobs"),
    entry(
        "stop",
        "[JOB]",
        "stop a job of the shell, or the running turn",
    ),
    entry("quit", "", "quit (or press Ctrl-D)"),
];

const KEYS: &str = "
Tab on an empty line, or Shift-Tab, switches between agent, shell and python.
Alt-Enter starts a new line. Ctrl-R searches the history.
While a turn runs, a line that you enter is delivered before its next step.
";

/// Returns every name.
pub(in crate::repl) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

/// Returns whether a command has that name.
pub(in crate::repl) fn is_name(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns the text of `/help`.
pub(super) fn help() -> String {
    let spelled = |entry: &Entry| format!("/{} {}", entry.name, entry.arguments);
    let widths = TABLE.iter().map(|entry| spelled(entry).len());
    let width = widths.max().unwrap_or_default();
    let mut text = String::new();
    for entry in &TABLE {
        let _ = writeln!(text, "{:width$}  {}", spelled(entry), entry.does);
    }
    text + KEYS
}
