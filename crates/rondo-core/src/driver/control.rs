//! How a running turn is cancelled and steered from outside.

use crate::machine::{Action, Arguments, Input, TurnMachine};
use crate::ports::{MailId, ProcessEnd};
use rondo_types::{Message, Outcome, TimeMs};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Steering messages that may wait for the turn to take them.
const STEERING_QUEUE: usize = 64;

/// Makes the two ends of a turn's controls.
#[must_use]
pub fn control() -> (TurnHandle, TurnControl) {
    let cancel = CancellationToken::new();
    let steering = Arc::<Steering>::default();
    let handle = TurnHandle {
        cancel: cancel.clone(),
        steering: Arc::clone(&steering),
    };
    (
        handle,
        TurnControl {
            cancel: Some(cancel),
            steering,
            said: VecDeque::new(),
            end_note: None,
        },
    )
}

/// Steering messages on their way to the turn. A channel would take a kilobyte of each turn for what most
/// never see.
#[derive(Debug, Default)]
struct Steering {
    queue: Mutex<SteeringQueue>,
}

#[derive(Debug, Default)]
struct SteeringQueue {
    messages: VecDeque<(Message, Option<(MailId, u64)>)>,
    /// Rows that were taken back, until the caller was told of it.
    taken_back: Vec<MailId>,
    /// Set when the turn is over.
    is_closed: bool,
}

impl Steering {
    fn queue(&self) -> MutexGuard<'_, SteeringQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops and steers a running turn.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    cancel: CancellationToken,
    steering: Arc<Steering>,
}

impl TurnHandle {
    /// Asks the turn to stop. It ends what runs, gives every call a result, and returns what it
    /// has.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Says something to the model between two steps, and returns whether the turn will take it.
    #[must_use]
    pub fn steer(&self, message: impl Into<Message>) -> bool {
        self.steer_with(message.into(), None)
    }

    /// Says what a row of the session's mailbox said when it was read with this revision, as [`steer`](Self::steer) does.
    /// The row is removed with the record of the message unless it was edited since; one that the turn does not take stays.
    #[must_use]
    pub fn steer_from(&self, mail: MailId, revision: u64, message: Message) -> bool {
        self.steer_with(message, Some((mail, revision)))
    }

    fn steer_with(&self, message: Message, row: Option<(MailId, u64)>) -> bool {
        let mut queue = self.steering.queue();
        let takes = !queue.is_closed && queue.messages.len() < STEERING_QUEUE;
        if takes {
            queue.messages.push_back((message, row));
        }
        takes
    }

    /// Takes back what a row of the mailbox says, and returns whether the turn did not say it yet and never will.
    #[must_use]
    pub fn take_back(&self, mail: MailId) -> bool {
        let mut queue = self.steering.queue();
        let at = queue
            .messages
            .iter()
            .position(|(_, row)| row.is_some_and(|(id, _)| id == mail));
        let Some(at) = at else {
            return false;
        };
        queue.messages.remove(at);
        queue.taken_back.push(mail);
        true
    }

    /// Returns whether a row was taken back, and forgets that.
    #[must_use]
    pub fn was_taken_back(&self, mail: MailId) -> bool {
        let mut queue = self.steering.queue();
        let at = queue.taken_back.iter().position(|it| *it == mail);
        at.map(|at| queue.taken_back.swap_remove(at)).is_some()
    }
}

/// The turn's end of the controls.
pub struct TurnControl {
    cancel: Option<CancellationToken>,
    steering: Arc<Steering>,
    /// What enters the transcript by the machine's latest input, in order.
    said: VecDeque<(Message, Option<(MailId, u64)>)>,
    end_note: Option<EndNote>,
}

/// Says how the process ends by an outcome.
type EndNote = Box<dyn FnOnce(&Outcome) -> ProcessEnd + Send + Sync>;

impl Drop for TurnControl {
    fn drop(&mut self) {
        self.steering.queue().is_closed = true;
    }
}

impl fmt::Debug for TurnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnControl").finish_non_exhaustive()
    }
}

impl TurnControl {
    /// Adds the end of the process to the turn's last record: `note` is asked once, when the
    /// outcome is known.
    #[must_use]
    pub fn noting_end(
        mut self,
        note: impl FnOnce(&Outcome) -> ProcessEnd + Send + Sync + 'static,
    ) -> Self {
        self.end_note = Some(Box::new(note));
        self
    }

    pub(super) fn process_end(&mut self, outcome: &Outcome) -> Option<ProcessEnd> {
        self.end_note.take().map(|note| note(outcome))
    }

    /// Returns a token that fires when the turn is stopped; never, once that was noticed.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone().unwrap_or_default()
    }

    /// Takes the steering messages that the turn has not taken, and no more from then on.
    pub(super) fn undelivered(&mut self) -> Vec<Message> {
        let mut queue = self.steering.queue();
        queue.is_closed = true;
        queue
            .messages
            .drain(..)
            .map(|(message, _)| message)
            .collect()
    }

    /// Gives the machine an input, and before it the user's messages that came meanwhile. Those that it does not give
    /// at once wait on, so that they can be taken back until it does.
    pub(super) fn handle(
        &mut self,
        machine: &mut TurnMachine,
        at: TimeMs,
        input: Input,
        arguments: &dyn Arguments,
    ) -> Vec<Action> {
        let mut queue = self.steering.queue();
        if queue.messages.is_empty() || machine.is_done() {
            return machine.handle(at, input, arguments);
        }
        let mut given = VecDeque::new();
        while machine.takes_steering()
            && let Some((message, row)) = queue.messages.pop_front()
        {
            let steer = Input::Steer {
                message: message.clone(),
            };
            machine.handle(at, steer, arguments);
            given.push_back((message, row));
        }
        let actions = machine.handle(at, input, arguments);
        for message in machine.release_steering().into_iter().rev() {
            let row = given.pop_back().and_then(|it| it.1);
            queue.messages.push_front((message, row));
        }
        self.said.extend(given);
        actions
    }

    /// Returns the steering message that is said next, and its row with the revision that it was read with.
    pub(super) fn next_said(&mut self) -> Option<(Message, Option<(MailId, u64)>)> {
        self.said.pop_front()
    }

    /// Waits for a request to stop the turn; forever, once it came.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn cancelled(&mut self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
        self.cancel = None;
    }
}
