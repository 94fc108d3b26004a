//! The time, in one place.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Returns the time of the system's clock, in seconds since 1970.
pub(crate) fn wall_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns the time of the runtime's clock, which only goes forward.
pub(crate) fn now() -> Instant {
    Instant::now()
}
