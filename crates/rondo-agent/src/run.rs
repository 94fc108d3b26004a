//! A running turn: its events, and methods to cancel and steer it.

use crate::budget::reserve_again;
use crate::cut_off::CutOff;
use crate::error::TurnError;
use crate::ledger::Ledger;
use futures_util::Stream;
use rondo_core::history::History;
use rondo_core::ports::Record;
use rondo_core::{
    EventReceiver, EventSender, ResumeError, TurnControl, TurnEnd, TurnHandle, TurnSetup, control,
    events, resume_turn, run_turn,
};
use rondo_types::{Message, Outcome, StopReason, Transcript, TurnEvent};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::{JoinHandle, unconstrained};
use tracing::Instrument as _;

/// A running turn: a stream of its events, with methods to cancel and steer it.
///
/// The turn runs even when the events are not read. A reader that is far behind loses text deltas,
/// which the stream reports, and no other events. The first event is `init`, the last `result`.
///
/// Dropping it ends the turn, its request and its calls at once, without an outcome. To stop a turn
/// and keep its results, call [`Run::cancel`] and then [`Run::outcome`].
#[must_use = "dropping it ends the turn"]
pub struct Run {
    events: EventReceiver,
    handle: TurnHandle,
    /// Absent when there is no tokio runtime.
    task: Option<JoinHandle<Result<Outcome, TurnError>>>,
    /// The session's journal.
    ledger: Option<Arc<Ledger>>,
}

/// How a turn begins: with a message, or from an interrupted turn.
pub(crate) enum RunStart {
    Ask(Message),
    CarryOn(CutOff, ReturnOnDrop),
    /// The turn that this process left.
    CarryOnLeft(ReturnOnDrop),
}

/// Returns an interrupted turn to its session, so that it can be resumed later.
pub(crate) type ReturnOnDrop = Box<dyn FnOnce(CutOff) + Send>;

impl Run {
    /// Runs a turn on a task of its own, after the turns that were started before it with the same
    /// history.
    pub(crate) fn start(
        setup: TurnSetup,
        start: RunStart,
        history: Arc<Mutex<Transcript>>,
        ledger: Option<Arc<Ledger>>,
    ) -> Self {
        let name = match &start {
            RunStart::Ask(_) | RunStart::CarryOnLeft(_) => setup.turn.clone(),
            RunStart::CarryOn(cut_off, _) => cut_off.turn.clone(),
        };
        let (sender, events) = events::channel(setup.session.clone(), name);
        let (handle, control) = control();
        let place = in_line(history);
        // Boxed, so that the task does not hold it beside the turn that it goes into.
        let parts = Box::new((setup, start, sender, control));
        let own_ledger = ledger.clone();
        let turn = async move {
            let mut kept = place.await;
            let left = match &ledger {
                Some(ledger) => {
                    ledger.settled().await;
                    ledger.take_left_turn()
                }
                None => None,
            };
            let left = left.map(|records| left_turn(&mut kept, records));
            let (setup, start, sender, control) = {
                // Its memory goes here; without the block it would stay to the end.
                let parts = parts;
                *parts
            };
            let (cut_off, put_back) = match start {
                RunStart::Ask(message) => {
                    let end = run_turn(setup, kept.clone(), message, sender, control).await;
                    let outcome = done(end, ledger.as_deref())?;
                    kept.clone_from(&outcome.transcript);
                    return Ok(outcome);
                }
                RunStart::CarryOn(cut_off, put_back) => (Some(cut_off), put_back),
                RunStart::CarryOnLeft(put_back) => (left.flatten(), put_back),
            };
            let cut_off = cut_off.ok_or(ResumeError::Finished)?;
            if cut_off.needs_consent {
                put_back(cut_off);
                return Err(TurnError::Imported);
            }
            // Boxed, since the future is large and most turns do not need it.
            let ledger = ledger.as_deref();
            let resumed = carry_on(setup, (&cut_off, ledger), &mut kept, (sender, control));
            let resumed = Box::pin(resumed).await;
            // A turn that is parked again has more records by now.
            if resumed.is_err() && ledger.is_none_or(|it| !it.has_left_turn()) {
                put_back(cut_off);
            }
            resumed
        };
        // Traces of the turn belong to the span of the caller.
        let turn = turn.in_current_span();
        let task = Handle::try_current().ok().map(|it| it.spawn(turn));
        Self {
            events,
            handle,
            task,
            ledger: own_ledger,
        }
    }

    /// Waits for the next event; `None` when the turn is over and all events were read.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.events.next().await
    }

    /// Waits for the end of the turn. Events that were not read are dropped.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`](crate::Agent).
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn outcome(mut self) -> Result<Outcome, TurnError> {
        self.events.close();
        let Some(task) = &mut self.task else {
            return Err(TurnError::NoRuntime);
        };
        match task.await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(outcome)) if outcome.stop_reason == StopReason::Error => Err(TurnError::Failed {
                outcome: Box::new(outcome),
            }),
            Ok(Ok(outcome)) => Ok(outcome),
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels the turn. Running tools get the profile's `cancel_grace` to end, every call gets a
    /// result, and the outcome has what was found until then.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Queues a message for the model, which reads it before its next step. Returns `false` when the
    /// turn is over or its queue is full.
    ///
    /// Messages that arrive too late for the model are in [`Outcome::undelivered_steering`].
    pub fn steer(&self, message: impl Into<Message>) -> bool {
        self.handle.steer(message)
    }

    /// Returns a handle to cancel and steer the turn from another task. Dropping it does nothing.
    #[must_use]
    pub fn handle(&self) -> TurnHandle {
        self.handle.clone()
    }
}

/// Puts the messages of a turn that was left into the history, and returns the turn.
fn left_turn(kept: &mut Transcript, records: Vec<Record>) -> Option<CutOff> {
    let history = History::following(kept.clone(), &records);
    *kept = history.transcript();
    let open = history.open_turn()?;
    Some(CutOff::new(&history, open, records))
}

/// Resumes an interrupted turn. When dropped, it leaves the messages before the turn in `kept`.
async fn carry_on(
    setup: TurnSetup,
    (cut_off, ledger): (&CutOff, Option<&Ledger>),
    kept: &mut Transcript,
    (sender, control): (EventSender, TurnControl),
) -> Result<Outcome, TurnError> {
    let before = cut_off.before.clone();
    let as_recorded = std::mem::replace(kept, before.clone());
    if let Some(ledger) = ledger {
        ledger.resume_turn(&cut_off.records);
    }
    reserve_again(&setup.budgets, &setup.session, &cut_off.records).await;
    let resumed = resume_turn(setup, before, &cut_off.records, sender, control).await;
    let resumed = resumed.map_err(TurnError::from);
    let resumed = resumed.and_then(|end| done(end, ledger));
    *kept = match &resumed {
        Ok(outcome) => outcome.transcript.clone(),
        // The next turn begins with what it has recorded.
        Err(_) if ledger.is_some_and(Ledger::has_left_turn) => return resumed,
        Err(_) => as_recorded,
    };
    resumed
}

fn done(end: TurnEnd, ledger: Option<&Ledger>) -> Result<Outcome, TurnError> {
    match end {
        TurnEnd::Done(outcome) => Ok(*outcome),
        TurnEnd::Parked(parked) => {
            if let Some(ledger) = ledger {
                ledger.leave_turn();
            }
            Err(TurnError::Parked {
                questions: parked.questions,
            })
        }
    }
}

/// Queues for the lock on the history at once, since spawned tasks may start in any order.
fn in_line(history: Arc<Mutex<Transcript>>) -> impl Future<Output = OwnedMutexGuard<Transcript>> {
    let mut place = Box::pin(unconstrained(history.lock_owned()));
    // The first poll queues for the lock; the task polls again with its own waker.
    let taken = place.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    async move {
        match taken {
            Poll::Ready(history) => history,
            Poll::Pending => place.await,
        }
    }
}

impl Stream for Run {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        Pin::new(&mut self.events).poll_next(context)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Some(task) = &self.task else {
            return;
        };
        if let Some(ledger) = self.ledger.as_ref().filter(|_| !task.is_finished()) {
            ledger.leave_turn();
        }
        task.abort();
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")
    }
}
