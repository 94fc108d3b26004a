//! The table of slash commands: `/help`, completion and highlighting follow from it.

use std::fmt::Write as _;

/// A slash command. What it does is up to the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `/help`: show this help.
    Help,
    /// `/mode`: switch to agent, shell or python, or to the next mode.
    Mode,
    /// `/model`: show or change the model.
    Model,
    /// `/profile`: show or change the profile: limits, tools and prompt.
    Profile,
    /// `/memory`: whether a question includes the conversation before it.
    Memory,
    /// `/remember`: remember something in all later sessions.
    Remember,
    /// `/approve`: show or extend the list of what runs without asking.
    Approve,
    /// `/include`: attach a file to the next question.
    Include,
    /// `/skill`: list skills, or attach one to the next question.
    Skill,
    /// `/run`: enter the lines of a file at the prompt.
    Run,
    /// `/inspect`: inspect a Python value.
    Inspect,
    /// `/last_error`: show the last Python exception.
    LastError,
    /// `/explain`: ask the agent about the last failed cell (or press Alt-A).
    Explain,
    /// `/clear`: start a new conversation.
    Clear,
    /// `/compact`: replace the conversation with a summary of it.
    Compact,
    /// `/undo`: undo the last turn; files are not changed.
    Undo,
    /// `/fork`: continue in a copy of the session.
    Fork,
    /// `/sessions`: list recorded sessions.
    Sessions,
    /// `/resume`: resume an interrupted turn, or continue another session.
    Resume,
    /// `/restore`: run the session's Python cells again to restore its variables.
    Restore,
    /// `/steps`: show the steps of the last turn.
    Steps,
    /// `/todo`: show the agent's to-do list.
    Todo,
    /// `/trace`: show the last turn in full.
    Trace,
    /// `/cost`: show tokens and cost.
    Cost,
    /// `/ps`: list the shell's jobs.
    Ps,
    /// `/stop`: stop a job of the shell, or the running turn.
    Stop,
    /// `/copy`: copy an answer or a code block; of the full screen.
    Copy,
    /// `/terminal`: preview what the agent would read of the terminal.
    Terminal,
    /// `/screen`: go on with the session on the full screen, or at the line prompt.
    Screen,
    /// `/quit`: quit (or press Ctrl-D).
    Quit,
}

/// A row of the table.
pub struct Entry {
    /// The command.
    pub command: Command,
    /// Its name, without the slash.
    pub name: &'static str,
    /// Its arguments, for the help.
    pub arguments: &'static str,
    /// What it does.
    pub does: &'static str,
}

const fn entry(
    command: Command,
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
) -> Entry {
    Entry {
        command,
        name,
        arguments,
        does,
    }
}

/// All commands, in display order.
pub const TABLE: &[Entry] = &[
    entry(Command::Help, "help", "", "show this help"),
    entry(
        Command::Mode,
        "mode",
        "[NAME]",
        "switch to agent, shell or python, or to the next mode",
    ),
    entry(
        Command::Model,
        "model",
        "[NAME]",
        "show or change the model",
    ),
    entry(
        Command::Profile,
        "profile",
        "[NAME]",
        "show or change the profile: limits, tools and prompt",
    ),
    entry(
        Command::Memory,
        "memory",
        "[on|off]",
        "whether a question includes the conversation before it",
    ),
    entry(
        Command::Remember,
        "remember",
        "TEXT",
        "remember something in all later sessions",
    ),
    entry(
        Command::Approve,
        "approve",
        "[PATTERN]",
        "show or extend the list of what runs without asking",
    ),
    entry(
        Command::Include,
        "include",
        "FILE",
        "attach a file to the next question",
    ),
    entry(
        Command::Skill,
        "skill",
        "[NAME]",
        "list skills, or attach one to the next question",
    ),
    entry(
        Command::Run,
        "run",
        "FILE",
        "enter the lines of a file at the prompt",
    ),
    entry(
        Command::Inspect,
        "inspect",
        "NAME",
        "inspect a Python value",
    ),
    entry(
        Command::LastError,
        "last_error",
        "",
        "show the last Python exception",
    ),
    entry(
        Command::Explain,
        "explain",
        "",
        "ask the agent about the last failed cell (or press Alt-A)",
    ),
    entry(Command::Clear, "clear", "", "start a new conversation"),
    entry(
        Command::Compact,
        "compact",
        "[FOCUS]",
        "replace the conversation with a summary of it",
    ),
    entry(
        Command::Undo,
        "undo",
        "",
        "undo the last turn; files are not changed",
    ),
    entry(
        Command::Fork,
        "fork",
        "",
        "continue in a copy of the session",
    ),
    entry(Command::Sessions, "sessions", "", "list recorded sessions"),
    entry(
        Command::Resume,
        "resume",
        "[ID]",
        "resume an interrupted turn, or continue another session",
    ),
    entry(
        Command::Restore,
        "restore",
        "[NUMBER...]",
        "run the session's Python cells again to restore its variables",
    ),
    entry(
        Command::Steps,
        "steps",
        "",
        "show the steps of the last turn",
    ),
    entry(Command::Todo, "todo", "", "show the agent's to-do list"),
    entry(Command::Trace, "trace", "", "show the last turn in full"),
    entry(Command::Cost, "cost", "", "show tokens and cost"),
    entry(Command::Ps, "ps", "", "list the shell's jobs"),
    entry(
        Command::Stop,
        "stop",
        "[JOB]",
        "stop a job of the shell, or the running turn",
    ),
    entry(
        Command::Terminal,
        "terminal",
        "",
        "preview what the agent would read of your terminal: directory, git, commands, panes",
    ),
    entry(
        Command::Screen,
        "screen",
        "",
        "go on with the session on the full screen, or at the line prompt",
    ),
    entry(Command::Quit, "quit", "", "quit (or press Ctrl-D)"),
];

/// Commands that only the full screen has.
pub const OF_SCREEN: &[Entry] = &[entry(
    Command::Copy,
    "copy",
    "[NUMBER]",
    "copy the last answer, or a code block of it by its number",
)];

/// Commands that the full screen does not have.
pub const OF_LINE: &[Command] = &[
    Command::Memory,
    Command::Skill,
    Command::Run,
    Command::Inspect,
    Command::LastError,
    Command::Restore,
];

/// Returns all commands of the full screen, in display order.
pub fn all_on_screen() -> impl Iterator<Item = &'static Entry> {
    let both = OF_SCREEN.iter().chain(TABLE);
    both.filter(|entry| !OF_LINE.contains(&entry.command))
}

/// Returns the command of the full screen of that name.
#[must_use]
pub fn find_on_screen(name: &str) -> Option<Command> {
    let own = OF_SCREEN.iter().find(|entry| entry.name == name);
    own.map(|entry| entry.command).or_else(|| find(name))
}

const KEYS: &str = "
Tab on an empty line, or F2 on any, switches between agent, shell and python.
Shift-Tab changes what runs without asking: ask, auto, plan.
`/SERVER:PROMPT` asks what a prompt of a server says, and `@SERVER:URI` reads one of its resources.
Alt-Enter starts a new line. Ctrl-R searches the history.
While a turn runs, a line that you enter is delivered before its next step.
";

/// Returns every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

/// Returns the command of that name. `exit` is `quit`, and not listed.
#[must_use]
pub fn find(name: &str) -> Option<Command> {
    let listed = TABLE.iter().find(|entry| entry.name == name);
    let unlisted = (name == "exit").then_some(Command::Quit);
    listed.map(|entry| entry.command).or(unlisted)
}

/// Returns whether a listed command has that name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns the text of `/help`.
#[must_use]
pub fn help() -> String {
    let spelled = |entry: &Entry| format!("/{} {}", entry.name, entry.arguments);
    let widths = TABLE.iter().map(|entry| spelled(entry).len());
    let width = widths.max().unwrap_or_default();
    let mut text = String::new();
    for entry in TABLE {
        let _ = writeln!(text, "{:width$}  {}", spelled(entry), entry.does);
    }
    text + KEYS
}
