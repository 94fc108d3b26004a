//! Runs the command of the arguments, and turns its result into the exit code.

use super::ask::{AskCommand, AskMode};
use super::report::{current_dir, exit_of, print_early_result, report, write_failed};
use super::{
    answer, ask, attach, chat, completion, config, context, cron, doctor, fork, mcp, memory,
    models, outbox, policy, profiles, replay, script, serve, session, skills, test, trust, usage,
    users, wire,
};
use crate::cli::{Cli, ColorChoice, Command, Line, OutputFormat, Stdin, Streams, read_line};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::interactive;
use crate::log;
use crate::output::{self, Output};
use crate::process_end;
use crate::user_input;
use clap::FromArgMatches as _;
use clap::error::ErrorKind;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::values::{TimeSpan, Word as _};
use rustix::termios::isatty;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

/// Runs the command line and returns the exit code.
///
/// `args` is everything, the program's name first. The numbers are those of `docs/exit-codes.md`.
#[must_use]
pub fn run(args: Vec<OsString>) -> u8 {
    process_end::note_start();
    if let Some(code) = completion::answer_shell(&args) {
        return code;
    }
    let env = Env::from_env();
    let typed = args.clone();
    let cli = Cli::definition();
    let exit = match read_line(&cli, args, streams()) {
        Line::Parse { args, implied } => return parse(cli, &args, implied, env),
        Line::Help => return parse(cli, &["rondo".into()], false, env),
        Line::Version => return parse(cli, &["rondo".into(), "--version".into()], false, env),
        Line::Refuse { message, hint } => {
            let error = CliError::new(Exit::Usage, message).hint(hint);
            let format = format_of(&typed, &env);
            let output = Output::detect(&env, None, false);
            print_early_result(&error, format, &output);
            report(&error, &output)
        }
    };
    exit.code()
}

/// Parses arguments that name a command, runs it, and returns the exit code.
fn parse(mut cli: clap::Command, args: &[OsString], implied: bool, env: Env) -> u8 {
    let format = announced_format(args, &env);
    let matches = cli.try_get_matches_from_mut(args);
    let parsed = matches.and_then(|mut matches| {
        Cli::from_arg_matches_mut(&mut matches).map_err(|err| err.format(&mut cli))
    });
    match parsed {
        Ok(mut cli) => {
            match &mut cli.command {
                Command::Ask(ask) => ask.implied = implied,
                Command::Repl(repl) => repl.implied = implied,
                _ => {}
            }
            start(cli, env, format)
        }
        Err(err) => refuse(&err, args, &env, format).code(),
    }
}

fn streams() -> Streams {
    let stdin = io::stdin();
    let stdin = if isatty(&stdin) {
        Stdin::Terminal
    } else if user_input::is_empty(&stdin) {
        Stdin::Nothing
    } else {
        Stdin::Something
    };
    Streams {
        stdin,
        terminal: isatty(io::stdout()) && isatty(io::stderr()),
    }
}

fn start(cli: Cli, env: Env, format: OutputFormat) -> u8 {
    let quiet = match &cli.command {
        Command::Ask(args) => args.quiet,
        Command::Resume(args) => args.options.quiet,
        Command::Answer(args) => args.options.quiet,
        Command::Fork(args) => args.quiet,
        _ => false,
    };
    let output = Output::detect(&env, cli.color, quiet);
    let color = cli.color;
    let bounded = process_end::bound(deadline(&cli.command, &env));
    if let Err(error) = bounded.and_then(|()| log::start(logged(&cli), &env)) {
        print_early_result(&error, format, &output);
        return report(&error, &output).code();
    }
    if let Command::Run(args) = cli.command {
        return script::run(*args, env, color, output).code();
    }
    started(cli.command, env, (color, cli.verbose), format, &output).code()
}

/// Returns the log's filter. A gateway's terminal is not watched, so its log has its warnings.
fn logged(cli: &Cli) -> log::LogOptions {
    let verbose = cli.verbose;
    match &cli.command {
        Command::Serve(args) => log::LogOptions {
            verbose,
            warns: true,
            format: args.log_format,
        },
        _ => log::LogOptions {
            verbose,
            ..log::LogOptions::default()
        },
    }
}

/// Returns the deadline that the arguments or the environment set. That of the other settings is known later.
fn deadline(command: &Command, env: &Env) -> Option<Duration> {
    let turn = match command {
        Command::Ask(args) => &args.turn,
        Command::Run(args) => &args.turn,
        // A turn that continues has the deadline that it began with; this one bounds the process.
        Command::Resume(args) => return args.options.deadline.map(|it| it.0),
        Command::Answer(args) => return args.options.deadline.map(|it| it.0),
        _ => return None,
    };
    // A text that is not a time is reported with the other settings.
    let of_env = || env.get("RONDO_DEADLINE")?.parse::<TimeSpan>().ok();
    turn.deadline.or_else(of_env).map(|it| it.0)
}

/// Runs a command that ends with one of our own exit codes.
fn started(
    command: Command,
    env: Env,
    (color, verbose): (Option<ColorChoice>, u8),
    format: OutputFormat,
    output: &Output,
) -> Exit {
    let done = match command {
        Command::Ask(args) => {
            return ask::run(AskCommand {
                args: *args,
                mode: AskMode::Ask,
                env,
                color,
                format,
            });
        }
        Command::Resume(args) => {
            let mut going_on = args.options.going_on(args.session);
            going_on.turn.model = args.model;
            return ask::run(AskCommand {
                args: going_on,
                mode: AskMode::Resume,
                env,
                color,
                format,
            });
        }
        Command::Answer(args) => answer::run(*args, env, color, format, output),
        Command::Attach(args) => attach::run(&args, env, color, output),
        // `start` has run it, since it ends with codes of its own.
        Command::Run(_) => Ok(Exit::Answer),
        Command::Repl(args) => interactive::run(*args, &env, color, verbose, output),
        Command::Fork(args) => fork::run(*args, env, color, format, output),
        Command::Chat(args) => chat::run(args, env, output),
        Command::Users(args) => users::run(args, env, output),
        Command::Session(args) => session::run(&args, env, output),
        Command::Replay(args) => replay::run(&args, env, output),
        Command::Test(args) => test::run(&args, env, output),
        Command::Profiles(args) => with_settings(env, output, |settings| {
            profiles::run(&args, &settings, output)
        }),
        Command::Skills(args) => with_settings(env, output, |settings| {
            skills::run(&args, &settings, output)
        }),
        Command::Serve(args) => serve::run(&args, env, output),
        Command::Onboard(args) => serve::onboard::run(&args, &env, output),
        Command::Context(args) => context::run(&args, env, output),
        Command::Outbox(args) => outbox::run(&args, env, output),
        Command::Cron(args) => cron::run(&args, env, output),
        Command::Usage(args) => usage::run(&args, env, output),
        Command::Models(args) => models::run(&args, env, output),
        Command::Wire(args) => wire::run(args, output),
        Command::Config(args) => config::run(&args, env, output),
        Command::Trust(args) => trust::run(&args, env, output),
        Command::Policy(args) => policy::run(&args, env, output),
        Command::Mcp(args) => mcp::run(&args, env, output),
        Command::Memory(args) => memory::run(&args, env, output),
        Command::Doctor(args) => doctor::run(&args, env, output),
        Command::Completion { shell } => completion::run(shell, output),
    };
    done.unwrap_or_else(|error| report(&error, output))
}

/// Runs a command that wants the settings of the current directory.
fn with_settings(
    env: Env,
    output: &Output,
    command: impl FnOnce(Settings) -> Result<Exit>,
) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    command(settings)
}

/// Answers what the parser could not make sense of: help and version are answers too.
fn refuse(err: &clap::Error, args: &[OsString], env: &Env, format: OutputFormat) -> Exit {
    let shown = matches!(
        err.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if shown && err.exit_code() == 0 {
        let printed = err.print();
        return printed.map_or_else(|err| exit_of(&write_failed(err)), |()| Exit::Answer);
    }
    let rendered = err.render();
    output::stderr(&match Output::detect(env, None, false).stderr_color {
        true => rendered.ansi().to_string(),
        false => rendered.to_string(),
    });
    if may_be_a_question(err, args) {
        Output::detect(env, None, false).hint("to ask it as a question: `rondo ask \"...\"`");
    }
    let text = err.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let error = CliError::new(Exit::Usage, first.trim_start_matches("error: "));
    print_early_result(&error, format, &Output::detect(env, None, true));
    Exit::Usage
}

/// Returns whether words that begin with a command's name may have been meant for a model, as in
/// `rondo test the login`.
fn may_be_a_question(err: &clap::Error, args: &[OsString]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let is_prose = words
        .iter()
        .skip(1)
        .all(|word| !word.starts_with('-') && !word.contains('/'));
    let is_about_words = matches!(
        err.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand | ErrorKind::InvalidValue
    );
    is_about_words && is_prose && words.len() > 2
}

/// Looks for the output format before the arguments are parsed, so that even a usage error ends in
/// a `result` object if one is expected.
fn announced_format(args: &[OsString], env: &Env) -> OutputFormat {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    if !matches!(
        first_command(&words),
        Some("answer" | "ask" | "attach" | "fork" | "resume")
    ) {
        return OutputFormat::Text;
    }
    format_of(args, env)
}

/// Looks for the output format in arguments of a command that has one.
fn format_of(args: &[OsString], env: &Env) -> OutputFormat {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let flags = words.split(|word| *word == "--").next().unwrap_or_default();
    let spelled = flags
        .iter()
        .rev()
        .find_map(|word| word.strip_prefix("--output-format="));
    let spaced = flags.windows(2).rev().find_map(|pair| match pair {
        ["--output-format", value] => Some(*value),
        _ => None,
    });
    if flags.contains(&"--json") {
        return OutputFormat::Json;
    }
    let named = spelled.or(spaced).or(env.get("RONDO_OUTPUT_FORMAT"));
    named
        .and_then(|value| OutputFormat::read(value).ok())
        .unwrap_or(OutputFormat::Text)
}

/// Returns the command, which may follow flags that every command takes.
fn first_command<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match *word {
            "--color" => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            command => return Some(command),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_known_before_the_arguments_are_parsed() {
        let format = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            announced_format(&args, &Env::default())
        };
        assert_eq!(format("rondo ask --json x"), OutputFormat::Json);
        assert_eq!(
            format("rondo ask --output-format stream-json --nope"),
            OutputFormat::StreamJson
        );
        assert_eq!(format("rondo ask --output-format=json"), OutputFormat::Json);
        assert_eq!(format("rondo ask -- --json"), OutputFormat::Text);
        assert_eq!(format("rondo -v ask --json --no"), OutputFormat::Json);
        assert_eq!(format("rondo --color never ask --json"), OutputFormat::Json);
        assert_eq!(format("rondo --color=never doctor"), OutputFormat::Text);
        assert_eq!(format("rondo doctor --json"), OutputFormat::Text);
    }
}
