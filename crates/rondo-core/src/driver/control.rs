//! How a running turn is cancelled and steered from outside.

use crate::machine::Input;
use crate::ports::{MailId, ProcessEnd};
use rondo_types::{Message, Outcome};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
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
            taken: VecDeque::new(),
            end_note: None,
        },
    )
}

/// Steering messages on their way to the turn. A channel would take a kilobyte of each turn for what most
/// never see.
#[derive(Debug, Default)]
struct Steering {
    queue: Mutex<SteeringQueue>,
    came: Notify,
}

#[derive(Debug, Default)]
struct SteeringQueue {
    messages: VecDeque<(Message, Option<MailId>)>,
    /// Whether the turn is over.
    is_closed: bool,
}

impl Steering {
    fn queue(&self) -> MutexGuard<'_, SteeringQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Cancel safety
    /// Cancel safe: a message is taken only when it is returned.
    async fn next(&self) -> (Message, Option<MailId>) {
        loop {
            if let Some(next) = self.queue().messages.pop_front() {
                return next;
            }
            self.came.notified().await;
        }
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

    /// Says what a row of the session's mailbox says, as [`steer`](Self::steer) does. The row is removed with the
    /// record of the message; one that the turn does not take stays.
    #[must_use]
    pub fn steer_from(&self, mail: MailId, message: Message) -> bool {
        self.steer_with(message, Some(mail))
    }

    fn steer_with(&self, message: Message, mail: Option<MailId>) -> bool {
        let mut queue = self.steering.queue();
        let takes = !queue.is_closed && queue.messages.len() < STEERING_QUEUE;
        if takes {
            queue.messages.push_back((message, mail));
            drop(queue);
            self.steering.came.notify_one();
        }
        takes
    }
}

/// The turn's end of the controls.
pub struct TurnControl {
    cancel: Option<CancellationToken>,
    steering: Arc<Steering>,
    /// What the turn has taken and not yet said, which it does in order.
    taken: VecDeque<(Message, Option<MailId>)>,
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
    /// Has the turn's last record tell how the process ends by it: `note` is asked once, when the
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

    /// Returns the steering message that is said next, and its row.
    pub(super) fn next_said(&mut self) -> Option<(Message, Option<MailId>)> {
        self.taken.pop_front()
    }

    /// Waits for a request to stop the turn, or to steer it where the turn takes steering; for ever, once
    /// neither can happen.
    pub(super) async fn next(&mut self, takes_steering: bool) -> Input {
        let cancelled = async {
            match &self.cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let steered = async {
            match takes_steering {
                true => self.steering.next().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancelled => {
                self.cancel = None;
                Input::Cancel
            }
            (message, mail) = steered => {
                self.taken.push_back((message.clone(), mail));
                Input::Steer { message }
            }
        }
    }
}
