//! Which messages of Telegram a message of the hub becomes.

use crate::render::{FormattedText, TEXT_UNITS_MAX, formatted, rich, split};
use bytes::Bytes;
use rondo_hub::channel::{Outgoing, OutgoingFile};

/// Messages that a text may become; a longer one is sent as a file besides its beginning.
const TEXTS_MAX: usize = 8;
/// The name of that file.
const FILE_NAME: &str = "answer.md";
const GOES_ON: &str = "\u{2026}\n\n(Continued in the file below.)";

/// Content of one message of Telegram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Markdown that Telegram reads itself.
    Rich(String),
    /// Text with entities.
    Text(FormattedText),
    /// A file of the chat's directory.
    File(OutgoingFile),
    /// A long text as a file.
    Document(&'static str, Bytes),
}

/// The messages, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) pieces: Vec<Piece>,
    /// The index of the last text, where the buttons are.
    pub(super) last_text: Option<usize>,
}

impl Plan {
    pub(super) fn new(message: &Outgoing, may_be_rich: bool) -> Self {
        let mut pieces = texts(&message.text, may_be_rich);
        let is_text = |it: &Piece| matches!(it, Piece::Rich(_) | Piece::Text(_));
        let last_text = pieces.iter().rposition(is_text);
        pieces.extend(message.files.iter().cloned().map(Piece::File));
        Self { pieces, last_text }
    }
}

fn texts(markdown: &str, may_be_rich: bool) -> Vec<Piece> {
    if let Some(markdown) = rich(markdown).filter(|_| may_be_rich) {
        return vec![Piece::Rich(markdown)];
    }
    let whole = formatted(markdown);
    let parts = split(&whole, TEXT_UNITS_MAX);
    if parts.len() <= TEXTS_MAX {
        return parts.into_iter().map(Piece::Text).collect();
    }
    let parts = split(&whole, TEXT_UNITS_MAX - GOES_ON.len())
        .into_iter()
        .take(1);
    let mut pieces: Vec<Piece> = Vec::new();
    for mut part in parts {
        part.text.push_str(GOES_ON);
        pieces.push(Piece::Text(part));
    }
    let bytes = Bytes::copy_from_slice(markdown.as_bytes());
    pieces.push(Piece::Document(FILE_NAME, bytes));
    pieces
}
