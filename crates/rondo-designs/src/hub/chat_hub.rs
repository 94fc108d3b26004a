//! The queues between channels and the loop.

use super::types::{InboundMessage, OutboundMessage};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Mutex, mpsc};

/// How many messages may wait, in each direction.
pub const QUEUE_MESSAGES_MAX: usize = 100;

/// The queues between channels and the loop: messages that came in, and answers that go out.
///
/// Both are bounded, and adding to a full one waits: nothing is dropped. One loop takes what comes in, one task of
/// the program what goes out and hands it to its channel.
pub struct ChatHub {
    inbound: Queue<InboundMessage>,
    outbound: Queue<OutboundMessage>,
    failures: RwLock<Vec<Arc<FailureCallback>>>,
}

/// Takes a message that could not be delivered, and why.
type FailureCallback = dyn Fn(&OutboundMessage, &str) + Send + Sync;

struct Queue<T> {
    sender: mpsc::Sender<T>,
    receiver: Mutex<mpsc::Receiver<T>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_MESSAGES_MAX);
        Self {
            sender,
            receiver: Mutex::new(receiver),
        }
    }
}

impl<T> Queue<T> {
    async fn push(&self, message: T) {
        // The receiver lives as long as the queue.
        let _ = self.sender.send(message).await;
    }

    async fn next(&self) -> Option<T> {
        self.receiver.lock().await.recv().await
    }
}

impl ChatHub {
    /// Builds empty queues.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inbound: Queue::default(),
            outbound: Queue::default(),
            failures: RwLock::default(),
        }
    }

    /// Adds a message that came in through a channel; waits while [`QUEUE_MESSAGES_MAX`] wait.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the message is not added.
    pub async fn receive(&self, message: InboundMessage) {
        self.inbound.push(message).await;
    }

    /// Adds a message that goes out; waits while [`QUEUE_MESSAGES_MAX`] wait.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the message is not added.
    pub async fn send(&self, message: OutboundMessage) {
        self.outbound.push(message).await;
    }

    /// Waits for the next message that came in.
    ///
    /// # Cancel safety
    /// Cancel safe: no message is lost.
    pub async fn next_inbound(&self) -> Option<InboundMessage> {
        self.inbound.next().await
    }

    /// Waits for the next message that goes out.
    ///
    /// # Cancel safety
    /// Cancel safe: no message is lost.
    pub async fn next_outbound(&self) -> Option<OutboundMessage> {
        self.outbound.next().await
    }

    /// Hands each message that goes out to its channel, one at a time, until the future is dropped. One that cannot be
    /// delivered goes to the callbacks of [`Self::on_delivery_failure`].
    ///
    /// ```
    /// use rondo::design::hub::ChatHub;
    /// # fn main() {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let hub = ChatHub::new();
    /// hub.on_delivery_failure(|message, reason| eprintln!("{}: {reason}", message.chat_id));
    /// # let shutdown = rondo::CancellationToken::new();
    /// # shutdown.cancel();
    /// tokio::select! {
    ///     biased;
    ///     () = shutdown.cancelled() => {}
    ///     () = hub.deliver(|message| async move { Err(format!("there is no {}", message.channel)) }) => {}
    /// }
    /// # })
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropped while a message is delivered, it may or may not have been, and no callback is called.
    pub async fn deliver<S, D, E>(&self, send: S)
    where
        S: Fn(OutboundMessage) -> D,
        D: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        while let Some(message) = self.next_outbound().await {
            if let Err(error) = send(message.clone()).await {
                self.delivery_failed(&message, &error.to_string());
            }
        }
    }

    /// Adds a callback that is called with each message that could not be delivered, and why. It must not block.
    pub fn on_delivery_failure(
        &self,
        callback: impl Fn(&OutboundMessage, &str) + Send + Sync + 'static,
    ) {
        let failures = self.failures.write();
        let mut failures = failures.unwrap_or_else(PoisonError::into_inner);
        failures.push(Arc::new(callback));
    }

    /// Calls the callbacks, in the order in which they were added: for programs that deliver messages themselves.
    pub fn delivery_failed(&self, message: &OutboundMessage, reason: &str) {
        tracing::warn!(
            channel = message.channel,
            chat_id = message.chat_id,
            reason,
            "a message could not be delivered"
        );
        // The lock is not held while they run, since a callback may add another one.
        let failures = self.failures.read().map(|it| it.clone());
        for callback in failures.unwrap_or_else(|poisoned| poisoned.into_inner().clone()) {
            callback(message, reason);
        }
    }
}

impl Default for ChatHub {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ChatHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatHub").finish_non_exhaustive()
    }
}
