//! The bound on concurrent requests to one provider.

use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bound on concurrent requests, shared by all models that have it.
///
/// Clones share the same bound. Requests get their slots in order, and keep them until the reply has ended or
/// its stream is dropped. A turn holds no slot while its tools run, so a turn that starts another turn cannot
/// deadlock.
#[derive(Debug, Clone)]
pub struct RequestLimit {
    slots: Arc<Semaphore>,
    max: NonZeroUsize,
}

/// The right to one request. Dropping it gives it to the request that has waited longest.
pub(crate) type Slot = OwnedSemaphorePermit;

impl RequestLimit {
    /// Builds a bound of `max` requests.
    #[must_use]
    pub fn new(max: NonZeroUsize) -> Self {
        // More than the runtime can count is no bound.
        let slots = max.get().min(Semaphore::MAX_PERMITS);
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            max,
        }
    }

    /// Returns the bound.
    #[must_use]
    pub fn max(&self) -> NonZeroUsize {
        self.max
    }

    /// Returns a slot if one is free, which it only is if no request waits.
    pub(crate) fn try_enter(&self) -> Option<Slot> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Waits for a slot. There is one for every request in the end, since the semaphore is never closed.
    ///
    /// # Cancel safety
    /// Cancel safe: the place in the queue is lost, and nothing else.
    pub(crate) async fn enter(&self) -> Option<Slot> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }
}
