//! The time, in one place.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Returns the time of the runtime's clock, which tests may stop.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the time of the system's clock, in milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    u64::try_from(millis).unwrap_or(u64::MAX)
}
