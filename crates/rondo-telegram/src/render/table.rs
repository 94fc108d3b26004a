//! Tables as text: in columns if they are narrow enough for a phone, else as a list.

use textwrap::core::display_width;

/// The width of the widest table that is set in columns. A phone shows about 40 characters, and scrolls.
const COLUMNS_MAX: usize = 60;

/// A table while it is read; the first row is its head.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push_str(&text.replace('\n', " "));
        }
    }

    /// Returns the table in columns; `None` if it is too wide.
    pub(super) fn in_columns(&self) -> Option<String> {
        let count = self.rows.iter().map(Vec::len).max()?;
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|it| display_width(it)).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..count).map(width).collect();
        let total = widths
            .iter()
            .fold(0usize, |sum, it| sum.saturating_add(*it));
        if total.saturating_add(3 * count) > COLUMNS_MAX {
            return None;
        }
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(row, &widths)).collect();
        let rules: Vec<String> = widths.iter().map(|it| "-".repeat(*it)).collect();
        lines.insert(lines.len().min(1), rules.join("-+-"));
        Some(lines.join("\n"))
    }

    /// Returns each row as lines of head and cell.
    pub(super) fn as_list(&self) -> String {
        let Some((head, rows)) = self.rows.split_first() else {
            return String::new();
        };
        let rows = rows.iter().map(|row| {
            let cells = row.iter().zip(head).filter(|(cell, _)| !cell.is_empty());
            let lines: Vec<String> = cells
                .map(|(cell, head)| format!("{head}: {cell}"))
                .collect();
            lines.join("\n")
        });
        rows.collect::<Vec<_>>().join("\n\n")
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| {
        let padding = width.saturating_sub(display_width(cell));
        format!("{cell}{}", " ".repeat(padding))
    });
    cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
}
