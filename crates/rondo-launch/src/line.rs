//! One line of a terminal, with a cursor in it.

use unicode_width::UnicodeWidthChar as _;

/// The bound on columns that a cursor goes to the right of the text.
const COLUMN_MAX: usize = 1024;
/// The longest line in which a cursor goes back, in bytes: each step looks through the line, and no terminal is as wide. What
/// is written over a longer one replaces its rest.
const EDITED_BYTES_MAX: usize = 8 << 10;
/// How far tabs are apart, in columns.
const TAB: usize = 8;

/// A line as a terminal shows it.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// Position of the cursor, in bytes.
    cursor: usize,
    /// How many columns the cursor is behind the end of the text.
    beyond: usize,
    /// Set if something was written over or erased: trailing blanks then do not count.
    is_edited: bool,
}

impl Line {
    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        match self.is_edited {
            true => self.text.trim_end_matches(' '),
            false => &self.text,
        }
    }

    /// Returns the column of the cursor, from 0.
    pub(super) fn column(&self) -> usize {
        column_behind(self.before()) + self.beyond
    }

    /// Moves the cursor to the first column.
    pub(super) fn begin(&mut self) {
        (self.cursor, self.beyond) = (0, 0);
    }

    /// Moves the cursor to a column.
    pub(super) fn go_to(&mut self, column: usize) {
        if column > 0 && self.is_long() {
            return;
        }
        self.begin();
        if column > 0 {
            self.expand_tabs();
        }
        let mut left = column;
        for c in self.text.chars() {
            let wide = width(c);
            if wide > left {
                break;
            }
            self.cursor += c.len_utf8();
            left -= wide;
        }
        match self.cursor == self.text.len() {
            true => self.beyond = left.min(COLUMN_MAX),
            // In the middle of a wide character, which a terminal then takes apart.
            false if left > 0 => self.take_apart(left),
            false => {}
        }
    }

    /// Moves the cursor to the left.
    pub(super) fn go_left(&mut self, columns: usize) {
        if self.is_long() {
            return;
        }
        self.expand_tabs();
        let outside = columns.min(self.beyond);
        self.beyond -= outside;
        let mut left = columns - outside;
        while left > 0 {
            let Some(c) = self.before().chars().next_back() else {
                return;
            };
            let wide = width(c);
            if wide > left {
                let half = wide - left;
                self.cursor -= c.len_utf8();
                return self.take_apart(half);
            }
            self.cursor -= c.len_utf8();
            left -= wide;
        }
    }

    /// Moves the cursor to the next tab stop; at the end of the text the tab is kept as it is.
    pub(super) fn tab(&mut self) {
        if self.cursor == self.text.len() || self.is_long() {
            self.fill();
            self.text.truncate(self.cursor);
            self.text.push('\t');
            self.cursor = self.text.len();
            return;
        }
        let column = self.column();
        self.go_to((column / TAB + 1) * TAB);
    }

    /// Writes a character over what is at the cursor.
    pub(super) fn write(&mut self, c: char) {
        self.fill();
        let wide = width(c);
        if self.is_long() {
            self.text.truncate(self.cursor);
        } else if self.cursor < self.text.len() {
            self.expand_tabs();
            self.is_edited |= wide > 0;
            self.remove(wide);
        }
        self.text.insert(self.cursor, c);
        self.cursor += c.len_utf8();
    }

    /// Writes text without control characters but tabs.
    pub(super) fn write_text(&mut self, text: &str) {
        if self.cursor == self.text.len() {
            self.fill();
            self.text.push_str(text);
            self.cursor = self.text.len();
            return;
        }
        for c in text.chars() {
            match c {
                '\t' => self.tab(),
                c => self.write(c),
            }
        }
    }

    /// Erases from the cursor on (0), up to it (1), or all of the line (2). The cursor stays.
    pub(super) fn erase(&mut self, part: usize) {
        let is_at_end = self.cursor == self.text.len();
        if is_at_end && (part == 0 || self.is_long()) {
            return;
        }
        self.is_edited = true;
        self.expand_tabs();
        let column = self.column();
        match part {
            0 => self.text.truncate(self.cursor),
            1 => {
                self.fill();
                self.remove(1);
                let after = self.text.split_off(self.cursor);
                self.text = " ".repeat(column + 1) + &after;
            }
            _ => self.text.clear(),
        }
        self.go_to(column);
    }

    /// Deletes columns at the cursor; what is behind them moves to the left.
    pub(super) fn delete(&mut self, columns: usize) {
        if self.is_long() {
            return;
        }
        self.is_edited = true;
        self.expand_tabs();
        self.remove(columns);
    }

    /// Erases columns from the cursor on, without moving anything.
    pub(super) fn blank(&mut self, columns: usize) {
        if self.is_long() {
            return;
        }
        self.expand_tabs();
        let column = self.column();
        let behind = self.text.get(self.cursor..).unwrap_or_default();
        let there: usize = behind.chars().map(width).sum();
        let columns = columns.min(there);
        self.delete(columns);
        self.text.insert_str(self.cursor, &" ".repeat(columns));
        self.go_to(column);
    }

    /// Inserts blanks at the cursor, which stays.
    pub(super) fn insert_blanks(&mut self, columns: usize) {
        if self.cursor < self.text.len() && !self.is_long() {
            self.is_edited = true;
            self.expand_tabs();
            let blanks = " ".repeat(columns.min(COLUMN_MAX));
            self.text.insert_str(self.cursor, &blanks);
        }
    }

    fn is_long(&self) -> bool {
        self.text.len() > EDITED_BYTES_MAX
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    /// Replaces tabs by blanks: what is written over a line does not move what is behind it.
    fn expand_tabs(&mut self) {
        if !self.text.contains('\t') {
            return;
        }
        let mut expanded = String::new();
        let (mut cursor, mut column) = (None, 0);
        for (at, c) in self.text.char_indices() {
            if at == self.cursor {
                cursor = Some(expanded.len());
            }
            match c {
                '\t' => {
                    let blanks = TAB - column % TAB;
                    expanded.push_str(&" ".repeat(blanks));
                    column += blanks;
                }
                c => {
                    expanded.push(c);
                    column += width(c);
                }
            }
        }
        self.cursor = cursor.unwrap_or(expanded.len());
        self.text = expanded;
    }

    /// Makes the text reach to the cursor.
    fn fill(&mut self) {
        if self.beyond > 0 {
            self.text.push_str(&" ".repeat(self.beyond));
            (self.cursor, self.beyond) = (self.text.len(), 0);
        }
    }

    /// Removes so many columns at the cursor; of a wide character that is only partly among them, blanks are left.
    fn remove(&mut self, columns: usize) {
        let mut left = columns;
        let (mut end, mut blanks) = (self.cursor, 0);
        let behind = self.text.get(self.cursor..).unwrap_or_default();
        for c in behind.chars() {
            let wide = width(c);
            if left == 0 && wide > 0 {
                break;
            }
            end += c.len_utf8();
            blanks = wide.saturating_sub(left);
            left = left.saturating_sub(wide);
        }
        if columns > 0 {
            self.text
                .replace_range(self.cursor..end, &" ".repeat(blanks));
        }
    }

    /// Replaces the wide character at the cursor by blanks, and puts the cursor so many columns into them.
    fn take_apart(&mut self, columns: usize) {
        let behind = self.text.get(self.cursor..).unwrap_or_default();
        if let Some(c) = behind.chars().next() {
            let end = self.cursor + c.len_utf8();
            let blanks = width(c);
            self.text
                .replace_range(self.cursor..end, &" ".repeat(blanks));
            self.cursor += columns.min(blanks);
        }
    }
}

/// Returns the column behind a text.
fn column_behind(text: &str) -> usize {
    text.chars().fold(0, |column, c| match c {
        '\t' => (column / TAB + 1) * TAB,
        c => column + width(c),
    })
}

/// Returns the columns of a character; none of a control character.
fn width(c: char) -> usize {
    c.width().unwrap_or_default()
}
