//! How a running turn is cancelled and steered from outside.

use crate::machine::Input;
use crate::ports::ProcessEnd;
use rondo_types::Outcome;
use std::fmt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Steering messages that may wait for the turn to take them.
const STEERING_QUEUE: usize = 64;

/// Makes the two ends of a turn's controls.
#[must_use]
pub fn control() -> (TurnHandle, TurnControl) {
    let cancel = CancellationToken::new();
    let (tx, rx) = mpsc::channel(STEERING_QUEUE);
    let handle = TurnHandle {
        cancel: cancel.clone(),
        steering: tx,
    };
    (
        handle,
        TurnControl {
            cancel: Some(cancel),
            steering: Some(rx),
            end_note: None,
        },
    )
}

/// Stops and steers a running turn.
#[derive(Debug, Clone)]
pub struct TurnHandle {
    cancel: CancellationToken,
    steering: mpsc::Sender<String>,
}

impl TurnHandle {
    /// Asks the turn to stop. It ends what runs, gives every call a result, and returns what it
    /// has.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Says something to the model between two steps, and returns whether the turn will take it.
    #[must_use]
    pub fn steer(&self, text: String) -> bool {
        self.steering.try_send(text).is_ok()
    }
}

/// The turn's end of the controls.
pub struct TurnControl {
    cancel: Option<CancellationToken>,
    steering: Option<mpsc::Receiver<String>>,
    end_note: Option<EndNote>,
}

/// Says how the process ends by an outcome.
type EndNote = Box<dyn FnOnce(&Outcome) -> ProcessEnd + Send + Sync>;

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

    /// Returns what fires when somebody stops the turn; never, once that was noticed.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone().unwrap_or_default()
    }

    /// Waits for somebody to stop the turn, or to steer it where the turn takes that; for ever, once
    /// neither can happen.
    pub(super) async fn next(&mut self, takes_steering: bool) -> Input {
        loop {
            let cancelled = async {
                match &self.cancel {
                    Some(token) => token.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let steered = async {
                match &mut self.steering {
                    Some(steering) if takes_steering => steering.recv().await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancelled => {
                    self.cancel = None;
                    return Input::Cancel;
                }
                text = steered => match text {
                    Some(text) => return Input::Steer { text },
                    None => self.steering = None,
                },
            }
        }
    }
}
