//! Shortens a long text: its beginning and end stay, with a note of how much is missing between.

use rondo_types::text::{first_bytes, last_bytes};

/// Bytes of the line that says how much is missing, at most.
const NOTE_BYTES_MAX: usize = 48;

/// Shortens a text to `bytes`, note included; a text within the bound is unchanged.
///
/// Two thirds of what is kept are its beginning. A bound too small for the note leaves only the note.
pub(crate) fn shorten_text(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let kept = bytes.saturating_sub(NOTE_BYTES_MAX);
    let (head, tail) = (first_bytes(text, kept * 2 / 3), last_bytes(text, kept / 3));
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[{left_out} bytes left out]\n{tail}")
}
