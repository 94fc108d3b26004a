//! Changes of texts: what was beside what is if there is room, else below each other.

use super::entry::MARGIN;
use crate::options::Colours;
use crate::text::{Piece, Row, Wrap, clean, columns, printed};
use crate::theme::Theme;
use ratatui_core::style::{Modifier, Style};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;
use unicode_segmentation::UnicodeSegmentation as _;

/// Columns from which on the two sides are beside each other.
const BESIDE_COLUMNS_MIN: usize = 110;
/// Bytes of a line whose words are compared.
const LINE_BYTES_MAX: usize = 1_000;
/// How long the smallest difference is looked for.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(20);
/// Below this likeness, which is at most 1, two lines have nothing in common that is worth showing.
const LIKENESS_MIN: f32 = 0.4;
/// Rows of a change that are shown while it is folded.
pub(super) const ROWS_SHOWN: usize = 20;
/// Separator of the sides.
const BETWEEN: &str = " │ ";

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diff {
    lines: Vec<Line>,
    /// Columns that the numbers of its lines take.
    number_columns: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    kind: Kind,
    /// Its number in the text before, and in the one after; from 1 on, unknown if only parts are known.
    numbers: (Option<usize>, Option<usize>),
    text: String,
    /// The hunk that it belongs to, where hunks can be left out.
    hunk: Option<usize>,
}

/// Which hunks of a change are kept, and which one is selected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) is_kept: &'a [bool],
    pub(crate) selected: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Same,
    Removed,
    Added,
    /// Lines that are left out here.
    Gap,
    /// Words about the change.
    Note,
}

/// Lines that are shown together.
enum Block<'a> {
    Alone(&'a Line),
    /// Those that were, and those in their place.
    Changed(&'a [Line], &'a [Line]),
}

/// A line in the styles that it is shown in.
struct StyledLine<'a> {
    line: &'a Line,
    pieces: Vec<Piece>,
}

/// One side of a change.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Diff {
    /// Reads a unified difference; `None` if a text is none.
    pub(crate) fn unified(text: &str) -> Option<Self> {
        let mut lines = Vec::new();
        let mut at = None;
        for line in text.lines() {
            if let Some(place) = line.strip_prefix("@@ ") {
                at = Some(starts(place)?);
                if !lines.is_empty() {
                    lines.push(Line::told(Kind::Gap, ""));
                }
                continue;
            }
            // Lines before the first place name the files.
            if let Some(numbers) = &mut at {
                lines.push(Line::read(line, numbers));
            }
        }
        at?;
        Some(Self::of(lines))
    }

    pub(super) fn of(lines: Vec<Line>) -> Self {
        let numbers = lines.iter().flat_map(|it| [it.numbers.0, it.numbers.1]);
        let last = numbers.flatten().max();
        Self {
            number_columns: last.map_or(0, |it| it.to_string().len()),
            lines,
        }
    }

    /// Returns its rows, at most so wide.
    pub(crate) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        self.rows_of(width, theme, None).0
    }

    /// Returns its rows, with one before each hunk that says whether it is kept, and the places of those.
    pub(crate) fn rows_of(
        &self,
        width: usize,
        theme: &Theme,
        choice: Option<Choice<'_>>,
    ) -> (Vec<Row>, Vec<usize>) {
        let mut rows = Vec::new();
        let mut heads = Vec::new();
        let mut begun = None;
        for block in self.blocks() {
            let hunk = match &block {
                Block::Changed(removed, added) => {
                    removed.iter().chain(*added).next().and_then(|it| it.hunk)
                }
                Block::Alone(_) => None,
            };
            let mut layout = Layout {
                number_columns: self.number_columns,
                theme,
                is_left_out: false,
            };
            if let (Some(hunk), Some(choice)) = (hunk, choice) {
                layout.is_left_out = !choice.is_kept.get(hunk).unwrap_or(&true);
                if begun.replace(hunk) != Some(hunk) {
                    heads.push(rows.len());
                    rows.push(head(hunk, choice, theme));
                }
            }
            match block {
                Block::Alone(line) if matches!(line.kind, Kind::Gap | Kind::Note) => {
                    let text = if line.kind == Kind::Gap {
                        "⋯"
                    } else {
                        &line.text
                    };
                    rows.extend(Wrap::at(width).lines(text, theme.dim));
                }
                Block::Alone(line) if width < BESIDE_COLUMNS_MIN => {
                    rows.extend(layout.line(&layout.shown(line), Side::After, width));
                }
                Block::Alone(line) => {
                    let shown = layout.shown(line);
                    layout.pair(Some(&shown), Some(&shown), width, &mut rows);
                }
                Block::Changed(removed, added) => layout.changed(removed, added, width, &mut rows),
            }
        }
        (rows, heads)
    }

    /// Returns at most so many of its rows, each behind a bar, and how many more there are: those that it lacks included,
    /// with words behind it.
    pub(super) fn barred_rows(
        &self,
        (width, max): (usize, usize),
        theme: &Theme,
        (lacking, behind): (usize, &str),
    ) -> Vec<Row> {
        let bar = Piece::new(format!("{MARGIN}│ "), theme.frame);
        let mut rows = self.rows(width.saturating_sub(columns(&bar.text)), theme);
        let hidden = rows.len().saturating_sub(max) + lacking;
        rows.truncate(max);
        if hidden > 0 {
            rows.push(Row::of(format!("… {hidden} more rows{behind}"), theme.dim));
        }
        for row in &mut rows {
            row.gutter.insert(0, bar.clone());
        }
        rows
    }

    fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut rest = self.lines.as_slice();
        while let Some(first) = rest.first() {
            let count =
                |lines: &[Line], kind| lines.iter().take_while(|it| it.kind == kind).count();
            let (removed, behind) = rest.split_at(count(rest, Kind::Removed));
            let (added, behind) = behind.split_at(count(behind, Kind::Added));
            if removed.is_empty() && added.is_empty() {
                blocks.push(Block::Alone(first));
                rest = rest.get(1..).unwrap_or_default();
            } else {
                blocks.push(Block::Changed(removed, added));
                rest = behind;
            }
        }
        blocks
    }
}

/// Returns a unified difference as lines for a terminal, laid out as on the screen; `None` if a text is none. Of a long one
/// the first rows are shown, and how many there are `more`, those included that the text lacks.
#[must_use]
pub fn change_lines(unified: &str, more: usize, columns: usize, has_color: bool) -> Option<String> {
    let diff = Diff::unified(&clean::file(unified))?;
    let theme = Theme::of(Colours::Sixteen);
    let rows = diff.barred_rows((columns, ROWS_SHOWN), &theme, (more, ""));
    Some(match has_color {
        true => printed::lines(&rows),
        false => rows.iter().map(|row| row.whole() + "\n").collect(),
    })
}

impl Line {
    fn told(kind: Kind, text: &str) -> Self {
        Self::numbered(kind, (None, None), text, None)
    }

    pub(super) fn numbered(
        kind: Kind,
        numbers: (Option<usize>, Option<usize>),
        text: &str,
        hunk: Option<usize>,
    ) -> Self {
        Self {
            kind,
            numbers,
            text: text.to_owned(),
            hunk,
        }
    }

    /// Reads a line of a unified difference, whose numbers are those of the next lines on both sides.
    fn read(line: &str, numbers: &mut (usize, usize)) -> Self {
        let (kind, text) = match line.chars().next() {
            Some(' ') => (Kind::Same, line.get(1..)),
            Some('-') => (Kind::Removed, line.get(1..)),
            Some('+') => (Kind::Added, line.get(1..)),
            None => (Kind::Same, Some("")),
            Some(_) => (Kind::Note, Some(line)),
        };
        let mut line = Self::told(kind, text.unwrap_or_default());
        if matches!(kind, Kind::Same | Kind::Removed) {
            line.numbers.0 = Some(numbers.0);
            numbers.0 = numbers.0.saturating_add(1);
        }
        if matches!(kind, Kind::Same | Kind::Added) {
            line.numbers.1 = Some(numbers.1);
            numbers.1 = numbers.1.saturating_add(1);
        }
        line
    }
}

/// Reads the first line before and after: `-3,4 +5,6 @@`.
fn starts(place: &str) -> Option<(usize, usize)> {
    let mut parts = place.split(' ');
    let mut start = |sign| {
        let range = parts.next()?.strip_prefix(sign)?;
        range.split(',').next()?.parse().ok()
    };
    Some((start('-')?, start('+')?))
}

/// Shows which hunk follows, and whether it is kept: words, since colors may be missing.
fn head(hunk: usize, choice: Choice<'_>, theme: &Theme) -> Row {
    let mark = if hunk == choice.selected {
        "▸ "
    } else {
        "  "
    };
    let count = choice.is_kept.len();
    let (style, said) = match choice.is_kept.get(hunk) {
        Some(false) => (theme.warn, " · left out, the lines stay as they are"),
        _ => (theme.accent, ""),
    };
    Row {
        gutter: vec![Piece::new(mark, theme.accent)],
        ..Row::of(format!("hunk {} of {count}{said}", hunk + 1), style)
    }
}

struct Layout<'a> {
    number_columns: usize,
    theme: &'a Theme,
    /// Set if the lines belong to a hunk that is left out.
    is_left_out: bool,
}

impl Layout<'_> {
    fn style(&self, kind: Kind) -> Style {
        match kind {
            _ if self.is_left_out => self.theme.dim,
            Kind::Removed => self.theme.removed,
            Kind::Added => self.theme.added,
            Kind::Same | Kind::Gap | Kind::Note => self.theme.text,
        }
    }

    fn changed(&self, removed: &[Line], added: &[Line], width: usize, rows: &mut Vec<Row>) {
        let mut before: Vec<_> = removed.iter().map(|it| self.shown(it)).collect();
        let mut after: Vec<_> = added.iter().map(|it| self.shown(it)).collect();
        let pairs = before.iter_mut().zip(&mut after);
        for (old, new) in pairs.filter(|_| !self.is_left_out) {
            if let Some(words) = self.words(&old.line.text, &new.line.text) {
                (old.pieces, new.pieces) = words;
            }
        }
        if width < BESIDE_COLUMNS_MIN {
            rows.extend(
                before
                    .iter()
                    .flat_map(|it| self.line(it, Side::Before, width)),
            );
            rows.extend(
                after
                    .iter()
                    .flat_map(|it| self.line(it, Side::After, width)),
            );
            return;
        }
        for at in 0..before.len().max(after.len()) {
            self.pair(before.get(at), after.get(at), width, rows);
        }
    }

    fn shown<'a>(&self, line: &'a Line) -> StyledLine<'a> {
        let piece = Piece::new(line.text.as_str(), self.style(line.kind));
        StyledLine {
            line,
            pieces: vec![piece],
        }
    }

    /// Returns both lines with the words emphasised that differ.
    fn words(&self, old: &str, new: &str) -> Option<(Vec<Piece>, Vec<Piece>)> {
        if old.len().max(new.len()) > LINE_BYTES_MAX {
            return None;
        }
        let old: Vec<&str> = old.split_word_bounds().collect();
        let new: Vec<&str> = new.split_word_bounds().collect();
        let diff = TextDiff::configure()
            .timeout(COMPARE_TIME_MAX)
            .diff_slices(&old, &new);
        if diff.ratio() < LIKENESS_MIN {
            return None;
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let differs = Modifier::BOLD | Modifier::UNDERLINED;
        for change in diff.iter_all_changes() {
            let text = change.value();
            let (old, new) = (self.style(Kind::Removed), self.style(Kind::Added));
            match change.tag() {
                ChangeTag::Equal => {
                    before.push(Piece::new(text, old));
                    after.push(Piece::new(text, new));
                }
                ChangeTag::Delete => before.push(Piece::new(text, old.add_modifier(differs))),
                ChangeTag::Insert => after.push(Piece::new(text, new.add_modifier(differs))),
            }
        }
        Some((before, after))
    }

    /// Lays out one line of one side.
    fn line(&self, shown: &StyledLine<'_>, side: Side, width: usize) -> Vec<Row> {
        let StyledLine { line, pieces } = shown;
        let number = match side {
            Side::Before => line.numbers.0,
            Side::After => line.numbers.1,
        };
        let sign = match line.kind {
            // The one stays, and the other does not come.
            Kind::Removed if self.is_left_out => "  ",
            Kind::Added if self.is_left_out => "× ",
            Kind::Removed => "- ",
            Kind::Added => "+ ",
            Kind::Same | Kind::Gap | Kind::Note => "  ",
        };
        let gutter = |number: String, sign: &str| {
            let mut gutter = Vec::new();
            if self.number_columns > 0 {
                let width = self.number_columns;
                gutter.push(Piece::new(format!("{number:>width$} "), self.theme.dim));
            }
            gutter.push(Piece::new(sign, self.style(line.kind)));
            gutter
        };
        let wrap = Wrap {
            width,
            first: gutter(number.map_or_else(String::new, |it| it.to_string()), sign),
            rest: gutter(String::new(), "  "),
            keeps_blanks: true,
            keeps_words: false,
        };
        wrap.rows(pieces)
    }

    /// Lays out a line of each side beside each other. The text of the row is the one after: what is copied of it.
    fn pair(
        &self,
        before: Option<&StyledLine<'_>>,
        after: Option<&StyledLine<'_>>,
        width: usize,
        rows: &mut Vec<Row>,
    ) {
        let left_width = width.saturating_sub(columns(BETWEEN)) / 2;
        let right_width = width.saturating_sub(columns(BETWEEN) + left_width);
        let left = before.map(|it| self.line(it, Side::Before, left_width));
        let right = after.map(|it| self.line(it, Side::After, right_width));
        let mut left = left.unwrap_or_default().into_iter();
        let mut right = right.unwrap_or_default().into_iter();
        loop {
            let (old, new) = (left.next(), right.next());
            if old.is_none() && new.is_none() {
                return;
            }
            rows.push(self.beside(old.unwrap_or_default(), new.unwrap_or_default(), left_width));
        }
    }

    fn beside(&self, left: Row, right: Row, left_width: usize) -> Row {
        let used = columns(&left.whole());
        let mut gutter = left.gutter;
        gutter.extend(left.pieces);
        let blank = " ".repeat(left_width.saturating_sub(used));
        gutter.push(Piece::new(blank, self.theme.text));
        gutter.push(Piece::new(BETWEEN, self.theme.frame));
        gutter.extend(right.gutter);
        Row { gutter, ..right }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::row::joined;
    use crate::transcript::{Change, ShownContext};

    const UNIFIED: &str = "--- a\n+++ a\n@@ -8,4 +8,5 @@\n one\n-let x = 1;\n+let x = 22;\n+new\n two\n@@ -90 +91 @@\n-end\n\\ No newline at end of file\n+END\n";

    fn between(before: &str, after: &str) -> Diff {
        let change = Change::between(before, after).unwrap();
        change.diff(ShownContext::All, str::to_owned).unwrap()
    }

    fn shown(diff: &Diff, width: usize) -> Vec<String> {
        let rows = diff.rows(width, &Theme::of(Colours::Dark));
        rows.iter().map(Row::whole).collect()
    }

    #[test]
    fn lines_stand_below_each_other_with_their_numbers() {
        let diff = Diff::unified(UNIFIED).unwrap();
        assert_eq!(
            shown(&diff, 40),
            [
                " 8   one",
                " 9 - let x = 1;",
                " 9 + let x = 22;",
                "10 + new",
                "11   two",
                "⋯",
                "90 - end",
                "\\ No newline at end of file",
                "91 + END",
            ]
        );
    }

    #[test]
    fn a_change_is_printed_as_it_is_shown_and_a_long_one_is_cut() {
        let shown = change_lines("@@ -3 +3 @@\n-on\u{1b}[2Je\n+two\n", 0, 40, false);
        assert_eq!(
            shown.as_deref(),
            Some("  │ 3 - on\\u{1b}[2Je\n  │ 3 + two\n")
        );
        let long = format!("@@ -0,0 +1,30 @@\n{}", "+x\n".repeat(30));
        let shown = change_lines(&long, 5, 40, true).unwrap();
        assert_eq!(shown.lines().count(), ROWS_SHOWN + 1);
        assert!(
            shown.contains('\u{1b}') && shown.contains("… 15 more rows"),
            "{shown}"
        );
        assert_eq!(change_lines("", 0, 40, false), None);
    }

    #[test]
    fn with_room_the_sides_stand_beside_each_other_and_the_new_one_is_the_text() {
        let diff = Diff::unified(UNIFIED).unwrap();
        let rows = shown(&diff, 113);
        let row = |old: &str, new: &str| format!("{old:55} │ {new}");
        assert_eq!(rows[0], row(" 8   one", " 8   one"));
        assert_eq!(rows[1], row(" 9 - let x = 1;", " 9 + let x = 22;"));
        assert_eq!(rows[2], row("", "10 + new"));
        assert_eq!(rows[3], row("10   two", "11   two"));
        let laid = diff.rows(113, &Theme::of(Colours::Dark));
        assert_eq!(joined(&laid[..4]), "one\nlet x = 22;\nnew\ntwo");
    }

    #[test]
    fn a_long_line_is_broken_on_its_side() {
        let long = "x".repeat(60);
        let diff = between("short\n", &format!("{long}\n"));
        let rows = shown(&diff, 113);
        assert_eq!(rows[0], format!("{:55} │ + {}", "- short", "x".repeat(53)));
        assert_eq!(rows[1], format!("{:55} │   {}", "", "x".repeat(7)));
        for row in rows {
            assert!(columns(&row) <= 113, "{row}");
        }
    }

    #[test]
    fn words_that_differ_are_emphasised_in_lines_that_are_alike() {
        let theme = Theme::of(Colours::None);
        let emphasised = |before: &str, after: &str| {
            let rows = between(before, after).rows(40, &theme);
            let pieces = rows.into_iter().flat_map(|it| it.pieces);
            let bold = pieces.filter(|it| it.style.add_modifier.contains(Modifier::BOLD));
            bold.map(|it| it.text).collect::<Vec<_>>()
        };
        assert_eq!(emphasised("let x = 1;\n", "let y = 1;\n"), ["x", "y"]);
        let (before, after) = ("range(len(it) - 1):\n", "range(len(it)):\n");
        assert_eq!(emphasised(before, after).concat(), " - 1");
        assert_eq!(emphasised("one two\n", "quite something\n"), [""; 0]);
    }

    #[test]
    fn what_is_no_difference_is_none() {
        assert_eq!(Diff::unified("no difference\n- at all\n"), None);
        assert_eq!(Diff::unified("@@ what @@\n"), None);
    }

    #[test]
    fn a_hunk_that_is_left_out_is_shown_as_what_stays() {
        let (old, new) = ("a\nb\nc\nd\n", "A\nb\nC\nd\n");
        let change = Change::between(old, new).unwrap();
        let diff = change.diff(ShownContext::Context, str::to_owned).unwrap();
        let choice = Choice {
            is_kept: &[true, false],
            selected: 1,
        };
        let (rows, heads) = diff.rows_of(60, &Theme::of(Colours::None), Some(choice));
        let shown: Vec<String> = rows.iter().map(Row::whole).collect();
        assert_eq!(
            shown,
            [
                "  hunk 1 of 2",
                "1 - a",
                "1 + A",
                "2   b",
                "▸ hunk 2 of 2 · left out, the lines stay as they are",
                "3   c",
                "3 × C",
                "4   d",
            ]
        );
        assert_eq!(heads, [0, 4]);
    }
}
