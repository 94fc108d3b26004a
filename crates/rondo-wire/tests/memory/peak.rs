//! Peak allocation of a decoder while it reads a body.

use crate::any_body::Case;
use peak_alloc::PeakAlloc;
use rondo_types::ModelEvent;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that a decoder may take for each byte of a body. The dearest are objects of nothing in a
/// list, which become a Rust struct each.
const FACTOR: usize = 200;

/// Bytes that it may take besides: its own state, and the first buffers.
const FIXED_BYTES: usize = 64 * 1024;

/// Returns the most bytes that were allocated during `work`, beyond those before it.
///
/// Counts the whole process, so nothing else may run beside it.
pub(crate) fn peak_bytes(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    work();
    ALLOCATOR.peak_usage().saturating_sub(before)
}

/// Fails when decoding a body takes more memory than its length explains. The events are given
/// away as a driver does.
pub(crate) fn check(name: &str, input: &[u8]) {
    let Some(case) = Case::read(input) else {
        return;
    };
    let peak = peak_bytes(|| {
        let mut decoder = case.decoder(name);
        let mut events: Vec<ModelEvent> = Vec::new();
        let read = case.pieces().try_for_each(|piece| {
            events.clear();
            decoder.push(piece, &mut events)
        });
        drop(read.and_then(|()| decoder.finish(&mut events)));
    });
    let max = case.body.len() * FACTOR + FIXED_BYTES;
    assert!(peak <= max, "{peak} bytes for {}", case.body.len());
}
