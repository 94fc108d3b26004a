//! Counts of the hub since it was started.

use rondo_core::ports::Attempt;
use rondo_types::{ErrorClass, Usage};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The bounds of the times that replies of models are counted by, in seconds.
pub const SECONDS: [u64; 8] = [1, 2, 5, 10, 30, 60, 120, 300];

/// Requests to models since the hub was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelCounts {
    /// Replies.
    pub replies: u64,
    /// Milliseconds that they took, from the request on.
    pub reply_ms: u64,
    /// How many of them came within each of [`SECONDS`].
    pub within: [u64; SECONDS.len()],
    /// Requests that failed, by the class of the error.
    pub errors: BTreeMap<&'static str, u64>,
    /// Tokens of the replies.
    pub usage: Usage,
}

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
    models: Mutex<ModelCounts>,
}

/// Values of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Accepted events.
    pub received: u64,
    /// Duplicate events.
    pub duplicates: u64,
    /// Events refused because of the sender's role.
    pub denied: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Attempts after which a message is still waiting.
    pub put_off: u64,
    /// Messages given up on.
    pub given_up: u64,
    /// Messages that were sent again although they may have been there: at the most so many were seen twice.
    pub resent: u64,
    /// Messages and turns quarantined because they crashed the hub.
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

    fn of_models(&self) -> MutexGuard<'_, ModelCounts> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reply of a model, which took a time unless its request was sent by an earlier process.
    pub(crate) fn replied(&self, took: Option<Duration>, usage: Usage) {
        let mut models = self.of_models();
        models.usage += usage;
        let Some(took) = took else {
            return;
        };
        models.replies += 1;
        models.reply_ms += u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let bounds = SECONDS.map(|bound| u64::from(took <= Duration::from_secs(bound)));
        for (count, is_within) in models.within.iter_mut().zip(bounds) {
            *count += is_within;
        }
    }

    /// Counts a request to a model that failed.
    pub(crate) fn request_failed(&self, class: ErrorClass) {
        *self.of_models().errors.entry(class.as_str()).or_default() += 1;
    }

    /// Returns the counts of requests to models.
    #[must_use]
    pub fn models(&self) -> ModelCounts {
        self.of_models().clone()
    }

    /// Returns the current values.
    #[must_use]
    pub fn counted(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
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
