//! `rondo replay`: replays a session from its records, without network and tools. Holds only one turn and the
//! conversation in memory.

mod changes;
mod differences;
mod live;
mod report;
mod source;

pub(super) use changes::changes;
pub(super) use differences::line as difference_line;
pub(super) use source::RecordedSession;

use super::report::{current_dir, write_failed};
use super::script::{changed_script, replayed};
use crate::cli::{OutputFormat, ReplayArgs, ToolResults};
use crate::error::{CliError, Result};
use crate::exit::{Exit, ExitFacts};
use crate::output::Output;
use live::Live;
use report::Report;
use rondo_core::ports::Record;
use rondo_core::replay::{Changes, Difference, ReplayError, ReplayedTurn, Replayer};
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_script::ReplayedScript;
use serde_json::json;

/// Runs the command.
pub(super) fn run(args: &ReplayArgs, env: Env, output: &Output) -> Result<Exit> {
    let flags = Layer {
        system_prompt: args.changes.system_prompt.clone(),
        ..Layer::default()
    };
    let settings = Settings::load(env, current_dir()?, flags, output)?;
    let recorded = source::find(&args.session, &settings)?;
    let changed = changed_script(&args.changes)?;
    if let Some(script) = replayed(recorded.script()?, changed.as_ref(), &settings)? {
        return report_script(&script, args, output);
    }
    if changed.is_some() {
        let message = format_args!("session `{}` does not belong to a script", recorded.session);
        return Err(CliError::new(Exit::Usage, message).hint("leave out `--script`"));
    }
    let changes = changes(&args.changes, &settings)?;
    let live = match args.tools {
        ToolResults::Recorded => None,
        ToolResults::Live => Some(Live::new(&recorded, &settings)?),
    };
    let format = match args.json {
        true => OutputFormat::Json,
        false => args.output_format,
    };
    let mut report = Report::new(recorded.session.clone(), format, args.strict, *output);
    let is_torn = play(&recorded, &changes, |turn, records| {
        report.turn(&turn)?;
        let reruns = live.as_ref().map(|live| live.rerun(records));
        reruns.iter().flatten().try_for_each(|it| report.rerun(it))
    })?;
    if is_torn {
        output.note("the last line of the file was cut short and was skipped");
    }
    let differs = report.end()?;
    Ok(match args.strict && differs {
        true => Exit::Differs,
        false => Exit::Answer,
    })
}

/// Describes the end of a script. Its conversations are sessions of their own.
fn report_script(script: &ReplayedScript, args: &ReplayArgs, output: &Output) -> Result<Exit> {
    let differs = !script.differences.is_empty();
    if args.json || args.output_format != OutputFormat::Text {
        let data = json!({
            "script": script.name,
            "calls": script.calls,
            "exit_code": script.exit_code,
            "differences": script.differences,
        });
        output.json(&format!("{data}\n")).map_err(write_failed)?;
    } else {
        let end = match script.exit_code {
            Some(code) => format!("exit code {code}"),
            None => "cut off".to_owned(),
        };
        let mut text = format!("script {}: {} calls, {end}\n", script.name, script.calls);
        for difference in &script.differences {
            text.push_str(&format!("  {difference}\n"));
        }
        if !differs {
            text.push_str("as recorded\n");
        }
        output.stdout(&text).map_err(write_failed)?;
    }
    Ok(match args.strict && differs {
        true => Exit::Differs,
        false => Exit::Answer,
    })
}

/// Drives a session again, turn by turn, and returns whether its file was cut short.
///
/// # Errors
/// When its records cannot be, and whatever `take` fails with.
pub(super) fn play(
    recorded: &RecordedSession,
    changes: &Changes,
    mut take: impl FnMut(ReplayedTurn, &[Record]) -> Result<()>,
) -> Result<bool> {
    let failed = |err: ReplayError| {
        let context = format!("failed to replay session `{}`", recorded.session);
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    };
    let mut replayer = Replayer::new(recorded.session.clone(), changes.clone());
    let mut is_empty = true;
    let is_torn = recorded.each_turn(|records| {
        is_empty = false;
        let mut turn = replayer.turn(records).map_err(failed)?;
        turn.differences.extend(exit_difference(&turn));
        take(turn, records)
    })?;
    match is_empty {
        true => Err(failed(ReplayError::Empty)),
        false => Ok(is_torn),
    }
}

/// Returns how the process of a turn ends by the current outcome; by the outcome alone, if nothing else
/// is recorded.
fn exit_now(turn: &ReplayedTurn) -> Option<Exit> {
    let circumstances = turn.process.as_ref().map(ExitFacts::recorded);
    let outcome = turn.outcome.as_ref()?;
    Some(Exit::of_outcome(outcome, circumstances.unwrap_or_default()))
}

fn exit_difference(turn: &ReplayedTurn) -> Option<Difference> {
    let recorded = turn.process.as_ref()?.exit_code;
    let now = i32::from(exit_now(turn)?.code());
    (recorded != now).then_some(Difference::Exit { recorded, now })
}
