//! `rondo replay`: a session driven again from its records, without a network and without tools.

mod changes;
mod differences;
mod live;
mod report;
mod source;

pub(super) use changes::changes;
pub(super) use differences::line as difference_line;
pub(super) use source::Recorded;

use super::run::{current_dir, write_failed};
use crate::cli::{AskArgs, OutputFormat, ReplayArgs, ToolResults};
use crate::env::Env;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::Settings;
use report::Replayed;
use rondo_core::replay::{Changes, Replay, replay};

/// Runs the command.
pub(super) fn run(args: &ReplayArgs, env: Env, output: &Output) -> Result<Exit> {
    let flags = AskArgs {
        system_prompt: args.changes.system_prompt.clone(),
        ..AskArgs::default()
    };
    let settings = Settings::load(env, current_dir()?, &flags, output)?;
    let recorded = source::find(&args.session, &settings)?;
    if recorded.torn {
        output.note("the last line of the file was cut short and is left out");
    }
    let changes = changes(&args.changes, &settings)?;
    let replay = play(&recorded, &changes)?;
    let reruns = match args.tools {
        ToolResults::Recorded => Vec::new(),
        ToolResults::Live => live::rerun(&recorded, &settings)?,
    };
    let shown = Replayed {
        recorded: &recorded,
        replay: &replay,
        reruns: &reruns,
        strict: args.strict,
    };
    let format = match args.json {
        true => OutputFormat::Json,
        false => args.output_format,
    };
    output.stdout(&shown.show(format)).map_err(write_failed)?;
    Ok(match args.strict && shown.differs() {
        true => Exit::Differs,
        false => Exit::Answer,
    })
}

/// Drives a session again.
///
/// # Errors
/// When its records cannot be.
pub(super) fn play(recorded: &Recorded, changes: &Changes) -> Result<Replay> {
    replay(&recorded.session, &recorded.records, changes).map_err(|err| {
        let context = format!("failed to replay session `{}`", recorded.session);
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    })
}
