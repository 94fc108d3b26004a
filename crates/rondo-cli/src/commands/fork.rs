//! `rondo fork`: a session that shares another's beginning and goes its own way from there.

use super::ask::{self, Aim, Started};
use super::run::{current_dir, write_failed};
use crate::cli::{AskArgs, ColorChoice, ForkArgs, OutputFormat, StepPlace};
use crate::env::Env;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::sessions::{self, failed, new_session};
use crate::settings::Settings;
use rondo_core::clock::Clock;
use rondo_core::ports::{RecordBody, Seq};
use rondo_journal::{Body, Entry};
use rondo_types::{SessionId, TurnId};

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
    output.note(&format!("session `{}` is the fork", made.session));
    let aim = match args.message {
        Some(_) => Aim::Ask,
        None => Aim::Resume,
    };
    Ok(ask::run(Started {
        args: args.going_on(made.session.as_str()),
        aim,
        env,
        color,
        format,
    }))
}

/// The session that was made.
struct Made {
    session: SessionId,
    /// Whether it ends within a turn.
    is_open: bool,
}

fn fork(args: &ForkArgs, env: Env, output: &Output) -> Result<Made> {
    let settings = Settings::load(env, current_dir()?, &AskArgs::default(), output)?;
    let store = sessions::open(&settings)?;
    let parent = sessions::find(&store, &args.session)?;
    let entries = store.read_all(&parent.id).map_err(failed)?;
    let end = end_of_step(&entries, args.at)?;
    let now = Clock::system().now();
    let session = new_session(now);
    store
        .fork(&parent.id, end.seq, &session, now)
        .map_err(failed)?;
    Ok(Made {
        session,
        is_open: !end.is_final,
    })
}

/// Where a step is over.
#[derive(Debug, PartialEq, Eq)]
struct End {
    seq: Seq,
    /// Whether its turn is over with it.
    is_final: bool,
}

/// Finds the last record of a step that came to its end: another one began, or the turn ended. All
/// calls of such a step have their results.
fn end_of_step(entries: &[Entry], place: StepPlace) -> Result<End> {
    let turn = turn_at(entries, place)?;
    let of_turn: Vec<&Entry> = entries.iter().filter(|entry| entry.turn == turn).collect();
    let steps = of_turn.iter().map(|entry| entry.step).max().unwrap_or(0);
    if place.step > steps {
        let message = format!("the turn has no step {}, its last is {steps}", place.step);
        return Err(CliError::new(Exit::Input, message));
    }
    let next = of_turn.iter().find(|entry| entry.step > place.step);
    let last = of_turn.last().filter(|entry| entry.kind() == "final");
    match (next, last) {
        (Some(next), _) => Ok(End {
            seq: Seq(next.seq.0.saturating_sub(1)),
            is_final: false,
        }),
        (None, Some(last)) => Ok(End {
            seq: last.seq,
            is_final: true,
        }),
        (None, None) => {
            let message = format!("step {} was cut off before its end", place.step);
            let hint = "fork at an earlier step, or let `rondo resume` end it first";
            Err(CliError::new(Exit::Input, message).hint(hint))
        }
    }
}

fn turn_at(entries: &[Entry], place: StepPlace) -> Result<TurnId> {
    let mut begun = entries.iter().filter_map(|entry| match entry.body() {
        Ok(Body::Known(body)) => match *body {
            RecordBody::TurnStarted { turn_number, .. } => Some((turn_number, &entry.turn)),
            _ => None,
        },
        _ => None,
    });
    let found = match place.turn {
        Some(number) => begun.find(|(known, _)| *known == number),
        None => begun.next_back(),
    };
    found.map(|(_, turn)| turn.clone()).ok_or_else(|| {
        let message = match place.turn {
            Some(number) => format!("the session has no turn {number}"),
            None => "the session has no turn".to_owned(),
        };
        CliError::new(Exit::Input, message)
    })
}
