//! Takes out of text from outside what would steer the terminal, and spells out what it would hide.

use super::columns;
use rondo_core::shown;
use rondo_runtime::sanitize::{Cleaner, plain};
use unicode_segmentation::UnicodeSegmentation as _;

/// Replacement of a tab.
const TAB: &str = "    ";
/// Columns between the places that a terminal's tabs lead to.
const TAB_STOP: usize = 8;

/// Returns text from a model, a tool or a file name, to be read: without escape sequences, characters that reorder or
/// hide text escaped, line breaks kept.
pub(crate) fn text(text: &str) -> String {
    shown::readable(&plain(text)).replace('\t', TAB)
}

/// Returns text of a file, to be read: nothing is taken out, what would steer the terminal is spelt out.
pub(crate) fn file(text: &str) -> String {
    shown::readable(text).replace('\t', TAB)
}

/// Returns output of a program, to be read: as [`text`], but with each tab up to the next column that terminals stop at.
pub(crate) fn output(text: &str) -> String {
    let text = shown::readable(&plain(text));
    let mut shown = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.graphemes(true) {
        if letter == "\t" {
            let blanks = TAB_STOP - column % TAB_STOP;
            shown.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
            continue;
        }
        column = match letter.ends_with('\n') {
            true => 0,
            false => column + columns(letter),
        };
        shown.push_str(letter);
    }
    shown
}

/// Returns the same on one line.
pub(crate) fn line(text: &str) -> String {
    shown::readable_line(&plain(text).replace(['\n', '\t'], " "))
}

/// Returns text that a person decides about: nothing is taken out, escape sequences are spelt out too.
pub(crate) fn exact(text: &str) -> String {
    shown::visible(text).replace('\t', TAB)
}

/// Returns a typed or pasted text in the form for the input: line breaks and tabs stay, other controls go.
pub(crate) fn typed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let stays = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    text.chars().filter(stays).collect()
}

/// Reads live output of a command, as a terminal shows its last state.
#[derive(Debug, Default)]
pub(crate) struct LiveText {
    cleaner: Cleaner,
    /// Bytes of what is shown that nothing is written over any more.
    settled: usize,
}

impl LiveText {
    /// Adds a piece to what was shown so far.
    pub(crate) fn push(&mut self, piece: &str, shown: &mut String) {
        shown.truncate(self.settled);
        self.cleaner.feed(piece.as_bytes(), &mut |bytes| {
            shown.push_str(&String::from_utf8_lossy(bytes));
        });
        self.settled = shown.len();
        shown.push_str(&self.cleaner.unfinished());
    }

    /// The first bytes of what was shown are forgotten.
    pub(crate) fn forget(&mut self, bytes: usize) {
        self.settled = self.settled.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_gone_and_what_it_hides_is_spelt_out() {
        assert_eq!(
            text("a\u{1b}]0;t\u{7}b\u{1b}[2Jc\u{202e}d"),
            "abc\\u{202e}d"
        );
        assert_eq!(line("a\nb\tc"), "a b c");
        let ordinary = "\u{26a0}\u{fe0f} 10\u{a0}km\u{3000}\u{1f469}\u{200d}\u{1f680}";
        assert_eq!(text(ordinary), ordinary);
        assert_eq!(line(ordinary), ordinary);
        assert_eq!(exact("10\u{a0}km"), "10\\u{a0}km");
        assert_eq!(exact("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert_eq!(typed("a\r\nb\u{1b}[31m\u{0}c\td"), "a\nb[31mc\td");
    }

    #[test]
    fn progress_is_shown_as_its_last_state_however_it_is_cut() {
        for cut in 1..20 {
            let whole = "10%\r\u{1b}[K20%\r\u{1b}[32mdone\u{1b}[0m\r\nnext";
            let (mut live, mut shown) = (LiveText::default(), String::new());
            let chars: Vec<char> = whole.chars().collect();
            for piece in chars.chunks(cut) {
                live.push(&piece.iter().collect::<String>(), &mut shown);
            }
            assert_eq!(shown, "done\nnext", "{cut}");
        }
        let (mut live, mut shown) = (LiveText::default(), String::new());
        live.push("100 files\r20", &mut shown);
        assert_eq!(shown, "200 files");
        live.push("\r3\n", &mut shown);
        assert_eq!(shown, "300 files\n");
    }
}
