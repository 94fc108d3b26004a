//! Shortens a long text: its beginning and end stay, with a note of how much is missing between.

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
