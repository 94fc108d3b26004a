//! The text that is being typed: several lines, a caret, what was cut, and what can be undone.

use crate::text::clean;
use rondo_core::shown::{is_hidden, is_ordinary};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Bytes of a draft at most.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// States that can be gone back to.
const UNDO_MAX: usize = 200;
/// Characters and lines beyond which pasted text becomes a chip.
const PASTE_CHARS_MAX: usize = 1_000;
const PASTE_LINES_MAX: usize = 10;
/// Cuts that can be put in.
const CUTS_MAX: usize = 16;
/// Chips of a draft.
const CHIPS_MAX: usize = 64;

/// A text that is being typed.
#[derive(Debug, Default, Clone)]
pub struct Editor {
    text: String,
    caret: usize,
    /// The column that moving up and down keeps to.
    column: Option<usize>,
    /// Cut texts, the latest last.
    cuts: Vec<String>,
    undo: Vec<(String, usize)>,
    last: LastEdit,
    /// Texts that chips stand for.
    chips: Vec<(String, String)>,
}

/// Latest act, if it combines with the same act done again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LastEdit {
    /// A letter was typed: it is undone with those before it.
    Letter,
    /// Something was cut: what is cut next is put in together with it.
    Cut,
    /// A cut text was inserted: this many cuts ago.
    Put(usize),
    #[default]
    Other,
}

/// A row of the draft as it is shown: its bytes, and whether its line ends there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftRow {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Editor {
    /// Returns the text as it is shown, with chips for long pastes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text before the caret.
    pub fn before(&self) -> &str {
        self.text.get(..self.caret).unwrap_or_default()
    }

    /// Returns the text behind the caret.
    pub fn after(&self) -> &str {
        self.text.get(self.caret..).unwrap_or_default()
    }

    /// Returns the text with what its chips stand for.
    pub fn whole(&self) -> String {
        let mut whole = self.text.clone();
        for (chip, text) in &self.chips {
            whole = whole.replace(chip, text);
        }
        whole
    }

    /// Takes the whole text out.
    pub fn take(&mut self) -> String {
        let whole = self.whole();
        self.set("");
        self.chips.clear();
        whole
    }

    /// Puts another text in its place.
    pub fn set(&mut self, text: &str) {
        self.keep_undo(false);
        self.text = clean::typed(text);
        self.caret = self.text.len();
        self.column = None;
    }

    /// Puts a text in place of the text between a place and the caret.
    pub(crate) fn replace_before(&mut self, from: usize, text: &str) {
        self.keep_undo(false);
        let from = self.text.floor_char_boundary(from.min(self.caret));
        self.text.replace_range(from..self.caret, text);
        self.caret = from + text.len();
        self.column = None;
    }

    fn keep_undo(&mut self, is_letter: bool) {
        if !(is_letter && self.last == LastEdit::Letter) {
            if self.undo.len() >= UNDO_MAX {
                self.undo.remove(0);
            }
            self.undo.push((self.text.clone(), self.caret));
        }
        self.last = match is_letter {
            true => LastEdit::Letter,
            false => LastEdit::Other,
        };
    }

    /// Takes the text and caret that other keys produced. Returns whether the text is not too long.
    pub(crate) fn become_text(&mut self, text: &str, caret: usize) -> bool {
        if text.len() > TEXT_BYTES_MAX {
            return false;
        }
        if self.text != text {
            self.keep_undo(false);
            text.clone_into(&mut self.text);
        }
        if self.caret != caret {
            self.go(caret);
        }
        true
    }

    /// Types text at the caret.
    pub fn insert(&mut self, text: &str) {
        let text = clean::typed(text);
        if text.is_empty() || self.text.len() + text.len() > TEXT_BYTES_MAX {
            return;
        }
        let is_letter = text.chars().count() == 1 && !text.contains([' ', '\n']);
        self.keep_undo(is_letter);
        self.text.insert_str(self.caret, &text);
        self.caret += text.len();
        self.column = None;
    }

    /// Takes what was pasted: a long text stands as a chip, and is sent whole. Returns whether it does.
    pub fn paste(&mut self, text: &str) -> bool {
        let text = clean::typed(text);
        let lines = text.lines().count();
        let is_long = text.chars().count() > PASTE_CHARS_MAX || lines > PASTE_LINES_MAX;
        if !is_long || self.chips.len() >= CHIPS_MAX || text.len() > TEXT_BYTES_MAX {
            self.insert(&text);
            return false;
        }
        let characters = text.chars().count();
        self.chip(
            &format!("paste {{}}: {lines} lines, {characters} characters"),
            text,
        );
        true
    }

    /// Puts in a chip that stands for the word that attaches a file. `kind` says what the file is, such as an image.
    pub(crate) fn attach(&mut self, kind: &str, name: &str, word: String) {
        match self.chips.len() < CHIPS_MAX {
            true => self.chip(&format!("{kind} {{}}: {name}"), word),
            false => self.insert(&word),
        }
    }

    fn chip(&mut self, label: &str, text: String) {
        let number = (self.chips.len() + 1).to_string();
        let chip = format!("[{}]", label.replacen("{}", &number, 1));
        self.chips.push((chip.clone(), text));
        self.insert(&chip);
    }

    /// Puts what a chip at the caret stands for in its place.
    pub(crate) fn unfold(&mut self) -> bool {
        let Some((at, index)) = self.chip_around() else {
            return false;
        };
        self.keep_undo(false);
        let (chip, text) = self.chips.remove(index);
        self.text.replace_range(at..at + chip.len(), &text);
        self.caret = at + text.len();
        true
    }

    fn chip_around(&self) -> Option<(usize, usize)> {
        self.chips
            .iter()
            .enumerate()
            .find_map(|(index, (chip, _))| {
                let at = self.text.find(chip.as_str())?;
                (at <= self.caret && self.caret <= at + chip.len()).then_some((at, index))
            })
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        self.keep_undo(false);
        let gone: String = self.text.drain(from..to).collect();
        self.caret = from;
        self.column = None;
        gone
    }

    fn previous(&self) -> usize {
        let last = self.before().graphemes(true).next_back();
        self.caret - last.map_or(0, str::len)
    }

    fn following(&self) -> usize {
        let first = self.after().graphemes(true).next();
        self.caret + first.map_or(0, str::len)
    }

    /// Deletes the letter before the caret; of a chip, all of it.
    pub(crate) fn backspace(&mut self) {
        let before = self.before();
        let chip = self.chips.iter().position(|it| before.ends_with(&it.0));
        match chip {
            Some(index) => {
                let (chip, _) = self.chips.remove(index);
                self.remove(self.caret - chip.len(), self.caret);
            }
            None => drop(self.remove(self.previous(), self.caret)),
        }
    }

    /// Deletes the letter at the caret.
    pub(crate) fn delete(&mut self) {
        let to = self.following();
        self.remove(self.caret, to);
    }

    pub(crate) fn left(&mut self) {
        self.go(self.previous());
    }

    pub(crate) fn right(&mut self) {
        self.go(self.following());
    }

    /// Moves the caret.
    pub(crate) fn go(&mut self, to: usize) {
        self.caret = self.text.floor_char_boundary(to);
        self.column = None;
        self.last = LastEdit::Other;
    }

    /// Moves the caret behind the text.
    pub fn go_to_end(&mut self) {
        self.go(self.text.len());
    }

    pub(crate) fn caret(&self) -> usize {
        self.caret
    }

    fn word_left(&self) -> usize {
        let mut words = self.before().unicode_word_indices();
        words.next_back().map_or(0, |it| it.0)
    }

    fn word_right(&self) -> usize {
        let mut words = self.after().unicode_word_indices();
        let end = words.next().map(|(at, word)| at + word.len());
        end.map_or(self.text.len(), |it| self.caret + it)
    }

    pub(crate) fn go_to_word_left(&mut self) {
        self.go(self.word_left());
    }

    pub(crate) fn go_to_word_right(&mut self) {
        self.go(self.word_right());
    }

    /// Writes the rest of the word, or the next one, in other letters.
    pub(crate) fn respell_word(&mut self, respelled: impl Fn(&str) -> String) {
        let (from, to) = (self.caret, self.word_right());
        let word = respelled(self.text.get(from..to).unwrap_or_default());
        self.keep_undo(false);
        self.text.replace_range(from..to, &word);
        self.go(from + word.len());
    }

    /// Cuts the word before the caret.
    pub(crate) fn cut_word_left(&mut self) {
        self.cut_out(self.word_left(), self.caret);
    }

    /// Cuts the word after the caret.
    pub(crate) fn cut_word_right(&mut self) {
        self.cut_out(self.caret, self.word_right());
    }

    fn cut_out(&mut self, from: usize, to: usize) {
        let (was_cut, goes_back) = (self.last == LastEdit::Cut, from < self.caret);
        let gone = self.remove(from, to);
        match self.cuts.last_mut().filter(|_| was_cut) {
            Some(cut) if goes_back => cut.insert_str(0, &gone),
            Some(cut) => cut.push_str(&gone),
            None => self.keep_cut(gone),
        }
        self.last = LastEdit::Cut;
    }

    fn keep_cut(&mut self, cut: String) {
        if cut.is_empty() {
            return;
        }
        if self.cuts.len() >= CUTS_MAX {
            self.cuts.remove(0);
        }
        self.cuts.push(cut);
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.after().find('\n');
        end.map_or(self.text.len(), |at| self.caret + at)
    }

    pub(crate) fn go_to_line_start(&mut self) {
        self.go(self.line_start());
    }

    pub(crate) fn go_to_line_end(&mut self) {
        self.go(self.line_end());
    }

    /// Cuts to the end of the line, or the line break there.
    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.caret {
            self.following()
        } else {
            end
        };
        self.cut_out(self.caret, end);
    }

    /// Cuts to the beginning of the line.
    pub(crate) fn cut_to_start(&mut self) {
        self.cut_out(self.line_start(), self.caret);
    }

    /// Puts in what was cut last.
    pub(crate) fn put(&mut self) {
        if let Some(cut) = self.cuts.last().cloned() {
            self.put_in(&cut, 0);
        }
    }

    fn put_in(&mut self, cut: &str, ago: usize) {
        self.insert(cut);
        // A draft that is too long takes no more.
        if self.before().ends_with(cut) {
            self.last = LastEdit::Put(ago);
        }
    }

    /// Puts in what was cut before that in place of what was put in just now. Returns whether something was.
    pub(crate) fn put_earlier(&mut self) -> bool {
        let LastEdit::Put(ago) = self.last else {
            return false;
        };
        let of = |ago: usize| self.cuts.iter().rev().cycle().nth(ago).cloned();
        let (Some(now), Some(next)) = (of(ago), of(ago + 1)) else {
            return false;
        };
        self.remove(self.caret - now.len(), self.caret);
        self.put_in(&next, (ago + 1) % self.cuts.len());
        true
    }

    /// Swaps the word before the caret and the one at it or behind it, and goes behind both.
    pub(crate) fn transpose_words(&mut self) {
        let words = self.text.unicode_word_indices();
        let words: Vec<_> = words.map(|(at, word)| at..at + word.len()).collect();
        let behind = words.iter().position(|it| it.end > self.caret);
        let at = behind.unwrap_or(words.len().saturating_sub(1));
        let Some([first, second]) = at.checked_sub(1).and_then(|it| words.get(it..=at)) else {
            return;
        };
        let part = |range: std::ops::Range<usize>| self.text.get(range).unwrap_or_default();
        let swapped = [
            part(second.clone()),
            part(first.end..second.start),
            part(first.clone()),
        ]
        .concat();
        let (from, to) = (first.start, second.end);
        self.keep_undo(false);
        self.text.replace_range(from..to, &swapped);
        self.go(to);
    }

    pub(crate) fn undo(&mut self) {
        if let Some((text, caret)) = self.undo.pop() {
            (self.text, self.caret) = (text, caret);
            self.column = None;
            self.last = LastEdit::Other;
        }
    }

    /// Moves to the row above, or below. Returns whether there is one.
    pub(crate) fn up_or_down(&mut self, goes_up: bool, width: usize) -> bool {
        let rows = self.rows(width);
        let (x, y) = self.caret_at(width);
        let column = *self.column.get_or_insert(x);
        let to = match goes_up {
            true => y.checked_sub(1),
            false => y.checked_add(1),
        };
        let Some(row) = to.and_then(|to| rows.get(to)) else {
            return false;
        };
        let mut at = row.from;
        let mut used = 0;
        let text = self.text.get(row.from..row.to).unwrap_or_default();
        for letter in text.graphemes(true) {
            if used + shown_width(letter) > column {
                break;
            }
            used += shown_width(letter);
            at += letter.len();
        }
        self.caret = at;
        self.last = LastEdit::Other;
        true
    }

    /// Returns the rows at this width.
    pub(crate) fn rows(&self, width: usize) -> Vec<DraftRow> {
        let width = width.max(2);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            let (mut from, mut used) = (start, 0);
            for (at, letter) in line.grapheme_indices(true) {
                let wide = shown_width(letter);
                if used + wide > width {
                    rows.push(DraftRow {
                        from,
                        to: start + at,
                    });
                    (from, used) = (start + at, 0);
                }
                used += wide;
            }
            let to = start + line.len();
            rows.push(DraftRow { from, to });
            // The caret after a full row is on the next one.
            if used == width {
                rows.push(DraftRow { from: to, to });
            }
            start = to + 1;
        }
        rows
    }

    /// Returns the column and the row of the caret.
    pub(crate) fn caret_at(&self, width: usize) -> (usize, usize) {
        let rows = self.rows(width);
        let at = rows.iter().rposition(|row| row.from <= self.caret);
        let at = at.unwrap_or_default();
        let from = rows.get(at).map_or(0, |row| row.from);
        let before = self.text.get(from..self.caret).unwrap_or_default();
        (before.graphemes(true).map(shown_width).sum(), at)
    }

    /// Returns a row as it is shown: the text before a range of the text, within it and behind it.
    pub(crate) fn shown(&self, row: &DraftRow, range: (usize, usize)) -> [String; 3] {
        let from = range.0.clamp(row.from, row.to);
        let to = range.1.clamp(from, row.to);
        [(row.from, from), (from, to), (to, row.to)].map(|(from, to)| {
            let text = self.text.get(from..to).unwrap_or_default();
            text.graphemes(true).map(shown_letter).collect()
        })
    }
}

fn shown_letter(letter: &str) -> String {
    match letter {
        "\t" => "  ".to_owned(),
        letter if letter.width() == 0 || letter.chars().any(is_unprintable) => "·".to_owned(),
        letter => letter.to_owned(),
    }
}

/// Returns whether a typed character cannot be shown as itself.
fn is_unprintable(c: char) -> bool {
    is_hidden(c) && !is_ordinary(c)
}

fn shown_width(letter: &str) -> usize {
    shown_letter(letter).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn letters_words_and_lines_are_moved_over_and_deleted() {
        let mut editor = of("one two\nthree");
        editor.cut_word_left();
        assert_eq!(editor.text(), "one two\n");
        editor.backspace();
        editor.go_to_word_left();
        editor.cut_to_end();
        assert_eq!(editor.text(), "one ");
        editor.put();
        assert_eq!(editor.text(), "one two");
        editor.go_to_line_start();
        editor.delete();
        editor.right();
        assert_eq!((editor.text(), editor.caret), ("ne two", 1));
        editor.undo();
        assert_eq!(editor.text(), "one two");
    }

    #[test]
    fn what_is_cut_at_once_is_put_in_together() {
        let mut editor = of("one two three four");
        editor.cut_word_left();
        editor.cut_word_left();
        editor.put();
        assert_eq!(editor.text(), "one two three four");
        editor.go_to_line_start();
        editor.cut_word_right();
        editor.cut_to_end();
        editor.put();
        editor.put();
        assert_eq!(editor.text(), "one two three fourone two three four");
        // A move in between starts over.
        editor.cut_word_left();
        editor.go_to_line_start();
        editor.cut_word_right();
        editor.put();
        assert_eq!(editor.text(), "one two three fourone two three ");
    }

    #[test]
    fn what_was_cut_earlier_is_put_in_its_place_round_and_round() {
        let mut editor = of("one two three");
        assert!(!editor.put_earlier());
        editor.cut_word_left();
        editor.left();
        editor.cut_word_left();
        editor.put();
        assert_eq!(editor.text(), "one two ");
        assert!(editor.put_earlier());
        assert_eq!(editor.text(), "one three ");
        assert!(editor.put_earlier());
        assert_eq!(editor.text(), "one two ");
        editor.insert("x");
        assert!(!editor.put_earlier());
    }

    #[test]
    fn the_words_around_the_caret_are_swapped() {
        let mut editor = of("größe, then x");
        editor.go("größe".len());
        editor.transpose_words();
        assert_eq!(
            (editor.text(), editor.before()),
            ("then, größe x", "then, größe")
        );
        // At the end they are the last two.
        editor.go_to_line_end();
        editor.transpose_words();
        assert_eq!(editor.text(), "then, x größe");
        let mut lone = of("word");
        lone.transpose_words();
        assert_eq!(lone.text(), "word");
    }

    #[test]
    fn words_are_respelled_from_the_caret_on() {
        let mut editor = of("one straße x");
        editor.go(3);
        editor.respell_word(str::to_uppercase);
        assert_eq!(
            (editor.text(), editor.before()),
            ("one STRASSE x", "one STRASSE")
        );
        editor.undo();
        assert_eq!(editor.text(), "one straße x");
    }

    #[test]
    fn a_row_is_shown_in_the_parts_of_a_selection() {
        let editor = of("ab\ncd");
        let rows = editor.rows(10);
        assert_eq!(editor.shown(&rows[0], (1, 4)), ["a", "b", ""]);
        assert_eq!(editor.shown(&rows[1], (1, 4)), ["", "c", "d"]);
        assert_eq!(editor.shown(&rows[1], (0, 0)), ["", "", "cd"]);
    }

    #[test]
    fn a_letter_of_several_characters_is_one() {
        let mut editor = of("a👩‍👩‍👧e\u{301}");
        editor.backspace();
        editor.backspace();
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn rows_are_broken_at_the_width_and_the_caret_is_on_them() {
        let mut editor = of("abcdef\nxy");
        assert_eq!(editor.rows(4).len(), 3);
        assert_eq!(editor.caret_at(4), (2, 2));
        assert!(editor.up_or_down(true, 4));
        assert_eq!(editor.caret_at(4), (2, 1));
        assert!(editor.up_or_down(true, 4) && !editor.up_or_down(true, 4));
        assert_eq!(editor.caret, 2);
        let full = of("abcd");
        assert_eq!(full.caret_at(4), (0, 1));
        assert_eq!(of("日本語").caret_at(4), (2, 1));
    }

    #[test]
    fn a_long_paste_is_a_chip_that_is_sent_whole_and_deleted_at_once() {
        let long = "line\n".repeat(50);
        let mut editor = of("see ");
        editor.paste(&long);
        assert!(editor.text().starts_with("see [paste 1: 50 lines"));
        assert_eq!(editor.whole(), format!("see {long}"));
        editor.backspace();
        assert_eq!(editor.text(), "see ");
        editor.paste(&long);
        assert!(editor.unfold());
        assert_eq!(editor.take(), format!("see {long}"));
        assert!(editor.is_empty());
    }

    #[test]
    fn what_is_pasted_has_no_controls() {
        let mut editor = Editor::default();
        editor.paste("a\u{1b}[31m\u{7}b\r\nc");
        assert_eq!(editor.text(), "a[31mb\nc");
    }
}
