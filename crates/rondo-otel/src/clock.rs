//! The one place of this crate that reads a clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Wall time that never jumps within the life of the value.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// The system's time at the beginning, then the monotonic clock.
    pub(crate) fn system() -> Self {
        let (wall, start) = (SystemTime::now(), Instant::now());
        Self::new(move || wall + start.elapsed())
    }

    pub(crate) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Returns the seconds from one time to another; none if the clock was set back.
pub(crate) fn seconds(from: SystemTime, to: SystemTime) -> f64 {
    to.duration_since(from)
        .unwrap_or(Duration::ZERO)
        .as_secs_f64()
}

/// A point in time that is waited for at most.
pub(crate) struct Deadline {
    started: Instant,
    within: Duration,
}

impl Deadline {
    pub(crate) fn after(within: Duration) -> Self {
        Self {
            started: Instant::now(),
            within,
        }
    }

    /// Returns how long it may still take.
    pub(crate) fn left(&self) -> Duration {
        self.within.saturating_sub(self.started.elapsed())
    }
}
