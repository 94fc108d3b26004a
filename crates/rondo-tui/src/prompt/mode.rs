//! The modes of a prompt, and what a line means in each.

use rondo_mcp::config::is_name;
use rondo_runtime::{SetupError, SetupErrorKind};

/// Meaning of a line without a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A question to the agent.
    Agent,
    /// A command of the shell.
    Shell,
    /// Python.
    Python,
}

/// Meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Blank.
    Empty,
    /// A question or task for the agent.
    Ask(&'a str),
    /// A command for the shell.
    Run {
        /// The command.
        command: &'a str,
        /// Attaches its output to the next question.
        shared: bool,
    },
    /// A cell for Python.
    Python(&'a str),
    /// A command of the prompt itself, by its name without the slash.
    Slash {
        /// Name of the command.
        name: &'a str,
        /// Rest of the line.
        rest: &'a str,
    },
}

impl Mode {
    /// Every mode, in the order in which Tab switches them.
    pub const WHEEL: [Self; 3] = [Self::Agent, Self::Shell, Self::Python];

    /// Returns the mode after this one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Agent => Self::Shell,
            Self::Shell => Self::Python,
            Self::Python => Self::Agent,
        }
    }

    /// Returns the name that the prompt shows and `/mode` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Shell => "shell",
            Self::Python => "python",
        }
    }

    /// Returns the mode of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::WHEEL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the mode that `/mode` chooses by its name, or the next one without a name.
    ///
    /// # Errors
    /// When no mode has that name.
    pub fn choose(self, name: &str) -> Result<Self, SetupError> {
        if name.is_empty() {
            return Ok(self.next());
        }
        Self::named(name).ok_or_else(|| {
            let names = Self::WHEEL.map(Self::name).join(", ");
            let message = format!("there is no mode `{name}`");
            SetupError::new(SetupErrorKind::Usage, message).hint(format!("the modes are: {names}"))
        })
    }

    /// Parses a line that was typed in this mode. `is_slash` knows the names of commands that begin with a
    /// slash: in the shell and in Python all other words belong to the program.
    #[must_use]
    pub fn parse_line(self, text: &str, is_slash: impl Fn(&str) -> bool) -> Line<'_> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Line::Empty;
        }
        if let Some(slash) = slash(trimmed)
            && (self == Self::Agent || is_slash(slash.0))
        {
            let (name, rest) = slash;
            return Line::Slash { name, rest };
        }
        match self {
            Self::Agent => to_agent(trimmed),
            Self::Shell => match trimmed.strip_prefix('#') {
                Some(question) => Self::Agent.parse_line(question, is_slash),
                None => Line::Run {
                    command: text.trim_end_matches('\n'),
                    shared: false,
                },
            },
            Self::Python => in_python(text, trimmed, is_slash),
        }
    }

    /// Writes what was typed in `of` as it would be typed here.
    #[must_use]
    pub fn spelled(self, of: Self, line: &str) -> String {
        let is_marked = line.starts_with(['#', '!', '>', '/']);
        match (self, of) {
            _ if self == of => line.to_owned(),
            (Self::Agent, Self::Shell) if !is_marked => format!("!{line}"),
            (Self::Agent, Self::Python) if !is_marked => format!(">{line}"),
            (Self::Shell | Self::Python, Self::Agent) if !is_marked => format!("# {line}"),
            (Self::Python, Self::Shell) if !is_marked => format!("!{line}"),
            _ => line.to_owned(),
        }
    }
}

fn to_agent(text: &str) -> Line<'_> {
    if let Some(command) = text.strip_prefix("!!") {
        return run(command, false);
    }
    if let Some(command) = text.strip_prefix('!') {
        return run(command, true);
    }
    match text.strip_prefix('>') {
        Some(code) if !code.trim().is_empty() => Line::Python(code.trim()),
        _ => Line::Ask(text),
    }
}

fn run(command: &str, shared: bool) -> Line<'_> {
    match command.trim() {
        "" => Line::Empty,
        command => Line::Run { command, shared },
    }
}

/// A comment by itself is not a command, so it goes to the agent; one above code
/// is a comment.
fn in_python<'a>(text: &'a str, trimmed: &'a str, is_slash: impl Fn(&str) -> bool) -> Line<'a> {
    if !trimmed.contains('\n') {
        if let Some(question) = trimmed.strip_prefix('#') {
            return Mode::Agent.parse_line(question, is_slash);
        }
        if let Some(command) = trimmed.strip_prefix('!') {
            return run(command, false);
        }
    }
    Line::Python(text.trim_end_matches('\n'))
}

/// Splits a line of the prompt's own into its name and what follows: `/name`, or `/server:prompt`. A path has a second
/// slash.
fn slash(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('/')?;
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    let is_own =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let is_prompt = |(server, prompt): (&str, &str)| {
        is_name(server) && !prompt.is_empty() && !prompt.contains(['/', ':'])
    };
    let is_name = is_own(name) || name.split_once(':').is_some_and(is_prompt);
    is_name.then(|| (name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_chosen_by_its_name_or_is_the_next_one() {
        assert_eq!(Mode::Agent.choose("python").unwrap(), Mode::Python);
        assert_eq!(Mode::Agent.choose("").unwrap(), Mode::Shell);
        let error = Mode::Agent.choose("pyhton").unwrap_err();
        assert_eq!(error.to_string(), "there is no mode `pyhton`");
        assert_eq!(
            error.hint.as_deref(),
            Some("the modes are: agent, shell, python")
        );
    }

    #[track_caller]
    fn check(mode: Mode, text: &str, expected: &Line<'_>) {
        let is_slash = |name: &str| matches!(name, "help" | "clear");
        assert_eq!(&mode.parse_line(text, is_slash), expected, "{text}");
    }

    #[test]
    fn the_first_sign_says_whom_a_line_is_for() {
        let slash = |name, rest| Line::Slash { name, rest };
        let run = |command, shared| Line::Run { command, shared };
        check(Mode::Agent, " why? ", &Line::Ask("why?"));
        check(Mode::Agent, "!ls -l", &run("ls -l", true));
        check(Mode::Agent, "!! ls", &run("ls", false));
        check(Mode::Agent, "> 1 + 1", &Line::Python("1 + 1"));
        check(Mode::Agent, "/clear now", &slash("clear", "now"));
        check(
            Mode::Agent,
            "/my-server:greet Ada",
            &slash("my-server:greet", "Ada"),
        );
        check(Mode::Agent, "/srv:x/y is?", &Line::Ask("/srv:x/y is?"));
        check(Mode::Agent, "/etc/hosts is?", &Line::Ask("/etc/hosts is?"));
        check(Mode::Agent, "!", &Line::Empty);
        check(Mode::Shell, "# why?", &Line::Ask("why?"));
        check(Mode::Shell, "# /clear", &slash("clear", ""));
        check(Mode::Shell, "/help", &slash("help", ""));
        check(Mode::Shell, "/bin/ls", &run("/bin/ls", false));
        check(Mode::Shell, "/usr", &run("/usr", false));
        check(Mode::Python, "  x = 1", &Line::Python("  x = 1"));
        check(Mode::Python, "# why?", &Line::Ask("why?"));
        check(Mode::Python, "# one\nx = 1", &Line::Python("# one\nx = 1"));
        check(Mode::Python, "!ls", &run("ls", false));
        for mode in Mode::WHEEL {
            check(mode, " \n ", &Line::Empty);
        }
    }

    #[test]
    fn the_wheel_comes_round() {
        let mut mode = Mode::Agent;
        let turned = [(); 3].map(|()| {
            mode = mode.next();
            mode.name()
        });
        assert_eq!(turned, ["shell", "python", "agent"]);
        assert_eq!(Mode::named("python"), Some(Mode::Python));
    }

    #[test]
    fn a_line_of_another_mode_is_written_so_that_it_means_the_same() {
        for (here, of, line, spelled) in [
            (Mode::Agent, Mode::Shell, "ls", "!ls"),
            (Mode::Agent, Mode::Python, "x", ">x"),
            (Mode::Shell, Mode::Agent, "why?", "# why?"),
            (Mode::Shell, Mode::Agent, "/help", "/help"),
            (Mode::Python, Mode::Shell, "ls", "!ls"),
            (Mode::Agent, Mode::Agent, "why?", "why?"),
        ] {
            assert_eq!(here.spelled(of, line), spelled);
        }
    }
}
