//! `rondo ask`: one question, one turn, one answer; and `rondo resume`, if the turn began before.
//!
//! # Layout
//! - `prepare`: the session, the settings and the input, before anything is asked.
//! - `input`: the input of a turn.
//! - `detach`: a turn in the background.
//! - `parked`: the output for a turn that waits for answers.
//! - `host`: the command's additions to the turns of its session.
//! - `turn`: one turn, shown; `answer_file`: the file for its answer; `explain`: the message on standard error about
//!   its end.

mod answer_file;
mod detach;
mod explain;
mod host;
mod input;
mod parked;
mod prepare;
mod turn;

pub(crate) use explain::explain;
pub(crate) use parked::{answers, how_to_answer, listed, waiting};
pub(crate) use prepare::AskMode;
pub(crate) use prepare::{agree_to_go_elsewhere, source, working_directory};

use super::report::{exit_of, print_early_result, report};
use crate::cli::{AskArgs, ColorChoice, OutputFormat};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use crate::process_end;
use crate::show_turn::{Signals, end_when_told, say_last};
use host::HostedSession;
use prepare::{PreparedAsk, PreparedSession, prepare};
use rondo_runtime::env::Env;
use tokio::task::spawn_blocking;

/// A command that asks, as it was typed.
pub(super) struct AskCommand {
    pub(super) args: AskArgs,
    pub(super) mode: AskMode,
    pub(super) env: Env,
    pub(super) color: Option<ColorChoice>,
    /// Output format that the arguments announced before they were parsed.
    pub(super) format: OutputFormat,
}

/// Runs the command.
pub(super) fn run(command: AskCommand) -> Exit {
    let format = command.format;
    let early = Output::detect(&command.env, command.color, command.args.quiet);
    if command.args.detach {
        return detach::start(&early).unwrap_or_else(|error| report(&error, &early));
    }
    if command.args.detached {
        detach::leave_terminal();
    }
    let result = match executor::of_this_thread() {
        Ok(runtime) => {
            let done = runtime.block_on(prepare_and_ask(command, early));
            // Blocking work that ignores its cancellation must not keep the process.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(EarlyFailure { error, format }),
    };
    result.unwrap_or_else(|EarlyFailure { error, format }| {
        let exit = exit_of(&error);
        say_last(move || {
            print_early_result(&error, format, &early);
            report(&error, &early);
        });
        exit
    })
}

/// Reads the turn's input beside the signals, so that one of them ends with a result too.
async fn prepare_and_ask(command: AskCommand, early: Output) -> Result<Exit, EarlyFailure> {
    let AskCommand {
        args,
        mode,
        env,
        color,
        format,
    } = command;
    let preparing = spawn_blocking(move || prepare(&args, mode, env, color, early));
    let mut signals = Signals::listen();
    let preparing = async {
        let prepared = preparing.await;
        prepared.unwrap_or_else(|err| Err(CliError::caused(Exit::Error, anyhow::Error::new(err))))
    };
    let prepared = unless_stopped(&mut signals, preparing).await;
    let prepared = prepared.map_err(|error| EarlyFailure { error, format })?;
    // On that thread, which is free now: to start one takes a while. Until here, nothing but the signals is waited for.
    drop(spawn_blocking(end_when_told));
    let (prepared, opened) = prepared;
    let format = prepared.format;
    let done = run_turns(prepared, opened, &mut signals).await;
    done.map_err(|error| EarlyFailure { error, format })
}

/// Runs the turns in order; one that did not get to its end keeps the next from beginning.
async fn run_turns(
    prepared: PreparedAsk,
    opened: PreparedSession,
    signals: &mut Signals,
) -> Result<Exit> {
    let PreparedSession {
        session,
        schema,
        earlier,
    } = opened;
    let asks = session.message.is_some();
    let mut hosted = HostedSession::begin(session, schema, (prepared.output, prepared.format))?;
    let mut number = 0;
    loop {
        let begun = hosted.next_turn(signals).await?;
        number += 1;
        let is_last = begun.is_new || !asks && number >= earlier;
        // Between two that listen, nothing is lost: what comes now is heard by both.
        let heard = std::mem::replace(signals, Signals::listen());
        let exit = turn::run(&prepared, &mut hosted, *begun, heard, is_last).await?;
        if is_last || !exit.is_an_end() {
            return Ok(exit);
        }
    }
}

/// Does what comes before a turn, unless a signal or the deadline comes first.
async fn unless_stopped<T>(
    signals: &mut Signals,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        stop = signals.next() => {
            let message = "stopped before the question was sent";
            Err(CliError::new(Exit::of_stop(stop), message))
        }
        done = process_end::in_time("the deadline passed before the question was sent", work) => done,
    }
}

/// A failure before the turn, and what standard output is to carry.
struct EarlyFailure {
    error: CliError,
    format: OutputFormat,
}
