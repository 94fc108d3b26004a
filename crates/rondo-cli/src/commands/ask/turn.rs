//! One turn of `rondo ask`: run, shown, and turned into an exit code.

use super::answer_file;
use super::detach;
use super::explain::{EndMessage, explain};
use super::host::{BegunTurn, HostedSession};
use super::parked;
use super::prepare::{KnownSession, PreparedAsk};
use crate::approver::TerminalApprover;
use crate::cli::OutputFormat;
use crate::commands::report::write_failed;
use crate::error::{CliError, Result};
use crate::exit::{Exit, ExitFacts};
use crate::output::{Output, give_up};
use crate::process_end;
use crate::render::{JsonView, SilentView, TextView, View};
use crate::show_turn::{self, Ended, Signals};
use rondo_core::{ParkedTurn, TurnEnd, events};
use rondo_runtime::sanitize::plain;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::view::stopped_by;
use rondo_types::Outcome;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Runs one turn and shows it.
///
/// # Errors
/// When it cannot be resumed, or its output is not read.
pub(super) async fn run(
    prepared: &PreparedAsk,
    hosted: &mut HostedSession,
    begun: BegunTurn,
    signals: Signals,
    is_last: bool,
) -> Result<Exit> {
    let BegunTurn {
        session,
        id,
        spec,
        is_new,
        screen,
        changes,
        approver,
        brake,
    } = begun;
    let text = || TextView::new(prepared.output, screen, changes);
    let view = match prepared.is_detached {
        true => Box::new(SilentView),
        false => view(prepared.format, prepared.output, text, is_last),
    };
    let (events_tx, events_rx) = events::channel(session, id);
    let (over_tx, over_rx) = oneshot::channel();
    let turn = async {
        let end = hosted.end(events_tx).await;
        // The receiver is gone once all of it was shown.
        let _ = over_tx.send(());
        end
    };
    let showing = show_turn::show(
        events_rx,
        view,
        brake,
        signals,
        over_rx,
        Some(show_turn::GRACE),
    );
    let both = async { tokio::join!(turn, showing) };
    let both = beside(announced(prepared), both);
    let (end, shown) = until_deadline(is_new, both).await?;
    let end = end?;
    let ended = |it: io::Result<Ended>| {
        it.map_err(|err| {
            let context = "failed to start a thread";
            CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
        })
    };
    let exit = match end {
        TurnEnd::Done(outcome) => {
            let ended = ended(shown)?;
            finish(*outcome, ended, &approver, &spec, prepared, is_last).await
        }
        TurnEnd::Parked(parked) => park(parked, ended(shown)?, prepared).await,
    };
    let another_follows = !is_last && matches!(&exit, Ok(exit) if exit.is_an_end());
    if !another_follows {
        prepared.runtime.close().await;
    }
    exit
}

/// Runs a turn to its end. One that continues has the limits that it began with, so the deadline of the process cuts it off
/// again.
async fn until_deadline<T>(is_new: bool, turn: impl Future<Output = T>) -> Result<T> {
    if is_new {
        return Ok(turn.await);
    }
    let message = "the deadline passed before the turn ended";
    let done = process_end::in_time(message, async { Ok(turn.await) }).await;
    done.map_err(|error| error.hint("`rondo resume` continues the turn"))
}

/// Does the work, and something beside it that may not come to an end.
async fn beside<T>(other: impl Future<Output = ()>, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        () = other => work.await,
    }
}

/// Prints the session of a detached turn, once it is recorded.
fn announced(prepared: &PreparedAsk) -> impl Future<Output = ()> + use<> {
    let known = prepared.is_detached.then(|| prepared.known.clone());
    let output = prepared.output;
    async move {
        if let Some(KnownSession { id, journal }) = known {
            detach::announce(id.as_str(), journal, output).await;
        }
    }
}

/// Of a turn that has to end before the requested one begins, only a note is shown.
fn view(
    format: OutputFormat,
    output: Output,
    text: impl FnOnce() -> TextView,
    is_last: bool,
) -> Box<dyn View> {
    match format {
        OutputFormat::StreamJson => Box::new(JsonView::new(output, true)),
        _ if !is_last => Box::new(SilentView),
        OutputFormat::Text => Box::new(text()),
        OutputFormat::Json => Box::new(JsonView::new(output, false)),
    }
}

/// Prints the questions that the turn waits for.
async fn park(parked: ParkedTurn, mut ended: Ended, prepared: &PreparedAsk) -> Result<Exit> {
    let exit = Exit::Parked;
    process_end::set_code(exit.unread(ended.stopped_by).code());
    match ended.park(exit).await {
        Err(err) if is_unread(&err) => return Ok(exit.unread(ended.stopped_by)),
        shown => shown.map_err(write_failed)?,
    }
    process_end::set_code(exit.code());
    if prepared.format != OutputFormat::Text {
        return Ok(exit);
    }
    let session = &prepared.known.id;
    let questions = &parked.questions;
    let said = [
        EndMessage::Note(format!("the turn {}", parked::waiting(questions))),
        EndMessage::Hint(parked::how_to_answer(session, questions)),
    ];
    print_said(said.into(), ended, prepared.output).await;
    Ok(exit)
}

/// How long what is said last may take at least.
const SAYING_TIME: Duration = Duration::from_millis(50);

async fn print_said(said: Vec<EndMessage>, mut ended: Ended, output: Output) {
    let print = move || said.iter().for_each(|it| it.print(&output));
    // Standard error is not waited for, so there is a moment for this even if the answer took all of the time.
    let soon = Instant::now() + SAYING_TIME;
    let give_up_at = ended.give_up_at().map(|it| it.max(soon));
    if ended.block_on(give_up_at, print).await.is_err() {
        give_up();
    }
}

async fn finish(
    outcome: Outcome,
    mut ended: Ended,
    approver: &TerminalApprover,
    spec: &TurnSpec,
    prepared: &PreparedAsk,
    is_last: bool,
) -> Result<Exit> {
    let denied = approver.denied();
    let circumstances = ExitFacts {
        strict_complete: prepared.values.strict_complete == Some(true),
        approval_missing: !denied.is_empty(),
        journal_failed: prepared.known.journal.has_failed(),
        stopped_by: ended.stopped_by,
    };
    let mut exit = Exit::of_outcome(&outcome, circumstances);
    let unread = exit.unread(ended.stopped_by);
    if is_last {
        process_end::set_code(unread.code());
    }
    // Before the result is shown, which says how the process ends; but a pipe may have no reader, and must
    // not keep the result.
    let text = plain(&outcome.text);
    let written = match prepared.answer_file.as_deref().filter(|_| is_last) {
        Some(path) => answer_file::write(path, text.clone(), &mut ended).await,
        None => Ok(None),
    };
    if let Err(error) = &written {
        exit = error.exit;
    }
    let (outcome, shown) = ended.finish(outcome, exit, denied.clone()).await;
    let written = match written {
        Ok(Some(pipe)) => pipe.write(text, unread, &mut ended).await,
        written => written.map(drop),
    };
    match shown {
        Err(err) if is_unread(&err) => return Ok(exit.unread(ended.stopped_by)),
        shown => shown.map_err(write_failed)?,
    }
    let mut said = explain(&outcome, exit, circumstances, &denied, spec);
    if !is_last {
        said.push(EndMessage::Note(carried_on(&outcome)));
    }
    let values = &prepared.values;
    if outcome.answered && values.plan == Some(true) && values.ephemeral != Some(true) {
        said.push(EndMessage::Hint(CARRY_OUT.to_owned()));
    }
    if let Err(error) = written {
        exit = error.exit;
        said.push(EndMessage::Error(error));
    }
    if is_last {
        process_end::set_code(exit.code());
    }
    print_said(said, ended, prepared.output).await;
    tracing::info!(
        stop_reason = outcome.stop_reason.as_str(),
        steps = outcome.steps,
        tool_calls = outcome.tool_calls,
        elapsed_ms = outcome.elapsed_ms,
        "done"
    );
    Ok(exit)
}

/// Note after a plan.
const CARRY_OUT: &str = "nothing was changed; `rondo ask -c \"Carry out the plan.\"` approves the plan and carries it out";

fn carried_on(outcome: &Outcome) -> String {
    let end = match outcome.answered {
        true => "it has its answer",
        false => stopped_by(outcome.stop_reason),
    };
    format!("the resumed turn has ended: {end}\n{}", outcome.text)
}

/// Returns whether standard output has no reader, or was not read for too long.
fn is_unread(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut
    )
}
