//! Bounds on what one reply may hold in memory.

/// Bounds of what one reply may hold in memory; past one of them decoding ends with
/// [`ErrorClass::TooLarge`](rondo_types::ErrorClass::TooLarge).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one line of an event stream.
    pub line_bytes_max: usize,
    /// Bytes of one event's data, or of one JSON value of a body.
    pub event_bytes_max: usize,
    /// Bytes of the whole body.
    pub response_bytes_max: u64,
    /// Tool calls of one reply, over all candidates.
    pub open_calls_max: usize,
    /// Candidates of one reply.
    pub candidates_max: usize,
}

impl Default for Bounds {
    /// Returns 16 MiB a line and an event (an image in base64 fits), 64 MiB a body, 256 calls and
    /// 16 candidates.
    fn default() -> Self {
        Self {
            line_bytes_max: 16 * 1024 * 1024,
            event_bytes_max: 16 * 1024 * 1024,
            response_bytes_max: 64 * 1024 * 1024,
            open_calls_max: 256,
            candidates_max: 16,
        }
    }
}
