//! The panel of keys, from the table of bindings.

use super::keys::BINDINGS;
use super::{App, Effect, Layer};
use crate::prompt::{EDIT_BINDINGS, spelled};
use crate::text::{Piece, Row, Wrap, clean, columns};
use crate::theme::Theme;
use crossterm::event::KeyEvent;

/// Columns of the keys, before what they do.
const KEYS_COLUMNS: usize = 22;

impl App {
    pub(super) fn help_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let Layer::Help(from) = &mut self.layer else {
            return Vec::new();
        };
        let page = usize::from(self.drawn.area.height.saturating_sub(2)).max(1);
        match spelled(key).as_deref() {
            Some("Down" | "j" | "Ctrl-N") => *from += 1,
            Some("Up" | "k" | "Ctrl-P") => *from = from.saturating_sub(1),
            Some("PageDown" | "Space") => *from += page,
            Some("PageUp") => *from = from.saturating_sub(page),
            _ => self.layer = Layer::None,
        }
        Vec::new()
    }
}

/// Returns all keys with what they do, the user's own before the screen's, in rows of this width.
pub(super) fn rows(own: &[(String, String)], width: usize, theme: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    for (key, line) in own {
        let does = format!("enters `{line}` (your `init.lua`)");
        rows.extend(described(
            &clean::line(key),
            &clean::line(&does),
            width,
            theme,
        ));
    }
    let of_screen = BINDINGS.iter().map(|it| (it.keys, it.does));
    let of_text = EDIT_BINDINGS.iter().map(|it| (it.keys, it.does));
    for (keys, does) in of_screen.chain(of_text) {
        rows.extend(described(&keys.join(", "), does, width, theme));
    }
    rows
}

fn described(keys: &str, does: &str, width: usize, theme: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    let is_long = columns(keys) > KEYS_COLUMNS;
    // Keys that are too many for their column have a row of their own.
    let beside = match is_long {
        true => "",
        false => keys,
    };
    if is_long {
        rows.push(Row::of(keys, theme.accent));
    }
    let gutter = |keys: &str| vec![Piece::new(format!("{keys:KEYS_COLUMNS$}  "), theme.accent)];
    let wrap = Wrap {
        first: gutter(beside),
        rest: gutter(""),
        ..Wrap::at(width)
    };
    rows.extend(wrap.lines(does, theme.text));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;

    #[test]
    fn every_word_of_the_help_is_shown_on_a_narrow_screen() {
        let own = [("ctrl-g".to_owned(), "/standup of yesterday".to_owned())];
        let rows = rows(&own, 46, &Theme::of(Colours::None));
        let whole: Vec<String> = rows.iter().map(Row::whole).collect();
        assert!(whole.iter().all(|it| columns(it) <= 46), "{whole:?}");
        let text = crate::text::row::joined(&rows);
        let of_screen = BINDINGS.iter().map(|it| it.does);
        for does in of_screen.chain(EDIT_BINDINGS.iter().map(|it| it.does)) {
            assert!(text.contains(does), "{does}");
        }
        assert!(whole[0].starts_with("ctrl-g"), "{whole:?}");
        assert!(text.contains("enters `/standup of yesterday`"), "{text}");
    }
}
