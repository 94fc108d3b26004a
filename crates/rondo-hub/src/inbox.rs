//! Inbox, to which channels hand received events.

use crate::channel::Inbound;
use async_trait::async_trait;
use std::sync::Arc;

/// Receiver of the channels' messages. Clones are the same inbox.
#[derive(Clone)]
pub struct Inbox(Arc<dyn Receiver>);

/// Makes events durable; the hub, or a test.
#[async_trait]
pub trait Receiver: Send + Sync {
    /// As [`Inbox::admits`].
    async fn admits(&self, event: &Inbound) -> bool;

    /// As [`Inbox::push`].
    async fn take(&self, event: Inbound) -> Result<InboxResult, InboxError>;

    /// As [`Inbox::receives`].
    fn receives(&self, channel: &str) {
        let _ = channel;
    }

    /// As [`Inbox::receives_nothing`].
    fn receives_nothing(&self, channel: &str, reason: &str) {
        let _ = (channel, reason);
    }
}

/// Outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InboxResult {
    /// It is durable, and is dealt with or will be.
    Accepted,
    /// It came before, and is durable.
    Duplicate,
    /// It is dropped: its sender may not do that, or it is not meant for the hub. It may be acknowledged, too.
    Dropped,
}

impl Inbox {
    /// Wraps a receiver.
    #[must_use]
    pub fn new(receiver: Arc<dyn Receiver>) -> Self {
        Self(receiver)
    }

    /// Returns whether an event would be taken, by its sender and chat and by whether it is meant for the hub. A channel
    /// asks before it fetches the files of a message, so that strangers cause no downloads; the event has none of them yet.
    pub async fn admits(&self, event: &Inbound) -> bool {
        self.0.admits(event).await
    }

    /// Takes an event. Once this returns no crash loses it, and the channel may acknowledge it.
    ///
    /// # Errors
    /// When it cannot be made durable: it must not be acknowledged, so that it is received again.
    /// [`InboxError::Full`] and [`InboxError::Malformed`] are the exceptions.
    ///
    /// # Cancel safety
    /// Not cancel safe: it may or may not have been taken. Pushed again, it counts once.
    pub async fn push(&self, event: Inbound) -> Result<InboxResult, InboxError> {
        self.0.take(event).await
    }

    /// Records that the channel of a name receives, after its failures are over.
    pub fn receives(&self, channel: &str) {
        self.0.receives(channel);
    }

    /// Records that the channel of a name receives nothing now, though it continues trying, and why. No secret may be
    /// in the reason.
    pub fn receives_nothing(&self, channel: &str, reason: &str) {
        self.0.receives_nothing(channel, reason);
    }
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// It can never be taken.
    #[error("the event is malformed: {reason}")]
    Malformed {
        /// Problem with the event.
        reason: String,
    },
    /// Too much waits in its chat, while others continue: a channel that would hold up other chats for it tells the sender
    /// that this message was not taken, and acknowledges it.
    #[error("too many messages are waiting in this chat")]
    Full,
    /// Nothing can be taken now, such as on a full disk.
    #[error("it cannot be accepted now: {reason}")]
    Later {
        /// Reason of the failure.
        reason: String,
    },
}
