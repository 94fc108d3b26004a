//! `rondo fork`: creates a session that shares another's beginning.

use super::ask::{self, AskCommand, AskMode};
use super::report::{current_dir, write_failed};
use crate::cli::{ColorChoice, ForkArgs, OutputFormat};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::sessions::{self, Fork};
use rondo_runtime::settings::Settings;

/// Runs the command.
///
/// # Errors
/// When there is no such session or step, or the journal cannot be used.
pub(super) fn run(
    args: ForkArgs,
    env: Env,
    color: Option<ColorChoice>,
    format: OutputFormat,
    output: &Output,
) -> Result<Exit> {
    let made = fork(&args, env.clone(), output)?;
    let goes_on = args.message.is_some() || made.is_open;
    if args.no_run || !goes_on {
        let line = format!("{}\n", made.session);
        output.stdout(&line).map_err(write_failed)?;
        return Ok(Exit::Answer);
    }
    output.note(&format!("forked into session `{}`", made.session));
    let mode = match args.message {
        Some(_) => AskMode::Ask,
        None => AskMode::Resume,
    };
    Ok(ask::run(AskCommand {
        args: args.going_on(made.session.as_str()),
        mode,
        env,
        color,
        format,
    }))
}

fn fork(args: &ForkArgs, env: Env, output: &Output) -> Result<Fork> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open(&settings)?;
    let parent = sessions::find(&store, &args.session)?;
    Ok(sessions::fork_at(&store, &parent.id, args.at)?)
}
