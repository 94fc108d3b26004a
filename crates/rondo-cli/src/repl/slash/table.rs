//! The commands that begin with a slash.

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

/// All of them, in the order in which they are shown.
const TABLE: [Entry; 24] = [
    entry("help", "", "shows this"),
    entry(
        "mode",
        "[NAME]",
        "agent, shell or python; the next one if none is named",
    ),
    entry(
        "model",
        "[NAME]",
        "shows who answers, or has another model answer",
    ),
    entry(
        "profile",
        "[NAME]",
        "shows the limits, tools and wording, or takes others",
    ),
    entry(
        "memory",
        "[on|off]",
        "whether a question knows what was said before it",
    ),
    entry(
        "approve",
        "[PATTERN]",
        "shows what runs without asking, or adds to it",
    ),
    entry(
        "include",
        "FILE",
        "sends a file along with the next question",
    ),
    entry("run", "FILE", "enters the lines of a file"),
    entry("inspect", "NAME", "shows what is known of a Python value"),
    entry("last_error", "", "shows what Python raised last"),
    entry(
        "explain",
        "",
        "asks the agent about the cell that failed last; so does Alt-A",
    ),
    entry("clear", "", "begins a new conversation"),
    entry(
        "compact",
        "[FOCUS]",
        "has all that was said summed up, and goes on from that",
    ),
    entry(
        "undo",
        "",
        "takes back the last turn; files are left as they are",
    ),
    entry(
        "fork",
        "",
        "goes on in a copy and leaves the session as it is",
    ),
    entry("sessions", "", "lists the sessions that are kept"),
    entry(
        "resume",
        "[ID]",
        "carries on a turn that was cut off, or another session",
    ),
    entry(
        "restore",
        "[NUMBER...]",
        "runs the session's Python cells again, to have its variables back",
    ),
    entry("steps", "", "shows the steps of the last turn"),
    entry("trace", "", "shows the last turn in full"),
    entry("cost", "", "shows tokens and money"),
    entry("ps", "", "shows the jobs of the shell"),
    entry(
        "stop",
        "[JOB]",
        "ends a job of the shell; while a turn runs, the turn",
    ),
    entry("quit", "", "leaves; so does Ctrl-D"),
];

const KEYS: &str = "
Tab on an empty line, or Shift-Tab, turns from agent to shell to python and back.
Alt-Enter begins another line. Ctrl-R searches what was typed before.
While a turn runs, a line that you enter is said to it before its next step.
";

/// Returns every name.
pub(in crate::repl) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

/// Returns whether a command has that name.
pub(in crate::repl) fn is_name(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns what `/help` shows.
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
