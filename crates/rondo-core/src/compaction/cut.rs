//! Cuts a long text in its middle, with a note of how much is missing.

/// Bytes of the line that says how much is missing, at most.
const NOTE_BYTES_MAX: usize = 48;

/// Keeps head and tail of a text, in `bytes` altogether; a shorter one stays as it is.
///
/// Two thirds are its beginning. A bound that has no room for the note leaves the note alone.
pub(crate) fn cut_text(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let kept = bytes.saturating_sub(NOTE_BYTES_MAX);
    let head = floor_boundary(text, kept * 2 / 3);
    let tail = ceil_boundary(text, text.len() - kept / 3);
    let (kept_head, _) = text.split_at(head);
    let (_, kept_tail) = text.split_at(tail);
    format!("{kept_head}\n[{} bytes left out]\n{kept_tail}", tail - head)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}
