//! The time, in one place.

use tokio::time::Instant;

/// Returns the time of the runtime's clock, which tests may stop.
pub(crate) fn now() -> Instant {
    Instant::now()
}
