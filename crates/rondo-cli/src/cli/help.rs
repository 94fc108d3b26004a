//! The parts of the help that clap does not write: commands in groups, examples and exit codes.

use clap::Command;
use clap::builder::{StyledStr, Styles};
use std::fmt::Write as _;

/// The headings of `rondo --help`, with the commands below each.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Agents",
        &["ask", "repl", "run", "resume", "answer", "attach", "fork"],
    ),
    (
        "Sessions",
        &["session", "replay", "test", "context", "usage"],
    ),
    (
        "Settings and tools",
        &[
            "config",
            "profiles",
            "models",
            "mcp",
            "skills",
            "memory",
            "trust",
            "policy",
            "doctor",
            "completion",
            "wire",
            "help",
        ],
    ),
    (
        "Gateway",
        &["serve", "onboard", "chat", "users", "outbox", "cron"],
    ),
];

/// Heading of the options that choose a session.
pub(super) const SESSION: &str = "Session";
/// Heading of the options of the model and its prompts.
pub(super) const MODEL: &str = "Model and prompt";
/// Heading of the options that limit a turn.
pub(super) const LIMITS: &str = "Limits";
/// Heading of the options of tools and their approval.
pub(super) const TOOLS: &str = "Tools and files";

/// Width of the column of command names.
const NAME_COLUMNS: usize = 10;

/// The behavior of `rondo` without a command, and examples.
const WITHOUT_COMMAND: &str = "\
At a terminal, `rondo` alone opens the full screen, or the line prompt (`rondo
repl`) if TERM is `dumb` or the setting `tui_screen` is `inline`. Without a
terminal it prints this help. `rondo QUESTION` is short for `rondo ask QUESTION`
and takes the same options; input that is piped in is attached to the question.";

/// Examples of the most common calls.
const EXAMPLES: [(&str, &str); 5] = [
    ("rondo", "Open the full screen"),
    ("rondo \"why does the build fail?\"", "Ask a question"),
    ("git diff | rondo \"review this\"", "Ask about piped input"),
    ("rondo -c \"and the tests?\"", "Continue the latest session"),
    ("rondo ask --help", "Show the options of a question"),
];

/// The exit codes, shown below the help of the commands that run or replay turns.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  error
    2  invalid arguments
    3  degraded answer, with --strict-complete
    4  the replay differs from the records
   41  missing or refused API key
   42  unreadable input
   44  a call needed approval, and there was no terminal
   45  no such session, or no turn to resume
   46  another process is using the session
   47  the turn is waiting for `rondo answer`
   52  invalid configuration
   53  limit reached without an answer
   54  journal error
  124  deadline passed without an answer
  130  interrupted
  141  standard output was closed
  143  terminated by a signal";

/// Examples of `rondo ask`.
pub(super) const ASK_EXAMPLES: &str = "\
Examples:
  rondo ask \"what does src/main.rs do?\"
  rondo ask \"summarize this:\" @notes.md
  rondo ask -c --allowed-tools \"exec(cargo test *)\" \"fix the failing test\"";

/// Examples of `rondo answer`.
pub(super) const ANSWER_EXAMPLES: &str = "\
Examples:
  rondo answer latest y
  rondo answer latest n --reason \"use the test database\"
  rondo answer latest 2 y";

/// Examples of `rondo fork`.
pub(super) const FORK_EXAMPLES: &str = "\
Examples:
  rondo fork latest --at 3 --message \"try it without the cache\"
  rondo fork latest --at 2.1 --no-run";

/// Examples and exit codes, below the long help.
pub(super) fn with_exit_codes(examples: &str) -> String {
    format!("{examples}\n\n{EXIT_CODES}")
}

/// The use of the script of `rondo completion`.
pub(super) const COMPLETION: &str = "\
The script asks `rondo` for the words that fit, including the names of profiles,
models, sessions and settings. Load it when your shell starts, so that it fits
the installed version:
  bash        source <(rondo completion bash)
  zsh         source <(rondo completion zsh)
  fish        rondo completion fish | source
  elvish      eval (rondo completion elvish | slurp)
  powershell  rondo completion powershell | Out-String | Invoke-Expression";

/// Makes the help of the program list its commands in groups.
pub(super) fn grouped(cli: Command) -> Command {
    let header = Styles::styled().get_header().to_owned();
    let literal = Styles::styled().get_literal().to_owned();
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = write!(template, "\n{header}{heading}:{header:#}\n");
        for name in names {
            let about = cli.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(
                || "Print help for a command".to_owned(),
                ToString::to_string,
            );
            let _ = writeln!(
                template,
                "  {literal}{name:NAME_COLUMNS$}{literal:#}  {about}"
            );
        }
    }
    let _ = write!(
        template,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    let mut examples = format!("{header}Examples:{header:#}\n");
    for (line, about) in EXAMPLES {
        let _ = writeln!(examples, "  {literal}{line:36}{literal:#}  {about}");
    }
    let examples = examples.trim_end();
    let long = format!("{WITHOUT_COMMAND}\n\n{examples}");
    cli.help_template(StyledStr::from(template))
        .after_help(StyledStr::from(examples.to_owned()))
        .after_long_help(StyledStr::from(long))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn every_command_is_in_one_group_with_a_line_that_fits() {
        let mut cli = Cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|it| it.1).copied().collect();
        grouped.retain(|it| *it != "help");
        grouped.sort_unstable();
        let mut names: Vec<String> = cli
            .get_subcommands()
            .map(|it| it.get_name().to_owned())
            .collect();
        names.sort_unstable();
        assert_eq!(grouped, names);
        for command in cli.get_subcommands_mut() {
            let line = command.get_about().unwrap().to_string();
            assert!(line.len() <= 80 - NAME_COLUMNS - 4, "{line}");
        }
    }

    #[test]
    fn the_help_of_a_command_begins_with_its_line_in_the_list() {
        let plain = Cli::command();
        let mut built = Cli::command();
        built.build();
        let mut open: Vec<(Option<&Command>, &Command)> = built
            .get_subcommands()
            .map(|it| (plain.find_subcommand(it.get_name()), it))
            .collect();
        while let Some((listed, command)) = open.pop() {
            let name = command.get_name();
            if name == "help" {
                continue;
            }
            let about = command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(!about.contains("Arguments of"), "{name}: {about}");
            if let Some(listed) = listed {
                assert_eq!(
                    listed.get_about().map(ToString::to_string),
                    Some(about),
                    "{name}"
                );
            }
            open.extend(command.get_subcommands().map(|it| (None, it)));
        }
    }
}
