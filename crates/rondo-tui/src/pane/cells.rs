//! Cells of the terminal as cells of the screen.

use crate::text::columns;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color as Named, NamedColor};
use ratatui_core::style::{Color, Modifier, Style};
use rondo_core::shown::visible;

/// Marks of a character that are shown, of any number that a program put on it.
const MARKS_MAX: usize = 4;

/// Displayed part of a cell.
pub(super) enum CellContent {
    Cell(String, Style),
    /// The second half of a wide character.
    Covered,
}

/// Returns the displayed text of a cell. Characters that a person cannot see, and those that the screen would take for
/// wider or narrower than the terminal did, are not part of it.
pub(super) fn shown(cell: &Cell, has_room: bool, has_colours: bool) -> CellContent {
    if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
        return CellContent::Covered;
    }
    let style = style(cell, has_colours);
    let is_wide = cell.flags.contains(Flags::WIDE_CHAR);
    if cell.flags.contains(Flags::HIDDEN) || (is_wide && !has_room) {
        return CellContent::Cell(" ".to_owned(), style);
    }
    CellContent::Cell(symbol(cell, if is_wide { 2 } else { 1 }), style)
}

fn symbol(cell: &Cell, width: usize) -> String {
    let alone = cell.c.to_string();
    if cell.c == '\t' || columns(&alone) != width || visible(&alone) != alone {
        return " ".repeat(width);
    }
    let marks = cell.zerowidth().unwrap_or_default().iter();
    let is_seen = |it: &&char| {
        let mark = it.to_string();
        visible(&mark) == mark
    };
    let whole: String = alone
        .chars()
        .chain(marks.filter(is_seen).take(MARKS_MAX).copied())
        .collect();
    match columns(&whole) == width {
        true => whole,
        false => alone,
    }
}

fn style(cell: &Cell, has_colours: bool) -> Style {
    let mut style = Style::new();
    if has_colours {
        style.fg = colour(cell.fg);
        style.bg = colour(cell.bg);
    }
    let modifiers = [
        (Flags::BOLD, Modifier::BOLD),
        (Flags::DIM, Modifier::DIM),
        (Flags::ITALIC, Modifier::ITALIC),
        (Flags::INVERSE, Modifier::REVERSED),
        (Flags::STRIKEOUT, Modifier::CROSSED_OUT),
    ];
    for (flag, modifier) in modifiers {
        if cell.flags.contains(flag) {
            style = style.add_modifier(modifier);
        }
    }
    if cell.flags.intersects(Flags::ALL_UNDERLINES) {
        style = style.add_modifier(Modifier::UNDERLINED);
    }
    style
}

/// Returns a color; none is the terminal's own.
fn colour(colour: Named) -> Option<Color> {
    match colour {
        Named::Spec(rgb) => Some(Color::Rgb(rgb.r, rgb.g, rgb.b)),
        Named::Indexed(index) => Some(Color::Indexed(index)),
        Named::Named(name) => match name {
            NamedColor::DimBlack => Some(Color::Indexed(0)),
            NamedColor::DimRed => Some(Color::Indexed(1)),
            NamedColor::DimGreen => Some(Color::Indexed(2)),
            NamedColor::DimYellow => Some(Color::Indexed(3)),
            NamedColor::DimBlue => Some(Color::Indexed(4)),
            NamedColor::DimMagenta => Some(Color::Indexed(5)),
            NamedColor::DimCyan => Some(Color::Indexed(6)),
            NamedColor::DimWhite => Some(Color::Indexed(7)),
            // The sixteen come first; the others stand for the terminal's own.
            name => u8::try_from(name as usize).ok().map(Color::Indexed),
        },
    }
}
