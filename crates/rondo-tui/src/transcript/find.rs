//! Looks for words in all of the conversation.

use super::viewport::Frame;
use super::{RowPosition, Transcript};

impl Transcript {
    /// Returns the place of a text, whatever its case: before a place, going up, or else after it. A place outside of
    /// the conversation is taken for its end or its beginning.
    pub(crate) fn find(
        &mut self,
        text: &str,
        from: Option<RowPosition>,
        goes_up: bool,
        frame: Frame<'_>,
    ) -> Option<RowPosition> {
        let needle = text.to_lowercase();
        if needle.is_empty() {
            return None;
        }
        let end = self.first + self.len();
        let from = from.unwrap_or(RowPosition { entry: end, row: 0 });
        let order: Vec<usize> = match goes_up {
            true => (self.first..end.min(from.entry + 1)).rev().collect(),
            false => (from.entry.max(self.first)..end).collect(),
        };
        for entry in order {
            let at = entry - self.first;
            if !self.items.get(at).is_some_and(|it| it.entry.holds(&needle)) {
                continue;
            }
            let rows = self.rows(at, frame.width, frame.theme);
            let holds = |row: usize| {
                rows.get(row)
                    .is_some_and(|it| it.text().to_lowercase().contains(&needle))
            };
            let mut places = (0..rows.len()).map(|row| RowPosition { entry, row });
            let is_it = |it: &RowPosition| match goes_up {
                true => *it < from && holds(it.row),
                false => *it > from && holds(it.row),
            };
            let found = match goes_up {
                true => places.rfind(is_it),
                false => places.find(is_it),
            };
            // A text that is broken over rows, or folded, is found at its entry.
            let beginning = RowPosition { entry, row: 0 };
            let is_beyond = if goes_up {
                beginning < from
            } else {
                beginning > from
            };
            let is_folded = found.is_none() && (0..rows.len()).all(|row| !holds(row)) && is_beyond;
            if let Some(found) = found.or(is_folded.then_some(beginning)) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Tone};
    use super::*;
    use crate::options::Colours;
    use crate::theme::Theme;

    #[test]
    fn words_are_found_up_and_down_and_each_once() {
        let theme = Theme::of(Colours::None);
        let frame = Frame {
            width: 40,
            height: 5,
            theme: &theme,
        };
        let mut all = Transcript::default();
        for text in ["One apple", "pear\nAPPLE pie\napple", "plum"] {
            all.push(Entry::Note(Tone::Plain, text.to_owned()));
        }
        let first = all.first;
        let place = |entry, row| {
            Some(RowPosition {
                entry: first + entry,
                row,
            })
        };
        let mut up = Vec::new();
        let mut from = None;
        while let Some(found) = all.find("apple", from, true, frame) {
            up.push(Some(found));
            from = Some(found);
        }
        assert_eq!(up, [place(1, 3), place(1, 2), place(0, 1)]);
        assert_eq!(all.find("apple", place(0, 1), false, frame), place(1, 2));
        assert_eq!(all.find("apple", place(1, 3), false, frame), None);
        assert_eq!(all.find("nowhere", None, true, frame), None);
        assert_eq!(all.find("", None, true, frame), None);
    }
}
