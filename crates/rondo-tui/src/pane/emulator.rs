//! The terminal: a grid with a bounded scrollback, and the replies to what programs ask.

use super::cells::{CellContent, shown};
use super::keyboard;
use super::strings::WithoutStrings;
use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::{Dimensions, Scroll};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
use alacritty_terminal::vte::{Params, Parser, Perform};
use crossterm::event::KeyEvent;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use rondo_runtime::cells::PtySize;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use unicode_width::UnicodeWidthChar as _;

/// Rows that are kept above those that are shown.
const SCROLLBACK_ROWS: usize = 2_000;
/// Bytes of replies that wait; a program that asks for more gets none.
const REPLY_BYTES_MAX: usize = 4 << 10;
/// Characters without a width that are taken before those that cells hold are forgotten: any number fits one cell.
const ZERO_WIDTHS_MAX: usize = 64 << 10;

/// A terminal.
pub(crate) struct Emulator {
    term: Term<Replies>,
    parser: Processor<StdSyncHandler>,
    strings: WithoutStrings,
    watching: (Parser, Watch),
    replies: Replies,
    size: PtySize,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Replies of the terminal to the program. Titles, bells and the clipboard are dropped here.
#[derive(Clone, Default)]
struct Replies(Arc<Mutex<Vec<u8>>>);

impl EventListener for Replies {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(text) = event {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() + text.len() <= REPLY_BYTES_MAX {
                waiting.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Events beside the grid.
#[derive(Default)]
struct Watch {
    /// Set if a program took the whole screen since the last query.
    took_screen: bool,
    zero_widths: usize,
}

impl Perform for Watch {
    fn print(&mut self, c: char) {
        if c.width().unwrap_or(0) == 0 {
            self.zero_widths += 1;
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        let switches = params
            .iter()
            .flatten()
            .any(|it| matches!(it, 47 | 1047 | 1049));
        if intermediates == b"?" && action == 'h' && switches {
            self.took_screen = true;
        }
    }
}

struct Size(PtySize);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.0.columns)
    }
}

impl Default for Emulator {
    fn default() -> Self {
        let size = PtySize::default();
        let replies = Replies::default();
        let config = Config {
            scrolling_history: SCROLLBACK_ROWS,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &Size(size), replies.clone()),
            parser: Processor::new(),
            strings: WithoutStrings::default(),
            watching: (Parser::new(), Watch::default()),
            replies,
            size,
        }
    }
}

impl Emulator {
    /// Takes the output of a program. Returns the terminal's reply.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let passed = self.strings.pass(bytes);
        self.parser.advance(&mut self.term, &passed);
        let (parser, watch) = &mut self.watching;
        parser.advance(watch, &passed);
        if watch.zero_widths > ZERO_WIDTHS_MAX {
            watch.zero_widths = 0;
            self.forget_zero_widths();
        }
        let mut waiting = self.replies.0.lock();
        let waiting = waiting.as_mut().map(|it| mem::take(&mut **it));
        waiting.unwrap_or_default()
    }

    fn forget_zero_widths(&mut self) {
        let grid = self.term.grid_mut();
        let (top, bottom, columns) = (grid.topmost_line(), grid.bottommost_line(), grid.columns());
        for line in top.0..=bottom.0 {
            for column in 0..columns {
                grid[Line(line)][Column(column)].extra = None;
            }
        }
    }

    /// Takes text, whose lines end as those of a file do.
    pub(crate) fn feed_text(&mut self, text: &str) {
        drop(self.feed(text.replace('\n', "\r\n").as_bytes()));
    }

    /// Makes it ready for what comes after a program, however that left it. Returns whether the program took the whole
    /// screen.
    pub(crate) fn end_program(&mut self) -> bool {
        self.parser.stop_sync(&mut self.term);
        if self.term.mode().contains(TermMode::ALT_SCREEN) {
            self.feed(b"\x1b[?1049l");
        }
        // Attributes, the caret, keypad, pastes, and the mouse.
        self.feed(b"\x18\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l");
        if self.term.grid().cursor.point.column.0 > 0 {
            self.feed(b"\r\n");
        }
        mem::take(&mut self.watching.1.took_screen)
    }

    pub(crate) fn size(&self) -> PtySize {
        self.size
    }

    /// Gives it another size, to which its rows are wrapped again.
    pub(crate) fn resize(&mut self, size: PtySize) {
        let size = PtySize {
            rows: size.rows.max(1),
            columns: size.columns.max(2),
        };
        if size != self.size {
            self.size = size;
            self.term.resize(Size(size));
        }
    }

    /// Scrolls by rows, up into what came before if they are positive.
    pub(crate) fn scroll(&mut self, rows: i32) {
        self.term.scroll_display(Scroll::Delta(rows));
    }

    pub(crate) fn scroll_to_bottom(&mut self) {
        self.term.scroll_display(Scroll::Bottom);
    }

    /// Returns whether a program has the whole screen.
    pub(crate) fn has_whole_screen(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    /// Returns the bytes that a program reads for a key.
    pub(crate) fn key(&self, key: &KeyEvent) -> Vec<u8> {
        keyboard::bytes(key, self.term.mode().contains(TermMode::APP_CURSOR))
    }

    /// Returns the bytes that a program reads for a paste.
    pub(crate) fn paste(&self, text: &str) -> Vec<u8> {
        keyboard::pasted(text, self.term.mode().contains(TermMode::BRACKETED_PASTE))
    }

    /// Returns the rows that are shown as text.
    pub(crate) fn text(&self) -> String {
        let top = Line(-i32::try_from(self.term.grid().display_offset()).unwrap_or(0));
        let end = Point::new(
            Line(top.0 + i32::from(self.size.rows) - 1),
            Column(usize::from(self.size.columns) - 1),
        );
        let text = self.term.bounds_to_string(Point::new(top, Column(0)), end);
        text.trim_end().to_owned()
    }

    /// Draws it, and returns where its caret is. No cell beyond the area is touched.
    pub(crate) fn draw(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        has_colours: bool,
    ) -> Option<Position> {
        let grid = self.term.grid();
        let offset = i32::try_from(grid.display_offset()).unwrap_or(0);
        let rows = area.height.min(self.size.rows);
        let columns = area.width.min(self.size.columns);
        for y in 0..rows {
            let row = &grid[Line(i32::from(y) - offset)];
            for x in 0..columns {
                let Some(cell) = buffer.cell_mut((area.x + x, area.y + y)) else {
                    continue;
                };
                match shown(&row[Column(usize::from(x))], x + 1 < columns, has_colours) {
                    CellContent::Cell(symbol, style) => {
                        cell.set_symbol(&symbol).set_style(style);
                    }
                    // The wide character before it is here too.
                    CellContent::Covered => cell.reset(),
                }
            }
        }
        let caret = grid.cursor.point;
        let is_shown = self.term.mode().contains(TermMode::SHOW_CURSOR) && offset == 0;
        let x = u16::try_from(caret.column.0).ok()?;
        let y = u16::try_from(caret.line.0).ok()?;
        (is_shown && x < columns && y < rows).then(|| Position::new(area.x + x, area.y + y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(emulator: &Emulator, area: Rect) -> Vec<String> {
        let mut buffer =
            Buffer::filled(Rect::new(0, 0, 30, 8), ratatui_core::buffer::Cell::new("."));
        emulator.draw(&mut buffer, area, true);
        let rows = buffer.content().chunks(30);
        rows.map(|row| row.iter().map(|it| it.symbol()).collect())
            .collect()
    }

    fn emulator(rows: u16, columns: u16) -> Emulator {
        let mut emulator = Emulator::default();
        emulator.resize(PtySize { rows, columns });
        emulator
    }

    #[test]
    fn nothing_is_drawn_beyond_the_area_whatever_is_written() {
        let mut emulator = emulator(3, 10);
        let hostile = "\x1b[999;999Hx\x1b[?7l0123456789ABCDEF\x1b[1;10H漢\u{202e}\u{200b}e\u{301}\r\n❤\u{fe0f}👩\u{200d}👩";
        emulator.feed(hostile.as_bytes());
        let rows = drawn(&emulator, Rect::new(2, 1, 10, 3));
        for (at, row) in rows.iter().enumerate() {
            assert!(row.starts_with(".."), "{row}");
            assert!(row.ends_with(&".".repeat(18)), "{row}");
            assert_eq!(
                (1..4).contains(&at),
                !row.trim_matches('.').is_empty(),
                "{row}"
            );
            assert!(!row.contains(['\u{202e}', '\u{200b}', '\u{200d}']), "{row}");
        }
    }

    #[test]
    fn programs_are_answered_within_a_bound_and_only_what_a_terminal_knows_of_itself() {
        let mut emulator = emulator(3, 10);
        assert_eq!(emulator.feed(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert!(!emulator.feed(b"\x1b[c").is_empty());
        // Titles, colors, the clipboard, a setting: all are ignored.
        assert_eq!(
            emulator.feed(b"\x1b[21t\x1b]11;?\x07\x1b]52;c;?\x07\x1bP$qm\x1b\\"),
            b""
        );
        let many = emulator.feed("\x1b[6n".repeat(10_000).as_bytes());
        assert!(many.len() <= REPLY_BYTES_MAX, "{}", many.len());
    }

    #[test]
    fn a_program_that_took_the_screen_is_noticed_however_it_left_it() {
        let mut emulator = emulator(3, 10);
        emulator.feed(b"before\r\n");
        assert!(!emulator.end_program());
        emulator.feed(b"\x1b[?10");
        emulator.feed(b"49h\x1b[2Jfull\x1b[?25l");
        assert!(emulator.end_program());
        assert!(emulator.text().starts_with("before"), "{}", emulator.text());
        emulator.feed(b"\x1b[?47h\x1b[?47l");
        assert!(emulator.end_program());
        assert!(!emulator.end_program());
    }

    #[test]
    fn what_is_kept_is_bounded_however_much_is_written() {
        let mut emulator = emulator(3, 10);
        let lines = "line\r\n".repeat(1_000);
        for _ in 0..10 {
            emulator.feed(lines.as_bytes());
        }
        assert_eq!(emulator.term.grid().total_lines(), SCROLLBACK_ROWS + 3);
        emulator.feed(format!("e{}", "\u{301}".repeat(ZERO_WIDTHS_MAX + 1)).as_bytes());
        let extra = emulator
            .term
            .grid()
            .display_iter()
            .filter_map(|it| it.cell.zerowidth());
        assert_eq!(extra.map(<[char]>::len).sum::<usize>(), 0);
        emulator.scroll(5);
        assert!(emulator.text().contains("line"));
    }

    #[test]
    fn rows_are_wrapped_anew_and_wide_characters_stay_whole() {
        let mut emulator = emulator(4, 6);
        emulator.feed("漢字仮名abc".as_bytes());
        assert_eq!(emulator.text(), "漢字仮名abc");
        for columns in [3, 2, 20, 5] {
            emulator.resize(PtySize { rows: 7, columns });
            drawn(&emulator, Rect::new(2, 1, columns, 7));
        }
        emulator.resize(PtySize {
            rows: 4,
            columns: 20,
        });
        emulator.scroll(100);
        assert!(
            emulator.text().contains("漢字仮名abc"),
            "{}",
            emulator.text()
        );
    }
}
