use crate::machine::Input;
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
#[derive(Debug)]
pub struct TurnControl {
    cancel: Option<CancellationToken>,
    steering: Option<mpsc::Receiver<String>>,
}

impl TurnControl {
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
