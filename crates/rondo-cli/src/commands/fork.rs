//! `rondo fork`: a session that shares another's beginning and goes its own way from there.

use super::ask::{self, AskCommand, AskMode};
use super::report::{current_dir, write_failed};
use crate::cli::{ColorChoice, ForkArgs, OutputFormat, StepPlace};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::clock::Clock;
use rondo_core::ports::{RecordBody, Seq};
use rondo_journal::{Body, Entry, Store};
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::sessions::{self, failed, new_session};
use rondo_runtime::settings::Settings;
use rondo_types::{SessionId, TurnId};

/// The kind of a turn's first record.
const TURN_STARTED: &str = "turn_started";
/// The kind of its last.
const FINAL: &str = "final";
/// What the machine adds by itself to a step, once its calls are over. It may be recorded under the
/// number of the next one.
const ADDED: [&str; 4] = [
    "call_resolved",
    "message_added",
    "answer_refused",
    "compacted",
];

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

/// The session that was made.
struct Made {
    session: SessionId,
    /// Whether it ends within a turn.
    is_open: bool,
}

fn fork(args: &ForkArgs, env: Env, output: &Output) -> Result<Made> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open(&settings)?;
    let parent = sessions::find(&store, &args.session)?;
    let end = end_of_step(&store, &parent.id, args.at)?;
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
fn end_of_step(store: &Store, session: &SessionId, place: StepPlace) -> Result<End> {
    let turn = turn_at(store, session, place)?;
    let (last, step) = (turn.last_step, place.step);
    if step > last {
        let message = format!("the turn has no step {step}, its last is {last}");
        return Err(CliError::new(Exit::Input, message));
    }
    turn.end.ok_or_else(|| {
        let message = format!("step {step} was cut off before its end");
        let hint = "fork at an earlier step, or let `rondo resume` end it first";
        CliError::new(Exit::Input, message).hint(hint)
    })
}

/// What the records of a turn say of a step's end.
struct Found {
    turn: TurnId,
    last_step: u32,
    end: Option<End>,
}

impl Found {
    fn new(turn: TurnId) -> Self {
        Self {
            turn,
            last_step: 0,
            end: None,
        }
    }

    fn take(&mut self, entry: &Entry, step: u32) {
        if entry.turn != self.turn {
            return;
        }
        self.last_step = self.last_step.max(entry.step);
        let kind = entry.kind();
        let is_final = kind == FINAL;
        if self.end.is_none() && (is_final || entry.step > step && !ADDED.contains(&kind.as_str()))
        {
            let before = Seq(entry.seq.0.saturating_sub(1));
            self.end = Some(match entry.step > step {
                true => End {
                    seq: before,
                    is_final: false,
                },
                false => End {
                    seq: entry.seq,
                    is_final,
                },
            });
        }
    }
}

/// Follows the records to the turn that is meant, one at a time.
fn turn_at(store: &Store, session: &SessionId, place: StepPlace) -> Result<Found> {
    let mut found: Option<Found> = None;
    store.each::<CliError>(session, Seq(1), |entry| {
        let is_meant = |number| place.turn.is_none_or(|meant| meant == number);
        let is_settled = found.is_some() && place.turn.is_some();
        if !is_settled && turn_number(&entry).is_some_and(is_meant) {
            found = Some(Found::new(entry.turn.clone()));
        }
        if let Some(found) = &mut found {
            found.take(&entry, place.step);
        }
        Ok(())
    })?;
    found.ok_or_else(|| {
        let message = match place.turn {
            Some(number) => format!("the session has no turn {number}"),
            None => "the session has no turn".to_owned(),
        };
        CliError::new(Exit::Input, message)
    })
}

/// Returns the number of the turn that a record begins.
fn turn_number(entry: &Entry) -> Option<u32> {
    if entry.kind() != TURN_STARTED {
        return None;
    }
    match entry.body() {
        Ok(Body::Known(body)) => match *body {
            RecordBody::TurnStarted { turn_number, .. } => Some(turn_number),
            _ => None,
        },
        _ => None,
    }
}
