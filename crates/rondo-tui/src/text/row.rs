//! One row of the screen, and how it continues.

use super::wrap::Piece;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;

/// How a row ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Break {
    /// The line ends here.
    #[default]
    Line,
    /// The line was broken at a blank, which is not shown.
    Blank,
    /// The line was broken within a word.
    Word,
}

/// One row, as it is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// Text of the row, without its gutter.
    pub(crate) pieces: Vec<Piece>,
    /// Gutter before it, which is not part of the text: marks, bars, bullets.
    pub(crate) gutter: Vec<Piece>,
    /// How it ends.
    pub(crate) end: Break,
}

impl Row {
    /// Builds a row of one style.
    pub(crate) fn of(text: impl Into<String>, style: Style) -> Self {
        Self {
            pieces: vec![Piece::new(text, style)],
            ..Self::default()
        }
    }

    /// Returns its text, without the gutter.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|it| it.text.as_str()).collect()
    }

    /// Returns all that is in it.
    pub(crate) fn whole(&self) -> String {
        let gutter = self.gutter.iter().map(|it| it.text.as_str());
        gutter.collect::<String>() + &self.text()
    }

    /// Draws it, and returns the column after it. Nothing is drawn beyond `right`.
    pub(crate) fn draw(&self, buffer: &mut Buffer, x: u16, y: u16, right: u16) -> u16 {
        let mut at = x;
        for piece in self.gutter.iter().chain(&self.pieces) {
            let room = right.saturating_sub(at);
            if room == 0 || !buffer.area.contains((at, y).into()) {
                break;
            }
            (at, _) = buffer.set_stringn(at, y, &piece.text, usize::from(room), piece.style);
        }
        at
    }
}

/// Returns the text of rows as it was before it was broken: soft breaks are joined, gutters left out.
pub(crate) fn joined<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut text = String::new();
    let mut end = None;
    for row in rows {
        match end {
            None | Some(Break::Word) => {}
            Some(Break::Blank) => text.push(' '),
            Some(Break::Line) => text.push('\n'),
        }
        text.push_str(&row.text());
        end = Some(row.end);
    }
    text
}
