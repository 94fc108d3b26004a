use super::error::TurnError;
use futures_util::Stream;
use rondo_core::{EventReceiver, TurnHandle, TurnSetup, control, events, run_turn};
use rondo_types::{Message, Outcome, StopReason, Transcript, TurnEvent};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// A running turn: a stream of its events, and the means to stop and to steer it.
///
/// The turn goes on whether or not anybody reads: a reader that is far behind loses pieces of text,
/// which the stream says, and nothing else. The first event is `init`, the last `result`.
///
/// Dropping it ends the turn at once, and with it the request and the calls under way, without an
/// outcome; [`Run::cancel`] followed by [`Run::outcome`] stops a turn and keeps what it has.
#[must_use = "dropping it ends the turn"]
pub struct Run {
    events: EventReceiver,
    handle: TurnHandle,
    /// Absent where there is no runtime to run on.
    task: Option<JoinHandle<Outcome>>,
}

impl Run {
    /// Runs a turn on a task of its own, as soon as no other has the history.
    pub(super) fn start(
        setup: TurnSetup,
        message: Message,
        history: Arc<Mutex<Transcript>>,
    ) -> Self {
        let (sender, events) = events::channel(setup.session.clone(), setup.turn.clone());
        let (handle, control) = control();
        let turn = async move {
            let mut kept = history.lock_owned().await;
            let outcome = run_turn(setup, kept.clone(), message, sender, control).await;
            kept.clone_from(&outcome.transcript);
            outcome
        };
        let task = Handle::try_current().ok().map(|it| it.spawn(turn));
        Self {
            events,
            handle,
            task,
        }
    }

    /// Waits for the next event; `None` when the turn is over and all were taken.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.events.next().await
    }

    /// Waits for the end of the turn. Events that were not taken are dropped.
    ///
    /// # Errors
    /// When the turn failed: see [`Agent`](crate::Agent).
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn.
    pub async fn outcome(mut self) -> Result<Outcome, TurnError> {
        let Some(task) = &mut self.task else {
            return Err(TurnError::NoRuntime);
        };
        match task.await {
            Ok(outcome) if outcome.stop_reason == StopReason::Error => Err(TurnError::Failed {
                outcome: Box::new(outcome),
            }),
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(TurnError::NoRuntime),
        }
    }

    /// Asks the turn to stop. What runs is told to end and waited for, within the profile's
    /// `cancel_grace`; every call gets a result, and the outcome has what there is.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Says something to the model between two steps, and returns whether the turn will take it.
    ///
    /// What came too late for the model is in [`Outcome::unheard`].
    pub fn steer(&self, text: impl Into<String>) -> bool {
        self.handle.steer(text.into())
    }

    /// Returns a handle to stop and steer the turn from elsewhere; dropping it does nothing.
    #[must_use]
    pub fn handle(&self) -> TurnHandle {
        self.handle.clone()
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
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")
    }
}
