//! Tables: columns as wide as they need, or as they can be.

use crate::text::{Piece, Row, Wrap, columns};
use crate::theme::Theme;
use pulldown_cmark::Alignment;
use ratatui_core::style::{Modifier, Style};

/// Columns that a cell keeps at least.
const CELL_MIN: usize = 3;
/// Between two columns.
const BETWEEN: &str = " │ ";

/// A table as it is read.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Piece>>>,
    row: Vec<Vec<Piece>>,
    cell: Vec<Piece>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.cell.push(Piece::new(text, style));
    }

    pub(super) fn end_cell(&mut self) {
        self.row.push(std::mem::take(&mut self.cell));
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Lays it out. If there is no room for columns, each cell has a row of its own.
    pub(super) fn rows(self, width: usize, theme: &Theme) -> Vec<Row> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let between = columns(BETWEEN) * count.saturating_sub(1);
        let room = width.saturating_sub(between);
        if count == 0 || room < count * CELL_MIN {
            return self.stacked(width);
        }
        let widths = self.widths(count, room);
        let mut shown = Vec::new();
        for (at, cells) in self.rows.iter().enumerate() {
            self.lay_out(cells, &widths, at == 0, theme, &mut shown);
            if at == 0 {
                let lines = widths.iter().map(|it| "─".repeat(*it));
                let line = lines.collect::<Vec<_>>().join("─┼─");
                shown.push(Row::of(line, theme.dim));
            }
        }
        shown
    }

    fn stacked(self, width: usize) -> Vec<Row> {
        let wrap = Wrap::at(width.max(1));
        let cells = self.rows.into_iter().flatten();
        cells.flat_map(|cell| wrap.rows(&cell)).collect()
    }

    /// Returns the columns' widths: what they need, the widest cut down to what there is.
    fn widths(&self, count: usize, room: usize) -> Vec<usize> {
        let needed = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widths = cells.map(|cell| cell.iter().map(|it| columns(&it.text)).sum::<usize>());
            widths.max().unwrap_or_default().max(CELL_MIN)
        };
        let mut widths: Vec<usize> = (0..count).map(needed).collect();
        while widths.iter().sum::<usize>() > room {
            let over = widths.iter().sum::<usize>() - room;
            let mut sorted = widths.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let widest = sorted.first().copied().unwrap_or(CELL_MIN);
            let second = sorted.iter().copied().find(|it| *it < widest);
            let alike = widths.iter().filter(|it| **it == widest).count();
            let least = second.unwrap_or(CELL_MIN).max(CELL_MIN);
            let cut = (widest - least).min(over.div_ceil(alike)).max(1);
            for it in &mut widths {
                if *it == widest {
                    *it -= cut;
                }
            }
        }
        widths
    }

    fn lay_out(
        &self,
        cells: &[Vec<Piece>],
        widths: &[usize],
        is_head: bool,
        theme: &Theme,
        shown: &mut Vec<Row>,
    ) {
        let wrapped: Vec<Vec<Row>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| {
                let empty = Vec::new();
                let cell = cells.get(at).unwrap_or(&empty);
                Wrap::at(*width).rows(cell)
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        for y in 0..height {
            let mut row = Row::default();
            for (at, (lines, width)) in wrapped.iter().zip(widths).enumerate() {
                if at > 0 {
                    row.pieces.push(Piece::new(BETWEEN, theme.dim));
                }
                let line = lines.get(y).cloned().unwrap_or_default();
                let free = width.saturating_sub(columns(&line.text()));
                let (before, after) = match self.alignments.get(at) {
                    Some(Alignment::Right) => (free, 0),
                    Some(Alignment::Center) => (free / 2, free - free / 2),
                    _ => (0, free),
                };
                let blank = |count: usize| Piece::new(" ".repeat(count), theme.text);
                row.pieces.push(blank(before));
                row.pieces.extend(line.pieces.into_iter().map(|mut it| {
                    if is_head {
                        it.style = it.style.add_modifier(Modifier::BOLD);
                    }
                    it
                }));
                row.pieces.push(blank(after));
            }
            shown.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::markdown::blocks::rows;
    use crate::options::Colours;
    use crate::text::Row;
    use crate::theme::Theme;

    fn shown(width: usize) -> Vec<String> {
        let source = "| name | size |\n|:--|--:|\n| a | 10 |\n| a long name | 2 |\n";
        let rows = rows(source, width, &Theme::of(Colours::Dark));
        rows.iter().map(Row::text).collect()
    }

    #[test]
    fn columns_are_as_wide_as_they_need_and_narrower_where_there_is_no_room() {
        assert_eq!(
            shown(40),
            [
                "name        │ size",
                "────────────┼─────",
                "a           │   10",
                "a long name │    2"
            ]
        );
        assert_eq!(
            shown(14),
            [
                "name    │ size",
                "────────┼─────",
                "a       │   10",
                "a long  │    2",
                "name    │     "
            ]
        );
        assert_eq!(shown(4).len(), 8);
    }
}
