//! Rows as lines of a terminal.

use super::{Piece, Row};
use crossterm::style::{Attribute, Color, SetAttribute, SetForegroundColor};
use ratatui_core::style::{Modifier, Style};
use ratatui_crossterm::IntoCrossterm as _;
use std::fmt::Write as _;

/// Returns rows as lines, with their colors.
pub(crate) fn lines(rows: &[Row]) -> String {
    rows.iter().map(|row| line(row) + "\n").collect()
}

/// Returns a row as a line without its end.
pub(crate) fn line(row: &Row) -> String {
    let mut text = String::new();
    for piece in row.gutter.iter().chain(&row.pieces) {
        styled(piece, &mut text);
    }
    text.truncate(text.trim_end_matches(' ').len());
    text
}

fn styled(piece: &Piece, text: &mut String) {
    let plain = Style::new();
    if piece.style == plain || piece.text.trim().is_empty() {
        text.push_str(&piece.text);
        return;
    }
    for (modifier, attribute) in [
        (Modifier::BOLD, Attribute::Bold),
        (Modifier::DIM, Attribute::Dim),
        (Modifier::ITALIC, Attribute::Italic),
        (Modifier::UNDERLINED, Attribute::Underlined),
        (Modifier::CROSSED_OUT, Attribute::CrossedOut),
    ] {
        if piece.style.add_modifier.contains(modifier) {
            // A text takes everything.
            let _ = write!(text, "{}", SetAttribute(attribute));
        }
    }
    if let Some(colour) = piece.style.fg {
        let colour: Color = colour.into_crossterm();
        let _ = write!(text, "{}", SetForegroundColor(colour));
    }
    let _ = write!(text, "{}{}", piece.text, SetAttribute(Attribute::Reset));
}
