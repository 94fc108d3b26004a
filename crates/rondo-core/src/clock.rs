//! The one place of this crate that reads a clock.

use rondo_types::TimeMs;
use std::time::SystemTime;
use tokio::time::Instant;

/// Wall time that never jumps: the system's time at the beginning, then the monotonic clock.
///
/// Under tokio's paused time it stands still with it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started_at: TimeMs,
    started: Instant,
}

impl Clock {
    /// Starts from the system's time.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since_epoch.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        Self::starting_at(TimeMs(millis))
    }

    /// Starts from a given time.
    #[must_use]
    pub fn starting_at(started_at: TimeMs) -> Self {
        Self {
            started_at,
            started: Instant::now(),
        }
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> TimeMs {
        self.started_at.after(self.started.elapsed())
    }

    /// Converts to the runtime's instants.
    #[must_use]
    pub fn instant(&self, at: TimeMs) -> Instant {
        self.started + at.since(self.started_at)
    }
}
