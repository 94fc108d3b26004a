//! Visible part of the conversation.

use super::Transcript;
use crate::text::Row;
use crate::theme::Theme;

/// Entries around those in view whose rows are kept.
const NEAR: usize = 32;

/// A row of an entry: the entry's number, and the row in it. It stays the same row where rows come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPosition {
    pub(crate) entry: usize,
    pub(crate) row: usize,
}

/// Follows the end, or is at a place.
#[derive(Debug, Default)]
pub(crate) struct Viewport {
    /// The topmost row; the end is followed if there is none.
    top: Option<RowPosition>,
}

impl Viewport {
    /// Returns whether the end is followed.
    pub(crate) fn follows(&self) -> bool {
        self.top.is_none()
    }

    /// Follows the end from now on.
    pub(crate) fn follow(&mut self) {
        self.top = None;
    }

    /// Goes to an entry, with some rows before it.
    pub(crate) fn go_to(
        &mut self,
        place: RowPosition,
        transcript: &mut Transcript,
        frame: Frame<'_>,
    ) {
        self.top = Some(place);
        self.scroll(
            -(isize::try_from(frame.height / 3).unwrap_or(0)),
            transcript,
            frame,
        );
    }

    /// Moves by so many rows; down to the end it follows that.
    pub(crate) fn scroll(&mut self, by: isize, transcript: &mut Transcript, frame: Frame<'_>) {
        let end = transcript.end_top(frame);
        let top = self.top.unwrap_or(end);
        let moved = transcript.moved(top, by, frame);
        self.top = (moved < end).then_some(moved);
    }

    /// Goes to the beginning.
    pub(crate) fn go_to_top(&mut self, transcript: &mut Transcript, frame: Frame<'_>) {
        let first = RowPosition {
            entry: transcript.first,
            row: 0,
        };
        self.top = (first < transcript.end_top(frame)).then_some(first);
    }

    /// Returns the rows to show, each with its place. There may be fewer than fit.
    pub(crate) fn rows(
        &mut self,
        transcript: &mut Transcript,
        frame: Frame<'_>,
    ) -> Vec<(RowPosition, Row)> {
        let end = transcript.end_top(frame);
        // The entry at the top may be gone, or all that follows may fit.
        if self.top.is_some_and(|top| top >= end) {
            self.top = None;
        }
        let top = self.top.unwrap_or(end);
        let rows = transcript.rows_from(top, frame);
        if let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) {
            let first_entry = transcript.first;
            let from = first.entry.saturating_sub(first_entry + NEAR);
            transcript.forget_rows(from..last.entry + NEAR - first_entry);
        }
        rows
    }
}

/// For what the rows are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) theme: &'a Theme,
}

impl Transcript {
    fn height_of(&mut self, entry: usize, frame: Frame<'_>) -> usize {
        match entry.checked_sub(self.first) {
            Some(at) => self.rows(at, frame.width, frame.theme).len(),
            None => 0,
        }
    }

    /// Returns the topmost row of the view that shows the end.
    fn end_top(&mut self, frame: Frame<'_>) -> RowPosition {
        let mut left = frame.height;
        let mut entry = self.first + self.items.len();
        while entry > self.first {
            let height = self.height_of(entry - 1, frame);
            entry -= 1;
            if height >= left {
                let row = height - left;
                return RowPosition { entry, row };
            }
            left -= height;
        }
        RowPosition { entry, row: 0 }
    }

    /// Returns the place so many rows further down, or up.
    fn moved(&mut self, from: RowPosition, by: isize, frame: Frame<'_>) -> RowPosition {
        let RowPosition { mut entry, mut row } = from;
        entry = entry.max(self.first);
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > row {
                if entry == self.first {
                    return RowPosition { entry, row: 0 };
                }
                left -= row + 1;
                entry -= 1;
                row = self.height_of(entry, frame).saturating_sub(1);
            }
            return RowPosition {
                entry,
                row: row - left,
            };
        }
        let end = self.first + self.items.len();
        while entry < end {
            let height = self.height_of(entry, frame);
            if row + left < height {
                break;
            }
            left = (row + left).saturating_sub(height);
            (entry, row) = (entry + 1, 0);
        }
        RowPosition {
            entry,
            row: row + left,
        }
    }

    /// Returns the rows from one to another, both included.
    pub(crate) fn between(
        &mut self,
        from: RowPosition,
        to: RowPosition,
        frame: Frame<'_>,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for entry in from.entry..=to.entry {
            let at = entry.saturating_sub(self.first);
            let all = self.rows(at, frame.width, frame.theme);
            let places = all
                .iter()
                .enumerate()
                .map(|(row, it)| (RowPosition { entry, row }, it));
            let wanted = places.filter(|(place, _)| from <= *place && *place <= to);
            rows.extend(wanted.map(|it| it.1.clone()));
        }
        rows
    }

    fn rows_from(&mut self, top: RowPosition, frame: Frame<'_>) -> Vec<(RowPosition, Row)> {
        let mut shown = Vec::with_capacity(frame.height);
        let RowPosition { mut entry, row } = top;
        let mut skip = row;
        let end = self.first + self.items.len();
        while entry < end && shown.len() < frame.height {
            let room = frame.height - shown.len();
            let at = entry.saturating_sub(self.first);
            let rows = self.rows(at, frame.width, frame.theme);
            let rows = rows.iter().enumerate().skip(skip).take(room);
            shown.extend(rows.map(|(row, it)| (RowPosition { entry, row }, it.clone())));
            (entry, skip) = (entry + 1, 0);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Tone};
    use super::*;
    use crate::options::Colours;

    fn transcript(count: usize) -> Transcript {
        let mut transcript = Transcript::default();
        for at in 0..count {
            let text = format!("note {at}\nsecond");
            transcript.push(Entry::Note(Tone::Plain, text));
        }
        transcript
    }

    fn shown(view: &mut Viewport, transcript: &mut Transcript, theme: &Theme) -> Vec<String> {
        let rows = view.rows(transcript, frame(theme));
        rows.into_iter().map(|(_, row)| row.text()).collect()
    }

    fn top(view: &mut Viewport, transcript: &mut Transcript, theme: &Theme) -> RowPosition {
        view.rows(transcript, frame(theme))[0].0
    }

    fn frame(theme: &Theme) -> Frame<'_> {
        Frame {
            width: 40,
            height: 4,
            theme,
        }
    }

    #[test]
    fn the_end_is_followed_until_one_scrolls_up_and_again_at_the_end() {
        let theme = Theme::of(Colours::None);
        let (mut all, mut view) = (transcript(3), Viewport::default());
        assert_eq!(
            shown(&mut view, &mut all, &theme),
            ["second", "", "note 2", "second"]
        );
        view.scroll(-3, &mut all, frame(&theme));
        let before = shown(&mut view, &mut all, &theme);
        assert_eq!(before, ["second", "", "note 1", "second"]);
        all.push(Entry::Note(Tone::Plain, "new".to_owned()));
        assert_eq!(shown(&mut view, &mut all, &theme), before);
        view.scroll(99, &mut all, frame(&theme));
        assert!(view.follows());
        assert_eq!(
            shown(&mut view, &mut all, &theme),
            ["note 2", "second", "", "new"]
        );
        view.scroll(-99, &mut all, frame(&theme));
        assert_eq!(
            shown(&mut view, &mut all, &theme),
            ["", "note 0", "second", ""]
        );
    }

    #[test]
    fn every_row_is_passed_once_however_one_scrolls() {
        let theme = Theme::of(Colours::None);
        for step in 1..7 {
            let (mut all, mut view) = (transcript(20), Viewport::default());
            view.go_to_top(&mut all, frame(&theme));
            let mut tops = Vec::new();
            while !view.follows() {
                tops.push(top(&mut view, &mut all, &theme));
                view.scroll(step, &mut all, frame(&theme));
            }
            assert!(
                tops.is_sorted() && tops.len() >= 56 / step.unsigned_abs(),
                "{step}"
            );
            let mut back = Vec::new();
            while tops.first() != back.last() {
                view.scroll(-step, &mut all, frame(&theme));
                back.push(top(&mut view, &mut all, &theme));
            }
            assert!(back.len() >= tops.len(), "{step}");
        }
    }

    #[test]
    fn rows_out_of_view_are_let_go_of() {
        let theme = Theme::of(Colours::None);
        let (mut all, mut view) = (transcript(5_000), Viewport::default());
        view.go_to_top(&mut all, frame(&theme));
        while !view.follows() {
            view.scroll(40, &mut all, frame(&theme));
            shown(&mut view, &mut all, &theme);
            assert!(
                all.laid_out <= super::super::LAID_OUT_MAX + 64,
                "{}",
                all.laid_out
            );
        }
    }
}
