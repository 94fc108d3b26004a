//! Breaks styled text into rows, at blanks if it can.

use super::row::{Break, Row};
use ratatui_core::style::Style;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Rows that one text is broken into at most.
const ROWS_MAX: usize = 100_000;

/// Text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The text, without line breaks.
    pub(crate) text: String,
    /// Style of the piece.
    pub(crate) style: Style,
}

impl Piece {
    /// Builds a piece.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

/// Returns the columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// How a text is broken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wrap {
    /// Columns of the whole row.
    pub(crate) width: usize,
    /// Prefix of the first row.
    pub(crate) first: Vec<Piece>,
    /// Prefix of the others.
    pub(crate) rest: Vec<Piece>,
    /// Keeps blanks as text, as in code.
    pub(crate) keeps_blanks: bool,
    /// Whether words stay whole where blanks are kept, if they are not longer than half a row.
    pub(crate) keeps_words: bool,
}

impl Wrap {
    /// Breaks text at this width, without a gutter.
    pub(crate) fn at(width: usize) -> Self {
        Self {
            width,
            ..Self::default()
        }
    }

    /// Puts the same before each row.
    pub(crate) fn behind(mut self, gutter: Piece) -> Self {
        self.first.push(gutter.clone());
        self.rest.push(gutter);
        self
    }

    /// Breaks one line into rows; an empty one is one row.
    pub(crate) fn rows(&self, pieces: &[Piece]) -> Vec<Row> {
        let mut breaker = Breaker {
            wrap: self,
            rows: Vec::new(),
            row: Row::default(),
            used: 0,
        };
        match self.keeps_blanks {
            true => breaker.letters(pieces),
            false => breaker.words(pieces),
        }
        breaker.end(Break::Line);
        breaker.rows
    }

    /// Breaks each line of a text of one style into rows.
    pub(crate) fn lines(&self, text: &str, style: Style) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut wrap = self.clone();
        for line in text.split('\n') {
            rows.extend(wrap.rows(&[Piece::new(line, style)]));
            wrap.first.clone_from(&self.rest);
        }
        rows
    }

    fn room(&self, is_first: bool) -> usize {
        let gutter = if is_first { &self.first } else { &self.rest };
        let gutter: usize = gutter.iter().map(|it| columns(&it.text)).sum();
        self.width.saturating_sub(gutter).max(1)
    }
}

struct Breaker<'a> {
    wrap: &'a Wrap,
    rows: Vec<Row>,
    row: Row,
    used: usize,
}

impl Breaker<'_> {
    fn room(&self) -> usize {
        self.wrap.room(self.rows.is_empty())
    }

    fn push(&mut self, text: &str, style: Style) {
        self.used += columns(text);
        match self.row.pieces.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.row.pieces.push(Piece::new(text, style)),
        }
    }

    fn end(&mut self, end: Break) {
        let gutter = match self.rows.is_empty() {
            true => &self.wrap.first,
            false => &self.wrap.rest,
        };
        let mut row = std::mem::take(&mut self.row);
        row.gutter.clone_from(gutter);
        row.end = end;
        self.used = 0;
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        }
    }

    fn letters(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            for letter in piece.text.graphemes(true) {
                let wide = columns(letter);
                if self.used + wide > self.room() && self.used > 0 {
                    let word = self.take_word(letter);
                    self.end(Break::Word);
                    if let Some(word) = word {
                        self.push(&word.text, word.style);
                    }
                }
                self.push(letter, piece.style);
            }
        }
    }

    /// Takes the word off the row's end that goes on with the next letter, where it is to stay whole.
    fn take_word(&mut self, next: &str) -> Option<Piece> {
        let most = self.room() / 2;
        let last = self.row.pieces.last_mut()?;
        if !self.wrap.keeps_words || next == " " {
            return None;
        }
        let begins = word_begins(&last.text).filter(|it| *it < last.text.len())?;
        if columns(last.text.get(begins..)?) > most {
            return None;
        }
        Some(Piece::new(last.text.split_off(begins), last.style))
    }

    fn words(&mut self, pieces: &[Piece]) {
        let mut blanks: Vec<Piece> = Vec::new();
        for word in split_words(pieces) {
            if word.iter().all(|it| it.text.chars().all(|c| c == ' ')) {
                blanks = word;
                continue;
            }
            let width: usize = word.iter().map(|it| columns(&it.text)).sum();
            let before: usize = blanks.iter().map(|it| columns(&it.text)).sum();
            if self.used > 0 && self.used + before + width > self.room() {
                self.end(Break::Blank);
            } else {
                for blank in &blanks {
                    self.push(&blank.text, blank.style);
                }
            }
            blanks.clear();
            match width <= self.room() {
                true => word.iter().for_each(|it| self.push(&it.text, it.style)),
                false => self.letters(&word),
            }
        }
    }
}

/// Returns where the last word of a text begins: after a blank, or a hyphen within a word.
fn word_begins(text: &str) -> Option<usize> {
    let mut before = None;
    let mut begins = None;
    for (at, letter) in text.char_indices() {
        let is_hyphen = letter == '-' && before.is_some_and(char::is_alphanumeric);
        if letter == ' ' || is_hyphen {
            begins = Some(at + letter.len_utf8());
        }
        before = Some(letter);
    }
    begins
}

/// Splits pieces into words and the blanks between them, in order.
fn split_words(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut words: Vec<Vec<Piece>> = Vec::new();
    let mut was_blank = None;
    for piece in pieces {
        let mut rest = piece.text.as_str();
        while let Some(first) = rest.chars().next() {
            let is_blank = first == ' ';
            let end = rest.find(|c: char| (c == ' ') != is_blank);
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            let word = Piece::new(word, piece.style);
            match words.last_mut() {
                Some(last) if was_blank == Some(is_blank) => last.push(word),
                _ => words.push(vec![word]),
            }
            was_blank = Some(is_blank);
            rest = after;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::row::joined;

    fn shown(wrap: &Wrap, text: &str) -> Vec<String> {
        let rows = wrap.rows(&[Piece::new(text, Style::new())]);
        rows.iter().map(Row::whole).collect()
    }

    #[test]
    fn lines_are_broken_at_blanks_and_long_words_within() {
        let wrap = Wrap::at(8);
        assert_eq!(shown(&wrap, "one two three"), ["one two", "three"]);
        assert_eq!(shown(&wrap, "abcdefghijkl mn"), ["abcdefgh", "ijkl mn"]);
        assert_eq!(shown(&wrap, ""), [""]);
        assert_eq!(shown(&wrap, "  x"), ["  x"]);
        assert_eq!(shown(&wrap, "日本語日本語"), ["日本語日", "本語"]);
    }

    #[test]
    fn what_was_broken_is_joined_as_it_was() {
        let text = "one two three fourteenfifteen six";
        for width in 1..40 {
            let wrap = Wrap::at(width).behind(Piece::new("│", Style::new()));
            let rows = wrap.rows(&[Piece::new(text, Style::new())]);
            assert_eq!(joined(&rows), text, "{width}");
        }
    }

    #[test]
    fn code_keeps_its_blanks() {
        let wrap = Wrap {
            keeps_blanks: true,
            ..Wrap::at(4)
        };
        assert_eq!(shown(&wrap, "a   b   c"), ["a   ", "b   ", "c"]);
    }
}
