//! Cells as bytes, as few as a terminal needs: short moves, one change of style at a time, blanks erased at once.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Position;
use ratatui_core::style::{Color, Modifier};
use std::io::Write as _;
use unicode_width::UnicodeWidthChar as _;

/// Blank cells at the end of a row that are erased rather than written.
const ERASED_MIN: u16 = 4;

/// Style of a cell beside its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellStyle {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl CellStyle {
    const PLAIN: Self = Self {
        fg: Color::Reset,
        bg: Color::Reset,
        modifier: Modifier::empty(),
    };

    fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            modifier: cell.modifier,
        }
    }
}

/// Writes cells to a terminal whose style is plain, and leaves it so.
pub(super) struct Encoder<'a> {
    bytes: &'a mut Vec<u8>,
    /// Position of the terminal's cursor, if it is known.
    at: Option<Position>,
    look: CellStyle,
    /// Set if the terminal draws signs of ambiguous width two columns wide.
    has_wide_signs: bool,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>, has_wide_signs: bool) -> Self {
        Self {
            bytes,
            at: None,
            look: CellStyle::PLAIN,
            has_wide_signs,
        }
    }

    /// Writes the cells of a frame that changed, in the order of rows and columns.
    pub(super) fn draw(&mut self, changes: &[(u16, u16, &Cell)], frame: &Buffer) {
        let mut erased = None;
        for (x, y, cell) in changes.iter().copied() {
            if erased == Some(y) {
                continue;
            }
            self.move_to(Position::new(x, y));
            if is_blank(cell) && is_blank_from(frame, x, y) {
                self.wear(CellStyle::PLAIN);
                self.put(b"\x1b[K");
                erased = Some(y);
                continue;
            }
            self.wear(CellStyle::of(cell));
            self.write(cell.symbol());
        }
        self.wear(CellStyle::PLAIN);
    }

    /// Moves the cursor.
    pub(super) fn move_to(&mut self, to: Position) {
        let Position { x, y } = to;
        match self.at.replace(to) {
            Some(at) if at == to => {}
            Some(at) if at.y == y && x == 0 => self.put(b"\r"),
            Some(at) if at.y == y && x == at.x + 1 => self.put(b"\x1b[C"),
            Some(at) if at.y == y && x > at.x => self.print(format_args!("\x1b[{}C", x - at.x)),
            _ => self.print(format_args!("\x1b[{};{}H", y + 1, x + 1)),
        }
    }

    fn write(&mut self, symbol: &str) {
        self.put(symbol.as_bytes());
        let mut chars = symbol.chars();
        let width = |it: char| match self.has_wide_signs {
            true => it.width_cjk(),
            false => it.width(),
        };
        let is_narrow = chars.next().and_then(width) == Some(1) && chars.next().is_none();
        // Terminals disagree about the width of everything else.
        self.at = self
            .at
            .filter(|_| is_narrow)
            .map(|at| Position { x: at.x + 1, ..at });
    }

    fn wear(&mut self, look: CellStyle) {
        if look == self.look {
            return;
        }
        let anew = sgr(None, look);
        let is_removed = !look.modifier.contains(self.look.modifier);
        let changed = Some(sgr(Some(self.look), look)).filter(|_| !is_removed);
        let shorter = match changed {
            Some(changed) if changed.len() < anew.len() => changed,
            _ => anew,
        };
        self.print(format_args!("\x1b[{shorter}m"));
        self.look = look;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn print(&mut self, text: std::fmt::Arguments<'_>) {
        // The bytes are collected in memory, which takes them.
        let _ = self.bytes.write_fmt(text);
    }
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && CellStyle::of(cell) == CellStyle::PLAIN
}

/// Returns whether enough cells are left in a row, all of them blank.
fn is_blank_from(frame: &Buffer, x: u16, y: u16) -> bool {
    let right = frame.area.right();
    let mut rest = x..right;
    right - x >= ERASED_MIN && rest.all(|x| frame.cell((x, y)).is_some_and(is_blank))
}

/// Returns the parameters that make a look of another, or of a plain one after a reset.
fn sgr(from: Option<CellStyle>, to: CellStyle) -> String {
    let base = from.unwrap_or(CellStyle::PLAIN);
    let mut all: Vec<String> = Vec::new();
    for (modifier, parameter) in MODIFIERS {
        if to.modifier.contains(modifier) && !base.modifier.contains(modifier) {
            all.push(parameter.to_owned());
        }
    }
    if to.fg != base.fg {
        all.push(colour(to.fg, 30));
    }
    if to.bg != base.bg {
        all.push(colour(to.bg, 40));
    }
    // A reset is not a parameter at all if nothing follows it.
    if from.is_none() && !all.is_empty() {
        all.insert(0, String::new());
    }
    all.join(";")
}

const MODIFIERS: [(Modifier, &str); 9] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::SLOW_BLINK, "5"),
    (Modifier::RAPID_BLINK, "6"),
    (Modifier::REVERSED, "7"),
    (Modifier::HIDDEN, "8"),
    (Modifier::CROSSED_OUT, "9"),
];

/// Returns the parameters of a color; `base` is 30 for the text and 40 for its ground.
fn colour(colour: Color, base: u8) -> String {
    let plain = |at: u8| (base + at).to_string();
    let bright = |at: u8| (base + 60 + at).to_string();
    match colour {
        Color::Reset => plain(9),
        Color::Black => plain(0),
        Color::Red => plain(1),
        Color::Green => plain(2),
        Color::Yellow => plain(3),
        Color::Blue => plain(4),
        Color::Magenta => plain(5),
        Color::Cyan => plain(6),
        Color::Gray => plain(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(at) => format!("{};5;{at}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;
    use std::num::NonZeroU16;

    const AREA: Rect = Rect::new(0, 0, 30, 4);

    fn encoded(before: &Buffer, after: &Buffer) -> String {
        let mut bytes = Vec::new();
        Encoder::new(&mut bytes, false).draw(&before.diff(after), after);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_change_of_style_says_only_what_changes() {
        let mut frame = Buffer::empty(AREA);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.set_stringn(0, 0, "ab", 9, bold.fg(Color::Red));
        frame.set_stringn(2, 0, "c", 9, bold.fg(Color::Rgb(1, 2, 3)));
        frame.set_stringn(
            3,
            0,
            "d",
            9,
            Style::new().fg(Color::DarkGray).bg(Color::Blue),
        );
        assert_eq!(
            encoded(&Buffer::empty(AREA), &frame),
            "\x1b[1;1H\x1b[1;31mab\x1b[38;2;1;2;3mc\x1b[;90;44md\x1b[m"
        );
    }

    #[test]
    fn moves_within_a_row_are_short_and_the_rest_of_a_row_is_erased_at_once() {
        let mut before = Buffer::empty(AREA);
        before.set_stringn(0, 1, "one two three four five", 30, Style::new());
        let mut after = Buffer::empty(AREA);
        after.set_stringn(0, 1, "One Two three", 30, Style::new());
        assert_eq!(encoded(&before, &after), "\x1b[2;1HO\x1b[3CT\x1b[9C\x1b[K");
    }

    #[test]
    fn the_cursor_is_placed_behind_signs_that_the_terminal_may_draw_wide() {
        let mut frame = Buffer::empty(AREA);
        frame.set_stringn(0, 0, "│ab", 9, Style::new());
        let before = Buffer::empty(AREA);
        let mut bytes = Vec::new();
        Encoder::new(&mut bytes, true).draw(&before.diff(&frame), &frame);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, "\x1b[1;1H│\x1b[1;2Hab");
        assert_eq!(encoded(&before, &frame), "\x1b[1;1H│ab");
    }

    /// Visible part of each cell: of a blank one neither its color nor its weight.
    fn cells(terminal: &vt100::Parser) -> Vec<String> {
        let places = (0..AREA.height).flat_map(|y| (0..AREA.width).map(move |x| (y, x)));
        let cells = places.filter_map(|(y, x)| terminal.screen().cell(y, x));
        let shown = cells.map(|it| {
            let ground = (it.bgcolor(), it.underline(), it.inverse());
            match it.contents() {
                "" | " " => format!("{ground:?}"),
                symbol => {
                    let weight = (it.bold(), it.dim(), it.italic());
                    format!("{symbol} {:?} {weight:?} {ground:?}", it.fgcolor())
                }
            }
        });
        shown.collect()
    }

    /// The terminal's screen equals the frame, with whatever styles and widths follow on one another.
    #[test]
    fn a_terminal_shows_each_of_many_frames_as_it_was_drawn() {
        let size = |cells| NonZeroU16::new(cells).unwrap();
        let mut terminal = vt100::Parser::new(size(AREA.height), size(AREA.width), 0);
        let (mut shown, mut random) = (Buffer::empty(AREA), 7_u64);
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        // Without grounds: what terminals give the other half of a wide character that is written over differs, and the
        // difference of two buffers does not tell of it.
        let styles = [
            Style::new(),
            Style::new().fg(Color::Green),
            Style::new()
                .fg(Color::Indexed(200))
                .add_modifier(Modifier::BOLD),
            Style::new().fg(Color::Blue).add_modifier(Modifier::ITALIC),
            Style::new()
                .fg(Color::Rgb(9, 8, 7))
                .add_modifier(Modifier::BOLD | Modifier::DIM),
        ];
        for _ in 0..400 {
            let mut frame = Buffer::empty(AREA);
            for y in 0..AREA.height {
                let word =
                    ["plain", "日本", "─╮", "e\u{301}x", "  "][usize::try_from(next(5)).unwrap()];
                let style = styles[usize::try_from(next(5)).unwrap()];
                let x = u16::try_from(next(26)).unwrap();
                frame.set_stringn(x, y, word, usize::from(AREA.width - x), style);
            }
            terminal.process(encoded(&shown, &frame).as_bytes());
            let mut anew = vt100::Parser::new(size(AREA.height), size(AREA.width), 0);
            anew.process(encoded(&Buffer::empty(AREA), &frame).as_bytes());
            assert_eq!(cells(&terminal), cells(&anew));
            shown = frame;
        }
    }
}
