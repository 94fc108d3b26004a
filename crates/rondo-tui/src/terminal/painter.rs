//! Turns frames into bytes: only what changed, in one synchronized update.

use super::encode::Encoder;
use crossterm::cursor::{Hide, Show};
use crossterm::queue;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Position, Rect};
use std::io::{self, Write as _};

/// Begins and ends an update that a terminal shows at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// Rows that have to move for moving them to be worth it.
const MOVED_MIN: u16 = 3;

/// Rows that moved up since the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MovedRows {
    /// Place: rows from `top` to before `bottom`.
    pub(crate) top: u16,
    /// The row after the last.
    pub(crate) bottom: u16,
    /// By how many rows.
    pub(crate) by: u16,
}

/// Knows what is on the terminal.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    shown: Buffer,
    caret: Option<Position>,
    /// Set if the terminal may show something else.
    is_lost: bool,
    /// Set if the terminal draws signs of ambiguous width two columns wide.
    has_wide_signs: bool,
}

impl Painter {
    /// Paints for a terminal that may draw signs of ambiguous width two columns wide.
    pub(crate) fn new(has_wide_signs: bool) -> Self {
        Self {
            has_wide_signs,
            ..Self::default()
        }
    }

    /// Draws the next frame as a whole, such as after another program had the terminal.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Returns the bytes that make a terminal show a frame, with its caret; nothing if it shows it already.
    ///
    /// # Errors
    /// None that comes from outside: the bytes are collected in memory.
    pub(crate) fn paint(
        &mut self,
        frame: Buffer,
        caret: Option<Position>,
        moved: Option<MovedRows>,
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.is_lost || self.shown.area != frame.area {
            bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
            self.shown = Buffer::empty(frame.area);
            self.caret = None;
        } else if let Some(moved) = moved {
            self.move_up(moved, &mut bytes);
        }
        let changes: Vec<(u16, u16, &Cell)> = self.shown.diff(&frame);
        if changes.is_empty() && bytes.is_empty() && caret == self.caret && !self.is_lost {
            return Ok(Vec::new());
        }
        let mut encoder = Encoder::new(&mut bytes, self.has_wide_signs);
        encoder.draw(&changes, &frame);
        if let Some(at) = caret {
            encoder.move_to(at);
        }
        match (self.caret, caret) {
            (None, Some(_)) => queue!(bytes, Show)?,
            // A terminal that may show something else may show its caret, too.
            (_, None) => queue!(bytes, Hide)?,
            (Some(_), Some(_)) => {}
        }
        self.is_lost = false;
        self.caret = caret;
        self.shown = frame;
        Ok([BEGIN, &bytes, END].concat())
    }

    /// Moves rows on the terminal, if that saves drawing them.
    fn move_up(&mut self, moved: MovedRows, bytes: &mut Vec<u8>) {
        let MovedRows { top, bottom, by } = moved;
        let area = self.shown.area;
        let height = bottom.saturating_sub(top);
        if by == 0 || by + MOVED_MIN > height || bottom > area.height {
            return;
        }
        // The bytes are collected in memory, which takes them.
        let _ = write!(bytes, "\x1b[0m\x1b[{};{bottom}r\x1b[{by}S\x1b[r", top + 1);
        let strip = Rect::new(0, top, area.width, height);
        let mut next = Buffer::empty(strip);
        for y in top..bottom - by {
            for x in 0..area.width {
                let from = self.shown.cell((x, y + by)).cloned();
                if let (Some(from), Some(cell)) = (from, next.cell_mut((x, y))) {
                    *cell = from;
                }
            }
        }
        for y in top..bottom {
            for x in 0..area.width {
                let from = next.cell((x, y)).cloned().unwrap_or_default();
                if let Some(cell) = self.shown.cell_mut((x, y)) {
                    *cell = from;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::style::{Color, Style};

    const AREA: Rect = Rect::new(0, 0, 40, 10);

    fn frame(lines: &[String]) -> Buffer {
        let mut buffer = Buffer::empty(AREA);
        for (line, y) in lines.iter().zip(0..) {
            buffer.set_stringn(0, y, line, 40, Style::new().fg(Color::Green));
        }
        buffer
    }

    fn terminal() -> vt100::Parser {
        let size = |cells| std::num::NonZeroU16::new(cells).unwrap();
        vt100::Parser::new(size(10), size(40), 0)
    }

    #[test]
    fn a_frame_that_is_shown_already_costs_nothing() {
        let mut painter = Painter::default();
        let lines = ["a".to_owned()];
        let caret = Some(Position::new(1, 0));
        assert!(
            !painter
                .paint(frame(&lines), caret, None)
                .unwrap()
                .is_empty()
        );
        assert!(
            painter
                .paint(frame(&lines), caret, None)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_terminal_shows_what_was_drawn_also_where_rows_move() {
        let (mut painter, mut terminal) = (Painter::default(), terminal());
        for count in 0..60_usize {
            let line = |at: usize| format!("line {at} 日本 {}", "x".repeat(at % 7));
            let lines: Vec<String> = (count..count + 8).map(line).collect();
            let moved = MovedRows {
                top: 0,
                bottom: 8,
                by: 1,
            };
            let next = frame(&lines);
            let bytes = painter.paint(next, None, Some(moved).filter(|_| count > 0));
            terminal.process(&bytes.unwrap());
            let shown: Vec<String> = terminal.screen().rows(0, 40).take(8).collect();
            assert_eq!(shown, lines, "{count}");
        }
    }

    #[test]
    fn moving_rows_costs_less_than_drawing_them() {
        let mut painter = Painter::default();
        let lines: Vec<String> = (0..9)
            .map(|at| format!("{at} {}", "word ".repeat(7)))
            .collect();
        painter.paint(frame(&lines[..8]), None, None).unwrap();
        let moved = MovedRows {
            top: 0,
            bottom: 8,
            by: 1,
        };
        let bytes = painter
            .paint(frame(&lines[1..]), None, Some(moved))
            .unwrap();
        assert!(bytes.len() < 200, "{}", bytes.len());
    }

    #[test]
    fn a_typed_letter_costs_at_most_two_hundred_bytes() {
        let mut painter = Painter::default();
        let caret = |x| Some(Position::new(x, 0));
        painter
            .paint(frame(&["a".to_owned()]), caret(1), None)
            .unwrap();
        let bytes = painter
            .paint(frame(&["ab".to_owned()]), caret(2), None)
            .unwrap();
        assert!(bytes.len() <= 200, "{}", bytes.len());
    }
}
