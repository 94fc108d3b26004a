//! What the hub counts, since it was started.

use rondo_core::ports::Attempt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a hub.
#[derive(Debug, Default)]
pub struct Metrics {
    received: AtomicU64,
    duplicates: AtomicU64,
    denied: AtomicU64,
    sent: AtomicU64,
    put_off: AtomicU64,
    given_up: AtomicU64,
    resent: AtomicU64,
    quarantined: AtomicU64,
    set_aside: AtomicU64,
}

/// What they stand at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Events that were taken.
    pub received: u64,
    /// Events that came again.
    pub duplicates: u64,
    /// Events whose sender may not do that.
    pub denied: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Attempts after which a message waits.
    pub put_off: u64,
    /// Messages that were given up.
    pub given_up: u64,
    /// Messages that were sent again although they may have been there: at the most so many were seen twice.
    pub resent: u64,
    /// Messages and turns that were put aside since they ended the hub.
    pub quarantined: u64,
    /// Events that could not be taken while others could.
    pub set_aside: u64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Metrics {
    pub(crate) fn received(&self) {
        add(&self.received);
    }

    pub(crate) fn duplicate(&self) {
        add(&self.duplicates);
    }

    pub(crate) fn denied(&self) {
        add(&self.denied);
    }

    pub(crate) fn resent(&self) {
        add(&self.resent);
    }

    pub(crate) fn quarantined(&self) {
        add(&self.quarantined);
    }

    pub(crate) fn set_aside(&self) {
        add(&self.set_aside);
    }

    pub(crate) fn attempted(&self, attempt: &Attempt) {
        add(match attempt {
            Attempt::Sent(_) => &self.sent,
            Attempt::NotSent { .. } | Attempt::Unclear { .. } => &self.put_off,
            Attempt::GivenUp { .. } => &self.given_up,
        });
    }

    /// Returns what they stand at.
    #[must_use]
    pub fn counted(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            received: read(&self.received),
            duplicates: read(&self.duplicates),
            denied: read(&self.denied),
            sent: read(&self.sent),
            put_off: read(&self.put_off),
            given_up: read(&self.given_up),
            resent: read(&self.resent),
            quarantined: read(&self.quarantined),
            set_aside: read(&self.set_aside),
        }
    }
}
