//! Ends a parked turn whose records this version cannot drive again.

use super::{Driver, ResumeError, TurnControl, TurnEnd, TurnSetup, intercept, millis};
use crate::clock::Clock;
use crate::events::EventSender;
use crate::history::History;
use crate::machine::{IN_DOUBT, TurnConfig, TurnMachine, finished_event};
use crate::observe::Moment;
use crate::ports::{Record, RecordBody};
use crate::redrive::RedriveError;
use rondo_types::{
    ErrorClass, EventBody, Message, ModelError, ResultEvent, ToolErrorCode, ToolOutcome, Transcript,
};
use std::time::Duration;

/// Message to the model about a call with an open question.
const NOT_RUN: &str =
    "the turn was waiting for an answer and could not be resumed: the call was not run";

/// Returns whether a turn waits for answers.
pub(super) fn is_parked(records: &[Record]) -> bool {
    let last = records.iter().rev().find_map(|it| match it.body {
        RecordBody::Parked { .. } => Some(true),
        RecordBody::Resumed { .. } | RecordBody::Final { .. } => Some(false),
        _ => None,
    });
    last == Some(true)
}

/// A turn to close, and the reason.
pub(super) struct Closing<'a> {
    pub(super) config: TurnConfig,
    pub(super) history: Transcript,
    pub(super) records: &'a [Record],
    pub(super) message: Message,
    pub(super) downtime: Duration,
    pub(super) why: RedriveError,
}

/// Gives every open call its result and ends the turn with what it has found, in one append: a crash leaves the turn
/// parked or over. No model is asked, since nothing is known of the state that it would be asked in.
pub(super) async fn close(
    setup: TurnSetup,
    closing: Closing<'_>,
    events: EventSender,
    control: TurnControl,
) -> Result<TurnEnd, ResumeError> {
    let Closing {
        config,
        history,
        records,
        message,
        downtime,
        why,
    } = closing;
    let last_at = records.iter().map(|it| it.at_ms).max().unwrap_or_default();
    let mut driver = Driver::new(setup, Clock::starting_at(last_at), events, control);
    driver.at = driver.clock.now();
    let at = driver.at;
    let step = records.last().map_or(0, |it| it.step);
    driver.events.observe(&Moment::Begun {
        setup: &driver.setup,
        message: &message,
    });
    driver.emit(EventBody::Init(Box::new(config.init_event())));
    let downtime_ms = millis(downtime);
    driver.batch.note_resumed(at, step, downtime_ms, 0);
    driver.emit(EventBody::Resumed { step, downtime_ms });

    let mut fold = History::following(history, records);
    for (call_id, has_begun) in fold.open_calls() {
        let outcome = match has_begun {
            true => ToolOutcome::error(ToolErrorCode::InDoubt, IN_DOUBT),
            false => ToolOutcome::error(ToolErrorCode::NotRun, NOT_RUN),
        };
        let rendering = config.profile.results;
        driver.emit(finished_event(rendering, &call_id, &outcome, 0));
        let body = RecordBody::CallResolved { call_id, outcome };
        fold.take(&record(&driver, step, body.clone()));
        driver.batch.note_change(at, step, body);
    }
    let error = ModelError::new(
        ErrorClass::Internal,
        format!("the turn was waiting for an answer, and this version cannot resume it: {why}"),
    );
    let closed = TurnMachine::new(config).closed(at, records, fold.transcript(), error);
    let Some(outcome) = closed else {
        return Err(why.into());
    };
    let process = driver.control.process_end(&outcome);
    driver.batch.note_final(at, &outcome, process);
    let written = driver
        .batch
        .flush(driver.setup.profile.limits.cancel_grace.max(CLOSE_TIMEOUT));
    if written.await.is_err() {
        // The turn still waits.
        return Err(why.into());
    }
    let result = Box::new(ResultEvent::from_outcome(&outcome));
    driver.emit(EventBody::Result(result));
    driver.events.observe(&Moment::Ended(&outcome));
    intercept::tell_end(&driver.setup.interceptors, &outcome).await;
    Ok(TurnEnd::Done(Box::new(outcome)))
}

/// How long the journal may take for it, at least.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

fn record(driver: &Driver, step: u32, body: RecordBody) -> Record {
    Record {
        turn: driver.setup.turn.clone(),
        step,
        at_ms: driver.at,
        body,
    }
}
