//! The table of slash commands: `/help`, completion and highlighting follow from it.

use rondo_core::shown;
use rondo_runtime::settings::Settings;
use rondo_runtime::{SetupError, SetupErrorKind};
use std::fmt::Write as _;

/// A slash command. The program carries it out, alike at both prompts: each prompt shows the
/// [`Reply`](super::reply::Reply) and makes the change in it.
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
    /// `/memory`: turn on or off whether questions include the earlier conversation.
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
    /// `/explain`: ask the agent about the last failed command or cell (or press Alt-A).
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
    /// `/resume`: resume a turn that was cut off, or continue another session.
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
    /// `/copy`: copy the last answer or a code block of it.
    Copy,
    /// `/ps`: list the shell's jobs.
    Ps,
    /// `/stop`: stop a job of the shell, or the running turn.
    Stop,
    /// `/terminal`: preview what the agent would read of the terminal.
    Terminal,
    /// `/screen`: continue the session in the full screen, or at the line prompt.
    Screen,
    /// `/quit`: quit (or press Ctrl-D).
    Quit,
}

impl Command {
    /// Returns whether it works with the live Python session.
    #[must_use]
    pub fn needs_python(self) -> bool {
        matches!(self, Self::Inspect | Self::LastError | Self::Restore)
    }

    /// Returns whether it takes a while and changes nothing that the prompt's next line depends on, so that the prompt goes
    /// on meanwhile.
    #[must_use]
    pub fn runs_beside(self) -> bool {
        match self {
            Self::Remember
            | Self::Inspect
            | Self::LastError
            | Self::Restore
            | Self::Sessions
            | Self::Steps
            | Self::Trace
            | Self::Cost
            | Self::Copy
            | Self::Terminal => true,
            Self::Help
            | Self::Mode
            | Self::Model
            | Self::Profile
            | Self::Memory
            | Self::Approve
            | Self::Include
            | Self::Skill
            | Self::Run
            | Self::Explain
            | Self::Clear
            | Self::Compact
            | Self::Undo
            | Self::Fork
            | Self::Resume
            | Self::Todo
            | Self::Ps
            | Self::Stop
            | Self::Screen
            | Self::Quit => false,
        }
    }
}

/// A row of the table.
pub struct Entry {
    /// The command.
    pub command: Command,
    /// Its name, without the slash.
    pub name: &'static str,
    /// Its arguments, for the help.
    pub arguments: &'static str,
    /// Description of the command.
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
        "turn on or off whether questions include the earlier conversation",
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
        "ask the agent about the last failed command or cell (or press Alt-A)",
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
        "resume a turn that was cut off, or continue another session",
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
    entry(
        Command::Copy,
        "copy",
        "[NUMBER]",
        "copy the last answer, or a code block of it by its number",
    ),
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
        "continue the session in the full screen, or at the line prompt",
    ),
    entry(Command::Quit, "quit", "", "quit (or press Ctrl-D)"),
];

/// Forms of input for servers of the Model Context Protocol.
pub const OF_SERVERS: &str =
    "`/SERVER:PROMPT` sends a prompt of a server, and `@SERVER:URI` attaches one of its resources.";

/// The keys of the line prompt, for its help.
pub const KEYS: &str = "\
Tab on an empty line, or F2 on any, switches between agent, shell and python.
Shift-Tab changes what runs without asking: ask, auto, plan.
Alt-Enter starts a new line. Ctrl-R searches the history.
While a turn runs, a line that you enter is delivered before its next step.
";

/// Returns every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

/// Returns the command of that name. `exit` is `quit` and `new` is `clear`; neither is listed.
#[must_use]
pub fn find(name: &str) -> Option<Command> {
    let listed = TABLE.iter().find(|entry| entry.name == name);
    let unlisted = match name {
        "exit" => Some(Command::Quit),
        "new" => Some(Command::Clear),
        _ => None,
    };
    listed.map(|entry| entry.command).or(unlisted)
}

/// Returns whether a listed command has that name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The error of a name that no command has, with the `known` command that may be meant.
pub fn unknown<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> SetupError {
    let message = format!("there is no `/{name}`");
    let near = known.find(|known| known.starts_with(name) || name.starts_with(known));
    SetupError::new(SetupErrorKind::Usage, message).hint(match near {
        Some(near) => format!("did you mean `/{near}`? `/help` shows all"),
        None => "`/help` shows all".to_owned(),
    })
}

/// Takes `/SERVER:PROMPT ARGUMENT...` apart into the server, the prompt and the rest; `None` if a line is something else.
#[must_use]
pub fn server_prompt(line: &str) -> Option<(&str, &str, &str)> {
    let (server, rest) = line.strip_prefix('/')?.split_once(':')?;
    let (prompt, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_name = !server.is_empty() && !server.contains(|c: char| c == '/' || c.is_whitespace());
    is_name.then_some((server, prompt, rest))
}

/// Checks that the settings have the server of `/SERVER:PROMPT`.
///
/// # Errors
/// When they have not.
pub fn check_server(settings: &Settings, server: &str) -> Result<(), SetupError> {
    if settings.mcp.names().iter().any(|known| known == server) {
        return Ok(());
    }
    let message = format!("there is no server `{}`", shown::line(server));
    let error = SetupError::new(SetupErrorKind::Usage, message);
    Err(error.hint("`rondo mcp list` shows all"))
}

/// Splits a line at blanks that are not in double quotes.
#[must_use]
pub fn arguments(line: &str) -> Vec<String> {
    let (mut all, mut word, mut in_quotes, mut is_word) = (Vec::new(), String::new(), false, false);
    for it in line.chars() {
        match it {
            '"' => (in_quotes, is_word) = (!in_quotes, true),
            it if it.is_whitespace() && !in_quotes => {
                if std::mem::take(&mut is_word) {
                    all.push(std::mem::take(&mut word));
                }
            }
            it => {
                word.push(it);
                is_word = true;
            }
        }
    }
    if is_word {
        all.push(word);
    }
    all
}

/// Returns the text of `/help`, with the commands that the user added and their descriptions.
#[must_use]
pub fn help(added: &[(String, String)]) -> String {
    let spelled = |entry: &Entry| format!("/{} {}", entry.name, entry.arguments);
    let widths = TABLE.iter().map(|entry| spelled(entry).len());
    let width = widths.max().unwrap_or_default();
    let mut text = String::new();
    for entry in TABLE {
        let _ = writeln!(text, "{:width$}  {}", spelled(entry), entry.does);
    }
    for (name, does) in added {
        let _ = writeln!(text, "{:width$}  {does} (init.lua)", format!("/{name}"));
    }
    let _ = writeln!(text, "\n{OF_SERVERS}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_know_from_elsewhere_are_found_and_not_listed() {
        assert_eq!(find("new"), Some(Command::Clear));
        assert_eq!(find("exit"), Some(Command::Quit));
        assert!(!is_name("new") && !is_name("exit"));
    }

    #[test]
    fn arguments_are_split_at_blanks_outside_of_quotes() {
        assert_eq!(arguments("a \"b c\"  d"), ["a", "b c", "d"]);
        assert_eq!(arguments("\"\" x\"y z\""), ["", "xy z"]);
        assert_eq!(arguments("  "), [""; 0]);
    }

    #[test]
    fn a_prompt_of_a_server_is_told_from_a_path() {
        assert_eq!(
            server_prompt("/inn:greet Ada B"),
            Some(("inn", "greet", "Ada B"))
        );
        assert_eq!(server_prompt("/inn:greet"), Some(("inn", "greet", "")));
        for line in [
            "/home/me/a: why?",
            "/ inn:greet",
            "/:x",
            "inn:greet",
            "/cost",
        ] {
            assert_eq!(server_prompt(line), None, "{line}");
        }
    }
}
