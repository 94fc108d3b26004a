//! One turn of `rondo ask`: run, shown, and turned into an exit code.

use super::answer_file;
use super::detach;
use super::explain::{Said, explain, stopped_by};
use super::parked;
use super::prepare::{Planned, Prepared};
use super::unless_stopped;
use crate::approver::TerminalApprover;
use crate::changes::Changes;
use crate::cli::OutputFormat;
use crate::commands::report::write_failed;
use crate::error::{CliError, Result};
use crate::exit::{Circumstances, Exit, Stop};
use crate::output::{Output, give_up};
use crate::process_end;
use crate::render::{JsonView, SilentView, TextView, View};
use crate::screen::Screen;
use crate::show_turn::{self, Brake, Ended, Signals};
use rondo_core::ports::ProcessEnd;
use rondo_core::{ParkedTurn, TurnEnd, control, events};
use rondo_runtime::sanitize::plain;
use rondo_runtime::spec::{ConnectedModel, TurnSpec};
use rondo_runtime::{TurnBuilder, TurnStart, parking};
use rondo_types::Outcome;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Runs one turn and shows it. The session has its messages then.
///
/// # Errors
/// When it cannot begin, or its output is not read.
pub(super) async fn run(
    prepared: &mut Prepared,
    planned: Planned,
    connected: ConnectedModel,
    mut signals: Signals,
    is_last: bool,
) -> Result<Exit> {
    let Planned { mut spec, start } = planned;
    let screen = Screen::new();
    let session = &mut prepared.session;
    let changes = Changes::default();
    let settings = &session.settings;
    let output = &prepared.output;
    let approver = TerminalApprover::new(settings, output, screen.clone(), changes.clone());
    let approver = Arc::new(approver);
    let answering = parking::approver(&session.settings, Arc::clone(&approver) as _);
    let with_resources = async { Ok(session.with_resources(start).await?) };
    let start = unless_stopped(&mut signals, with_resources).await?;
    let is_new = matches!(start, TurnStart::Message(_));
    if is_new {
        let limits = &mut Arc::make_mut(&mut spec.profile).limits;
        limits.turn_timeout = process_end::shortened(limits.turn_timeout);
    }
    let secrets = prepared.secrets.clone();
    let mut builder = TurnBuilder::new(spec.clone(), start, connected, answering, secrets);
    builder.schema.clone_from(&prepared.schema);
    let turn = session.turn(builder)?;
    let shows_changes = prepared.output.stderr_terminal;
    changes.watch(turn.toolset(), turn.secrets(), shows_changes);
    let (events_tx, events_rx) = events::channel(turn.session().clone(), turn.id());
    let events_tx = prepared.runtime.observe(events_tx).await;
    let text = || TextView::new(prepared.output, screen, changes);
    let view = match prepared.is_detached {
        true => Box::new(SilentView),
        false => view(prepared.format, prepared.output, text, is_last),
    };
    let (handle, turn_control) = control();
    let brake = Brake::new(handle);
    let strict = session.settings.values.strict_complete == Some(true);
    let turn_control = turn_control.noting_end(end_note(&approver, &brake, strict));
    let (over_tx, over_rx) = oneshot::channel();
    let turn = async {
        let outcome = turn.run(events_tx, turn_control).await;
        // The receiver is gone once all of it was shown.
        let _ = over_tx.send(());
        outcome
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
            prepared.session.finished(&outcome);
            let ended = ended(shown)?;
            finish(*outcome, ended, &approver, &spec, prepared, is_last).await
        }
        TurnEnd::Parked(parked) => park(parked, ended(shown)?, prepared).await,
    };
    prepared.runtime.close().await;
    exit
}

/// Runs a turn to its end. One that goes on has the limits that it began with, so the deadline of the process cuts it off
/// again.
async fn until_deadline<T>(is_new: bool, turn: impl Future<Output = T>) -> Result<T> {
    if is_new {
        return Ok(turn.await);
    }
    let message = "the deadline passed before the turn was over";
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

/// Says which session a detached turn is in, once it is recorded.
fn announced(prepared: &Prepared) -> impl Future<Output = ()> + use<> {
    let conversation = prepared.session.conversation();
    let conversation = conversation.filter(|_| prepared.is_detached);
    let known = conversation.map(|it| (it.session.to_string(), Arc::clone(&it.journal)));
    let output = prepared.output;
    async move {
        if let Some((session, journal)) = known {
            detach::announce(&session, journal, output).await;
        }
    }
}

/// Says how the process ends by an outcome, for the record of the turn's end: as [`finish`] does, before
/// anything is shown.
fn end_note(
    approver: &Arc<TerminalApprover>,
    brake: &Brake,
    strict_complete: bool,
) -> impl FnOnce(&Outcome) -> ProcessEnd + use<> {
    let (approver, brake) = (Arc::clone(approver), brake.clone());
    move |outcome| {
        let denied = approver.denied().into_iter();
        let mut process = ProcessEnd {
            exit_code: 0,
            strict_complete,
            needed_approval: denied.map(|call| call.id).collect(),
            stopped_by: brake.stopped_by().map(Stop::record),
        };
        let exit = Exit::of_outcome(outcome, Circumstances::recorded(&process));
        process.exit_code = i32::from(exit.code());
        process
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

/// Says what the turn waits for.
async fn park(parked: ParkedTurn, mut ended: Ended, prepared: &Prepared) -> Result<Exit> {
    let exit = Exit::Parked;
    process_end::set_code(exit.unread(ended.stopped_by).code());
    match ended.park(exit).await {
        Err(err) if is_unread(&err) => return Ok(exit.unread(ended.stopped_by)),
        shown => shown.map_err(write_failed)?,
    }
    process_end::set_code(exit.code());
    let session = prepared.session.conversation().map(|it| &it.session);
    let Some(session) = session.filter(|_| prepared.format == OutputFormat::Text) else {
        return Ok(exit);
    };
    let questions = &parked.questions;
    let said = [
        Said::Note(format!("the turn {}", parked::waiting(questions))),
        Said::Hint(parked::how_to_answer(session, questions)),
    ];
    print_said(said.into(), ended, prepared.output).await;
    Ok(exit)
}

/// How long what is said last may take at least.
const SAYING_TIME: Duration = Duration::from_millis(50);

async fn print_said(said: Vec<Said>, mut ended: Ended, output: Output) {
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
    prepared: &Prepared,
    is_last: bool,
) -> Result<Exit> {
    let denied = approver.denied();
    let circumstances = Circumstances {
        strict_complete: prepared.session.settings.values.strict_complete == Some(true),
        approval_missing: !denied.is_empty(),
        journal_failed: prepared.session.has_journal_failed(),
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
        said.push(Said::Note(carried_on(&outcome)));
    }
    let values = &prepared.session.settings.values;
    if outcome.answered && values.plan == Some(true) && values.ephemeral != Some(true) {
        said.push(Said::Hint(CARRY_OUT.to_owned()));
    }
    if let Err(error) = written {
        exit = error.exit;
        said.push(Said::Error(error));
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

/// What follows a plan.
const CARRY_OUT: &str =
    "nothing was changed; `rondo ask -c \"Carry out the plan.\"` approves it, and has it done";

fn carried_on(outcome: &Outcome) -> String {
    let end = match outcome.answered {
        true => "it has its answer",
        false => stopped_by(outcome.stop_reason),
    };
    format!("the turn that was cut off is over: {end}\n{}", outcome.text)
}

/// Returns whether standard output has no reader, or was not read for too long.
fn is_unread(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut
    )
}
