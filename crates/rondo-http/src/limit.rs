//! The bound on requests under way at one provider.

use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bound on requests under way at once, for all models that it is given to.
///
/// Clones are the same bound. Slots are given in the order they were asked for; a request keeps its
/// own until its reply has ended or its stream is dropped. A waiting request holds none, and a turn holds
/// none while its tools run, so turns within turns cannot wait for each other.
#[derive(Debug, Clone)]
pub struct RequestLimit {
    slots: Arc<Semaphore>,
    max: NonZeroUsize,
}

/// The right to one request. Dropping it gives it to the request that has waited longest.
pub(crate) type Slot = OwnedSemaphorePermit;

impl RequestLimit {
    /// Makes a bound of so many requests.
    #[must_use]
    pub fn new(max: NonZeroUsize) -> Self {
        // More than the runtime can count is as good as no bound.
        let slots = max.get().min(Semaphore::MAX_PERMITS);
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            max,
        }
    }

    /// Returns how many requests may be under way at once.
    #[must_use]
    pub fn max(&self) -> NonZeroUsize {
        self.max
    }

    /// Returns a slot if one is free, which it only is where no request waits.
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
