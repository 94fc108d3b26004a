//! The queues between channels and the loop.

use super::types::{InboundMessage, OutboundMessage};
use std::fmt;
use tokio::sync::{Mutex, mpsc};

/// How many messages may wait, in each direction.
pub const QUEUE_MESSAGES_MAX: usize = 100;

/// The queues between channels and the loop: messages that came in, and answers that go out.
///
/// Both are bounded, and whoever adds to a full one waits: nothing is dropped. One loop takes what comes in, one task of
/// the program what goes out and hands it to its channel.
pub struct ChatHub {
    inbound: Queue<InboundMessage>,
    outbound: Queue<OutboundMessage>,
}

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
