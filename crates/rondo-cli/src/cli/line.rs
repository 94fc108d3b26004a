//! Finds the command of a line that names none (a question), or that has options before it.

use super::Cli;
use clap::{ArgAction, Command, CommandFactory as _};
use rondo_types::units::counted;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};

/// How alike a word and a command's name are at least, from 0 to 1, if one is taken for the other.
/// `hello` and `help` are less alike than this, `complete` and `completion` more.
const LIKENESS_MIN: f64 = 0.87;
/// Words that name a part of Rondo but not a command, and the command that deals with it. A bare word of these is not a
/// question to a model.
const NOUNS: [(&str, &str); 34] = [
    ("agent", "repl"),
    ("agents", "profiles list"),
    ("approvals", "answer"),
    ("auth", "doctor"),
    ("bot", "onboard"),
    ("channels", "onboard"),
    ("commands", "--help"),
    ("continue", "-c"),
    ("cost", "usage"),
    ("daemon", "serve"),
    ("gateway", "serve"),
    ("gui", "--help"),
    ("history", "session list"),
    ("hub", "serve"),
    ("init", "config edit"),
    ("install", "doctor"),
    ("key", "doctor"),
    ("keys", "doctor"),
    ("messages", "outbox list"),
    ("prompt", "repl"),
    ("provider", "doctor"),
    ("providers", "doctor"),
    ("questions", "answer"),
    ("rules", "policy list"),
    ("script", "run"),
    ("server", "serve"),
    ("servers", "mcp list"),
    ("settings", "config list"),
    ("setup", "doctor"),
    ("shell", "repl --mode shell"),
    ("start", "serve"),
    ("status", "session list"),
    ("tools", "mcp list"),
    ("tui", "--help"),
];
/// Letters of a word that is taken for a command's name with one letter wrong.
const LETTERS_MIN: usize = 3;

/// Streams of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streams {
    /// Kind of standard input.
    pub(crate) stdin: Stdin,
    /// Set if standard output and standard error are terminals.
    pub(crate) terminal: bool,
}

/// Kind of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// A terminal.
    Terminal,
    /// Known to hold nothing: `/dev/null`, an empty file.
    Nothing,
    /// A pipe, a file, a socket.
    Something,
}

/// Meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its arguments, a command among them, and whether the command was typed.
    Parse {
        /// The program's name first.
        args: Vec<OsString>,
        /// Set if the command was not typed.
        implied: bool,
    },
    /// No arguments: the usage is shown.
    Help,
    /// The version was asked for in a word.
    Version,
    /// It looks like a mistake, and is not sent to a model.
    Refuse {
        /// Description of the mistake.
        message: String,
        /// Suggestion for the user.
        hint: String,
    },
}

/// Parses a command line. A line that names a command first is left as it is.
///
/// `cli` is the program's own, which takes a while to make; nothing is built of it here.
pub(crate) fn read(cli: &Command, args: Vec<OsString>, streams: Streams) -> Line {
    let typed = |args| Line::Parse {
        args,
        implied: false,
    };
    if command_named(cli, args.get(1)).is_some() {
        return typed(args);
    }
    let mut cli = Cli::command();
    // Adds every command's options, which are left out until they are asked for.
    cli.build();
    let scanned = Scan::of(&cli, &args);
    match scanned.found {
        FirstWord::Help
        | FirstWord::Unknown {
            command_follows: true,
        } => typed(args),
        FirstWord::Unknown {
            command_follows: false,
        } => implied(args, "ask"),
        FirstWord::Word(at) => match command_named(&cli, args.get(at)) {
            Some(_) if !scanned.literal => typed(moved(&cli, args, at)),
            _ => {
                let words = args.get(at..).unwrap_or_default();
                mistaken(&cli, words, scanned.literal).unwrap_or_else(|| implied(args, "ask"))
            }
        },
        FirstWord::Nothing => without_words(args, &scanned, streams),
    }
}

fn without_words(args: Vec<OsString>, scanned: &Scan, streams: Streams) -> Line {
    let at_terminal = streams.stdin == Stdin::Terminal;
    if at_terminal && args.len() == 2 && args.get(1).is_some_and(|word| word == "-v") {
        return Line::Refuse {
            message: "`-v` logs more, and there is nothing to do".to_owned(),
            hint:
                "`rondo --version` prints the version; `rondo -v repl` opens the prompt with a log"
                    .to_owned(),
        };
    }
    match streams.stdin {
        Stdin::Terminal if streams.terminal && scanned.fits_repl => implied(args, "repl"),
        Stdin::Terminal | Stdin::Nothing if scanned.only_global => Line::Help,
        _ => implied(args, "ask"),
    }
}

fn implied(args: Vec<OsString>, command: &str) -> Line {
    let mut args = VecDeque::from(args);
    let program = args.pop_front();
    args.push_front(command.into());
    args.push_front(program.unwrap_or_else(|| "rondo".into()));
    Line::Parse {
        args: args.into(),
        implied: true,
    }
}

/// Puts the options that are before a command behind it, where it looks for them.
fn moved(cli: &Command, args: Vec<OsString>, at: usize) -> Vec<OsString> {
    let mut end = at;
    let mut command = cli;
    while let Some(inner) = args
        .get(end)
        .and_then(|word| command_named(command, Some(word)))
    {
        command = inner;
        end += 1;
    }
    let mut moved = args;
    if let Some(options) = moved.get_mut(1..end) {
        options.rotate_left(at.saturating_sub(1));
    }
    moved
}

fn command_named<'a>(command: &'a Command, word: Option<&OsString>) -> Option<&'a Command> {
    let word = word?.to_str()?;
    command
        .get_subcommands()
        .find(|it| it.get_name() == word || it.get_all_aliases().any(|alias| alias == word))
}

/// Options before the first word.
struct Scan {
    found: FirstWord,
    /// Set if `--` is before the word: then it is a question's.
    literal: bool,
    /// Set if all options are those that every command takes.
    only_global: bool,
    /// Set if all options are those of the prompt.
    fits_repl: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstWord {
    /// A word, at this place.
    Word(usize),
    /// No word.
    Nothing,
    /// A question for help or the version, before anything that only a command takes.
    Help,
    /// An unknown option, so that what follows could be its value.
    Unknown { command_follows: bool },
}

impl Scan {
    fn of(cli: &Command, args: &[OsString]) -> Self {
        let known = TopLevelOptions::of(cli);
        let mut scan = Self {
            found: FirstWord::Nothing,
            literal: false,
            only_global: true,
            fits_repl: true,
        };
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            let text = arg.to_string_lossy();
            if text == "--" {
                scan.literal = true;
                at += 1;
                if at < args.len() {
                    scan.found = FirstWord::Word(at);
                }
                return scan;
            }
            if text == "-" || !text.starts_with('-') {
                scan.found = FirstWord::Word(at);
                return scan;
            }
            match known.look(&text) {
                Dashed::Help if scan.only_global => {
                    scan.found = FirstWord::Help;
                    return scan;
                }
                Dashed::Unknown => {
                    let rest = args.get(at + 1..).unwrap_or_default();
                    let command_follows = rest
                        .iter()
                        .take_while(|word| *word != "--")
                        .any(|word| command_named(cli, Some(word)).is_some());
                    scan.found = FirstWord::Unknown { command_follows };
                    return scan;
                }
                // The help of the prompt would not say what asking takes.
                Dashed::Help => scan.fits_repl = false,
                Dashed::Options {
                    global,
                    repl,
                    takes_next,
                } => {
                    scan.only_global &= global;
                    scan.fits_repl &= repl;
                    at += usize::from(takes_next);
                }
            }
            at += 1;
        }
        scan
    }
}

/// Meaning of an argument that begins with a dash.
enum Dashed {
    Help,
    Unknown,
    Options {
        global: bool,
        repl: bool,
        takes_next: bool,
    },
}

/// The options that a line without a command may have.
struct TopLevelOptions<'a> {
    top: &'a Command,
    ask: Option<&'a Command>,
    repl: Option<&'a Command>,
}

impl<'a> TopLevelOptions<'a> {
    fn of(cli: &'a Command) -> Self {
        Self {
            top: cli,
            ask: cli.find_subcommand("ask"),
            repl: cli.find_subcommand("repl"),
        }
    }

    fn look(&self, text: &str) -> Dashed {
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            return self.option(|arg| arg.get_long() == Some(name), value.is_none());
        }
        let mut seen = Dashed::Unknown;
        let mut letters = text.chars().skip(1).peekable();
        while let Some(letter) = letters.next() {
            let one = self.option(
                |arg| arg.get_short() == Some(letter),
                letters.peek().is_none(),
            );
            let takes_value = self.takes_value(|arg| arg.get_short() == Some(letter));
            seen = match (seen, one) {
                (
                    Dashed::Options { global, repl, .. },
                    Dashed::Options {
                        global: too,
                        repl: as_well,
                        takes_next,
                    },
                ) => Dashed::Options {
                    global: global && too,
                    repl: repl && as_well,
                    takes_next,
                },
                (_, one) => one,
            };
            if takes_value || !matches!(seen, Dashed::Options { .. }) {
                break;
            }
        }
        seen
    }

    fn option(&self, is_it: impl Fn(&clap::Arg) -> bool, value_follows: bool) -> Dashed {
        let has = |command: Option<&Command>| {
            command.is_some_and(|command| command.get_arguments().any(&is_it))
        };
        let action = self.find(&is_it).map(clap::Arg::get_action);
        match action {
            Some(
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version,
            ) => Dashed::Help,
            Some(action) => Dashed::Options {
                global: has(Some(self.top)),
                repl: has(self.repl),
                takes_next: value_follows && action.takes_values(),
            },
            None => Dashed::Unknown,
        }
    }

    fn takes_value(&self, is_it: impl Fn(&clap::Arg) -> bool) -> bool {
        self.find(&is_it)
            .is_some_and(|arg| arg.get_action().takes_values())
    }

    fn find(&self, is_it: &impl Fn(&clap::Arg) -> bool) -> Option<&'a clap::Arg> {
        [Some(self.top), self.ask, self.repl]
            .into_iter()
            .flatten()
            .flat_map(Command::get_arguments)
            .find(|arg| is_it(arg))
    }
}

/// Returns the reply to a line that begins with no command and is hardly a question: one bare word that is like a
/// command, an option or a part of Rondo, or such a word with an argument of that command.
fn mistaken(cli: &Command, words: &[OsString], literal: bool) -> Option<Line> {
    let texts: Vec<&str> = words
        .iter()
        .filter_map(|word| OsStr::to_str(word))
        .collect();
    let (first, rest) = texts.split_first()?;
    let is_bare = first.len() == first.chars().filter(|it| is_of_a_name(*it)).count();
    if literal || !is_bare || first.is_empty() {
        return None;
    }
    let lower = first.to_ascii_lowercase();
    if rest.is_empty() && lower == "version" {
        return Some(Line::Version);
    }
    let near = nearest(cli, &lower);
    let guesses = match (rest, near) {
        ([], Some("version")) => vec!["rondo --version".to_owned()],
        ([], Some(name)) => vec![format!("rondo {name}")],
        ([], None) => guesses(cli, &lower),
        ([second, ..], Some(name)) => {
            let goes_on = cli.find_subcommand(name).is_some_and(|it| {
                *second == "latest" || it.get_subcommands().any(|it| it.get_name() == *second)
            });
            goes_on
                .then(|| format!("rondo {name} {second}"))
                .into_iter()
                .collect()
        }
        ([_, ..], None) => Vec::new(),
    };
    (!guesses.is_empty()).then(|| refused(first, &guesses, &texts))
}

/// Commands that are named if several may have been meant.
const GUESSES_MAX: usize = 4;

fn refused(first: &str, guesses: &[String], words: &[&str]) -> Line {
    let others = match guesses.len().saturating_sub(GUESSES_MAX) {
        0 => None,
        more => Some(counted(more, "other")),
    };
    let guesses = guesses
        .iter()
        .take(GUESSES_MAX)
        .map(|it| format!("`{it}`"))
        .chain(others)
        .collect::<Vec<_>>()
        .join(" or ");
    let question = words.join(" ");
    Line::Refuse {
        message: format!("there is no command `{first}`; did you mean {guesses}?"),
        hint: format!("to ask it as a question: `rondo ask {question}`"),
    }
}

fn is_of_a_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '-' || it == '_'
}

/// Returns the command that a word is most like, if it is like any.
fn nearest<'a>(cli: &'a Command, word: &str) -> Option<&'a str> {
    let names = cli.get_subcommands().map(Command::get_name);
    names
        .chain(["version"])
        .map(|name| (likeness(word, name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

fn likeness(word: &str, name: &str) -> f64 {
    let one_off = word.len() >= LETTERS_MIN && strsim::osa_distance(word, name) <= 1;
    let likeness = strsim::jaro_winkler(word, name);
    match one_off {
        true => likeness.max(LIKENESS_MIN),
        false => likeness,
    }
}

/// Returns the lines that may have been meant by a word that is like no command: the command of a noun, the commands
/// below others that have this name, or the option of this name.
fn guesses(cli: &Command, word: &str) -> Vec<String> {
    if let Some((_, command)) = NOUNS.iter().find(|it| it.0 == word) {
        return vec![format!("rondo {command}")];
    }
    let inner = inner_commands(cli, word);
    if !inner.is_empty() {
        return inner;
    }
    let known = TopLevelOptions::of(cli);
    let option = known.find(&|arg| arg.get_long() == Some(word));
    let named = option.and_then(clap::Arg::get_long);
    named
        .map(|it| format!("rondo --{it}"))
        .into_iter()
        .collect()
}

/// Returns the commands below others that have this very name.
fn inner_commands(cli: &Command, word: &str) -> Vec<String> {
    let outer = cli.get_subcommands().filter(|it| it.get_name() != "help");
    outer
        .filter(|it| it.get_subcommands().any(|inner| inner.get_name() == word))
        .filter(|_| word != "help")
        .map(|it| format!("rondo {} {word}", it.get_name()))
        .collect()
}

#[cfg(test)]
mod tests;
