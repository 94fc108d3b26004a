//! Frames to and from the helper: four bytes of length, big-endian, then JSON. They arrive in pieces. A fuzz target
//! includes this file.

#[cfg(test)]
mod any_bytes;

use serde_json::Value;
use std::io;

/// The longest frame either side takes, in bytes. The helper bounds what it tells far below.
pub(crate) const FRAME_BYTES_MAX: usize = 4 << 20;
/// The bytes of a frame's length.
pub(crate) const HEAD_BYTES: usize = 4;

/// Takes the first complete frame out of what has arrived; `None` if there is none yet.
///
/// # Errors
/// When the bytes are not a frame.
pub(crate) fn take_frame(inbox: &mut Vec<u8>) -> io::Result<Option<Value>> {
    let Some(head) = inbox.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
        return Err(malformed());
    }
    let end = HEAD_BYTES + length;
    let Some(body) = inbox.get(HEAD_BYTES..end) else {
        return Ok(None);
    };
    let frame = serde_json::from_slice(body).map_err(|_| malformed())?;
    inbox.drain(..end);
    Ok(Some(frame))
}

pub(crate) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the frame is malformed")
}

#[cfg(test)]
mod tests {
    use super::any_bytes::check;
    use std::path::Path;

    /// Feeds the check what the fuzzer starts from, and what it found.
    #[test]
    fn the_corpus_of_frames_is_read_however_it_is_cut() {
        let corpus = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fuzz/corpus/python_frame"
        );
        let files = std::fs::read_dir(Path::new(corpus)).unwrap();
        let inputs = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        assert!(inputs.inspect(|it| check(it)).count() >= 5);
    }
}
