//! A view of text without the characters that may interrupt a secret, such as line breaks and terminal sequences.

/// Bytes of a text to search, and their offsets in it.
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// Offset of each of them.
    places: Vec<usize>,
    whole: usize,
}

impl View {
    pub(super) fn of(whole: &[u8], mut is_seen: impl FnMut(u8) -> bool) -> Self {
        let seen = whole.iter().enumerate().filter(|(_, it)| is_seen(**it));
        let (places, bytes) = seen.map(|(place, byte)| (place, *byte)).unzip();
        Self {
            bytes,
            places,
            whole: whole.len(),
        }
    }

    /// Offset of the byte; the end of all if it is behind them.
    pub(super) fn start(&self, index: usize) -> usize {
        self.places.get(index).copied().unwrap_or(self.whole)
    }

    /// End of those before `index`.
    pub(super) fn end(&self, index: usize) -> usize {
        let last = index.checked_sub(1).and_then(|last| self.places.get(last));
        last.map_or(0, |place| place + 1)
    }

    /// Returns the first of those that are among the last so many of the text.
    pub(super) fn first_within(&self, last: usize) -> usize {
        let from = self.whole.saturating_sub(last);
        self.places.partition_point(|place| *place < from)
    }
}

pub(super) fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Returns whether a terminal may show less than these bytes.
pub(super) fn has_controls(bytes: &[u8]) -> bool {
    bytes.iter().any(|it| is_ignored(*it) || *it == ESCAPE)
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// Control characters that leave no trace where they are. Line ends too, which break long lines only.
fn is_ignored(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | 0x08 | ESCAPE)
}

/// Tells what a terminal shows from what it obeys, byte by byte (ECMA-48). If the cursor is moved
/// to is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Screen {
    #[default]
    Text,
    /// Behind an escape character, and what may be between that and its last one.
    Escape,
    /// In a control sequence, such as a color.
    Sequence,
    /// In a string, such as a title or an address.
    String,
}

impl Screen {
    /// Takes a byte, and returns whether it is shown.
    pub(super) fn shows(&mut self, byte: u8) -> bool {
        let (next, is_shown) = match (*self, byte) {
            (_, ESCAPE) => (Self::Escape, false),
            (_, CANCEL | SUBSTITUTE) | (Self::String, BELL) => (Self::Text, false),
            (Self::String, _) => (Self::String, false),
            (state, byte) if is_ignored(byte) => (state, false),
            (Self::Text, _) => (Self::Text, true),
            (Self::Escape, b'[') => (Self::Sequence, false),
            (Self::Escape, b']' | b'P' | b'X' | b'^' | b'_') => (Self::String, false),
            (Self::Escape, 0x20..=0x2f) => (Self::Escape, false),
            (Self::Sequence, b'\t' | 0x08 | 0x20..=0x3f) => (Self::Sequence, false),
            (Self::Escape | Self::Sequence, byte) => (Self::Text, !byte.is_ascii()),
        };
        *self = next;
        is_shown
    }
}
