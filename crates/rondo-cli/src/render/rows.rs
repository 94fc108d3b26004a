//! Decides up to where an unfinished line of prose can be shown.

use super::marks::item_marker;

/// From here on characters may be two columns wide (Hangul Jamo, then all of East Asia).
const WIDE_FROM: char = '\u{1100}';

/// Returns where the first rows of a line end that are full and stand by themselves; none as long as more of
/// the line may change them, and for what is no prose.
///
/// Rows end where no mark is open, and before a word that cannot be taken for the beginning of an item
/// or a heading: what follows is rendered as a line of its own. The same line has the same rows
/// however much of it is there.
pub(super) fn full(line: &str, columns: usize) -> Option<usize> {
    if !is_prose(line) {
        return None;
    }
    let (mut width, mut open, mut end) = (0, Marks::default(), None);
    for (at, c) in line.char_indices() {
        if c == ' ' {
            end = Some((at, open.is_none()));
        }
        open.take(c);
        width += column(c);
        let Some((space, is_closed)) = end.filter(|_| width > columns && c != ' ') else {
            continue;
        };
        let next = line.get(space + 1..at + c.len_utf8())?;
        if is_closed && next.starts_with(char::is_alphabetic) {
            return Some(space);
        }
        width = next.chars().map(column).sum();
        end = None;
    }
    None
}

/// Returns where the words of a line end that can be shown before the rest of it is there: behind them is a
/// blank, and no mark is open. Words of a table, a heading, a quote or code have to wait.
pub(super) fn words(line: &str) -> Option<usize> {
    let marker = item_marker(line);
    if marker == 0 && !is_prose(line) {
        return None;
    }
    let (mut open, mut end) = (Marks::default(), None);
    let mut before = ' ';
    for (at, c) in line.char_indices().skip_while(|(at, _)| *at < marker) {
        if c == ' ' && before != ' ' && open.is_none() {
            end = Some(at);
        }
        open.take(c);
        before = c;
    }
    end
}

fn is_prose(line: &str) -> bool {
    let text = line.trim_start();
    let is_code = line.starts_with("    ") || line.starts_with('\t');
    !is_code && !text.starts_with(['#', '>', '|']) && item_marker(line) == 0
}

fn column(c: char) -> usize {
    if c < WIDE_FROM { 1 } else { 2 }
}

/// Which marks are open; a run of the same mark is one.
#[derive(Default)]
struct Marks {
    code: bool,
    star: bool,
    stroke: bool,
    before: Option<char>,
}

impl Marks {
    fn take(&mut self, c: char) {
        let is_first = self.before.replace(c) != Some(c);
        match c {
            '`' => self.code ^= is_first,
            '*' => self.star ^= is_first,
            '~' => self.stroke ^= is_first,
            _ => {}
        }
    }

    fn is_none(&self) -> bool {
        !(self.code || self.star || self.stroke)
    }
}
