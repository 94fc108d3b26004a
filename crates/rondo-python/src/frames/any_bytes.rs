//! Properties of any bytes that are taken for frames. A fuzz target includes this file, and a test feeds it the
//! fuzzer's findings.

use crate::frames::{FRAME_BYTES_MAX, HEAD_BYTES, take_frame};
use serde_json::Value;

/// Fails when frames depend on how their bytes are cut. The first byte is the size of the pieces.
pub(crate) fn check(input: &[u8]) {
    let Some((size, bytes)) = input.split_first() else {
        return;
    };
    let size = usize::from(*size).max(1);
    let whole = frames(std::iter::once(bytes));
    assert_eq!(frames(bytes.chunks(size)), whole, "the cut matters");
}

/// The frames, and whether the bytes are none from some point on.
fn frames<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> (Vec<Value>, bool) {
    let (mut inbox, mut taken) = (Vec::new(), Vec::new());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            let before = inbox.len();
            match take_frame(&mut inbox) {
                Ok(Some(frame)) => taken.push(frame),
                Ok(None) => {
                    assert!(
                        inbox.len() < FRAME_BYTES_MAX + HEAD_BYTES,
                        "a frame is there"
                    );
                    break;
                }
                Err(_) => return (taken, true),
            }
            assert!(inbox.len() < before, "a frame takes bytes");
        }
    }
    (taken, false)
}
