//! Markdown on a terminal, rendered line by line as it arrives.
//!
//! Words of prose and of list items are shown as they arrive, once nothing that follows can change how they
//! look: what stands there is only ever added to. Other lines are shown when they are whole. Tables are shown when they end, since their columns depend on
//! every row; lines inside a code fence are shown as they are.

use super::{marks, rows};
use rondo_runtime::sanitize::plain;
use termimad::minimad::Alignment;
use termimad::{MadSkin, crossterm::style::Color};

/// Bytes of an unfinished line after which it is shown as it is.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Rows of a table after which it is shown in parts.
const TABLE_ROWS_MAX: usize = 500;
/// Columns beyond which prose is hard to read.
const COLUMNS_MAX: usize = 120;
/// Columns below which nothing can be laid out.
const COLUMNS_MIN: usize = 20;
/// Spaces before a list item that the renderer knows; with more it takes the line for code.
const DEPTH_MAX: usize = 3;

/// Renders one text.
pub(super) struct Markdown {
    skin: MadSkin,
    columns: usize,
    line: String,
    /// The beginning of the line that is shown, as it was written.
    begun: usize,
    /// The same as it stands there, without its styles.
    begun_shown: String,
    /// Words wait for their row.
    has_whole_rows: bool,
    table: Vec<String>,
    /// The marks that opened the code fence we are in.
    fence: Option<String>,
}

impl Markdown {
    /// Starts a text for a terminal of so many columns.
    pub(super) fn new(columns: usize) -> Self {
        Self {
            skin: skin(),
            columns: columns.clamp(COLUMNS_MIN, COLUMNS_MAX),
            line: String::new(),
            begun: 0,
            begun_shown: String::new(),
            has_whole_rows: false,
            table: Vec::new(),
            fence: None,
        }
    }

    /// Takes the next piece and returns what can be shown by now: whole lines, and whole words of prose.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut shown = String::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') || self.line.len() > LINE_BYTES_MAX {
                let line = std::mem::take(&mut self.line);
                self.end_line(line.trim_end_matches('\n'), &mut shown);
            }
        }
        if self.fence.is_none() {
            let line = std::mem::take(&mut self.line);
            self.line = self.rows(line, &mut shown);
            self.words(&mut shown);
        }
        shown
    }

    /// Shows the words of the line that are whole.
    fn words(&mut self, shown: &mut String) {
        if self.has_whole_rows || fence_marks(&self.line).is_some() {
            return;
        }
        let rest = self.line.get(self.begun..).unwrap_or_default();
        let mark = rest.find(['*', '`', '~']).map(|at| self.begun + at);
        let before_mark = mark.and_then(|mark| self.line.get(..mark));
        let ends = [Some(self.line.as_str()), before_mark];
        // A mark that is text so far may open something once more is there.
        let whole = ends.into_iter().flatten().find_map(|text| {
            let end = rows::words(text).filter(|end| *end > self.begun)?;
            let line = text.get(..end)?;
            (marks::escape_loose(line) == line).then_some(end)
        });
        let Some(whole) = whole else { return };
        let line = self.line.get(..whole).unwrap_or_default();
        let rendered = self.render(&marks::escape_loose(line));
        let rendered = rendered.trim_end_matches('\n');
        // Otherwise what stands there would have to change: then the rest comes with the whole line.
        let Some(more) = behind(rendered, &self.begun_shown) else {
            return;
        };
        let more = more.to_owned();
        self.end_table(shown);
        shown.push_str(&more);
        self.begun_shown.push_str(&plain(&more));
        self.begun = whole;
    }

    /// Has words wait until their row is full, so that the line below it is free, or come by themselves.
    pub(super) fn set_whole_rows(&mut self, has_whole_rows: bool) {
        self.has_whole_rows = has_whole_rows;
    }

    /// Ends the row that stands unfinished, so that something else can be shown below it; what follows of its
    /// line begins anew.
    pub(super) fn interrupt(&mut self) -> &'static str {
        if self.begun_shown.is_empty() {
            return "";
        }
        let rest = self.line.split_off(self.begun);
        self.line = rest.trim_start_matches(' ').to_owned();
        self.begun = 0;
        self.begun_shown.clear();
        "\n"
    }

    /// Shows a line, or rows of it, but for what of it stands there already.
    fn show(&mut self, line: &str, shown: &mut String) {
        let begun = std::mem::take(&mut self.begun);
        let begun_shown = std::mem::take(&mut self.begun_shown);
        let rendered = self.render(&marks::escape_loose(line));
        match behind(&rendered, &begun_shown) {
            Some(more) => shown.push_str(more),
            None => {
                let rest = line.get(begun..).unwrap_or_default();
                shown.push_str(&format!(
                    " {}",
                    self.render(&marks::escape_loose(rest.trim_start_matches(' ')))
                ));
            }
        }
    }

    /// Shows the rows of a line of prose that are full, and returns the rest of it.
    fn rows(&mut self, mut line: String, shown: &mut String) -> String {
        while let Some(end) = rows::full(&line, self.columns) {
            self.end_table(shown);
            let rest = line.split_off(end);
            self.show(&line, shown);
            line = rest.trim_start_matches(' ').to_owned();
        }
        line
    }

    /// Ends the text and returns the rest of it.
    pub(super) fn finish(&mut self) -> String {
        let mut shown = String::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line, &mut shown);
        }
        self.end_table(&mut shown);
        self.fence = None;
        shown
    }

    fn end_line(&mut self, line: &str, shown: &mut String) {
        if self.in_fence(line) {
            self.end_table(shown);
            shown.push_str(&code_line(line));
        } else if line.trim_start().starts_with('|') {
            self.table.push(marks::escape_loose(line));
            if self.table.len() >= TABLE_ROWS_MAX {
                self.end_table(shown);
            }
        } else {
            self.end_table(shown);
            let rest = self.rows(line.to_owned(), shown);
            self.show(&rest, shown);
        }
    }

    /// Returns whether the line belongs to a code fence, its first and last line included.
    fn in_fence(&mut self, line: &str) -> bool {
        let marks = fence_marks(line);
        match (&self.fence, marks) {
            (None, None) => false,
            (None, Some(marks)) => {
                self.fence = Some(marks.to_owned());
                true
            }
            (Some(open), Some(marks))
                if marks.starts_with(open.as_str()) && line.trim() == marks =>
            {
                self.fence = None;
                true
            }
            (Some(_), _) => true,
        }
    }

    fn end_table(&mut self, shown: &mut String) {
        if !self.table.is_empty() {
            let rows = std::mem::take(&mut self.table).join("\n");
            shown.push_str(&self.render(&rows));
        }
    }

    fn render(&self, source: &str) -> String {
        let (margin, source) = deep_item(source);
        let columns = self.columns.saturating_sub(margin.len()).max(COLUMNS_MIN);
        let rendered = self.skin.text(source, Some(columns)).to_string();
        let mut shown = String::with_capacity(rendered.len() + 1);
        for line in rendered.trim_end_matches('\n').split('\n') {
            shown.push_str(margin);
            shown.push_str(line);
            shown.push('\n');
        }
        shown
    }
}

/// Returns what follows, in rendered text, what stands there already; none where it begins otherwise. Styles
/// are no part of that: the renderer sets them for each word of a text that it wraps.
fn behind<'a>(rendered: &'a str, shown: &str) -> Option<&'a str> {
    let mut rest = rendered;
    for expected in shown.chars() {
        while let Some(styled) = rest.strip_prefix("\x1b[") {
            let end = styled.find(|c: char| c.is_ascii_alphabetic())?;
            rest = styled.get(end + 1..)?;
        }
        rest = rest.strip_prefix(expected)?;
    }
    Some(rest)
}

/// Splits off the indentation by which a list item is deeper than the renderer knows.
fn deep_item(line: &str) -> (&str, &str) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    if indent > DEPTH_MAX && marks::item_marker(line) > 0 {
        line.split_at(indent - DEPTH_MAX)
    } else {
        ("", line)
    }
}

fn fence_marks(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.len() - trimmed.trim_start_matches(mark).len();
    // Otherwise it is code within the line.
    let opens = mark != '`' || !trimmed.get(length..)?.contains('`');
    trimmed
        .get(..length)
        .filter(|marks| marks.len() >= 3 && opens)
}

fn code_line(line: &str) -> String {
    format!("\x1b[36m{line}\x1b[0m\n")
}

fn skin() -> MadSkin {
    let mut skin = MadSkin::default_dark();
    for header in &mut skin.headers {
        header.align = Alignment::Left;
    }
    // Backgrounds chosen for a dark terminal are unreadable on a light one.
    skin.inline_code.object_style.background_color = None;
    skin.inline_code.set_fg(Color::Cyan);
    skin
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n\n```rust\nlet x = \"**not bold**\";\n# no title\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend";

    fn without_styles(text: &str) -> String {
        rondo_runtime::sanitize::plain(text)
    }

    /// Returns what a terminal makes of a text, styles included.
    fn screen(text: &str) -> String {
        let size = |cells| std::num::NonZeroU16::new(cells).unwrap();
        let mut parser = vt100::Parser::new(size(60), size(90), 0);
        parser.process(text.replace('\n', "\r\n").as_bytes());
        parser.screen().contents_formatted()
    }

    fn render(pieces: &[&str]) -> String {
        let mut markdown = Markdown::new(60);
        let mut shown: String = pieces.iter().map(|piece| markdown.push(piece)).collect();
        shown += &markdown.finish();
        shown
    }

    #[test]
    fn marks_become_styles_and_code_stays_as_it_is() {
        let shown = render(&[TEXT]);
        let plain = without_styles(&shown);
        assert!(plain.contains("Some bold and code."), "{plain}");
        assert!(
            plain.contains("let x = \"**not bold**\";\n# no title\n```"),
            "{plain}"
        );
        assert!(plain.contains("• one"), "{plain}");
        assert!(!plain.contains("|---|"), "{plain}");
        assert!(plain.ends_with("end\n"), "{plain}");
        assert!(shown.contains("\x1b["));
    }

    #[test]
    fn no_character_of_a_text_that_is_no_mark_is_lost() {
        for text in [
            "The files match *.rs and *.toml and src/*/mod.rs; 2 * 3 * 4 = 24.",
            "a ` b, ~~ c, ** d, 5*, __init__.py, **a, *.",
            "| *.rs | 2 * 3 |\n|---|---|\n| a*b | c |\n",
        ] {
            let plain = without_styles(&render(&[text]));
            let stars = |text: &str| text.matches(['*', '`', '~']).count();
            assert_eq!(stars(&plain), stars(text), "{plain}");
        }
    }

    #[test]
    fn code_within_a_line_opens_no_fence_and_deep_items_are_items() {
        let plain = without_styles(&render(&["```x``` is **it**\n      - deep **one**\n"]));
        assert_eq!(plain.lines().next(), Some("x is it"));
        assert!(plain.contains("• deep one"), "{plain}");
    }

    #[test]
    fn where_the_text_is_cut_makes_no_difference() {
        let whole = render(&[TEXT]);
        for cut in 0..TEXT.len() {
            let (head, tail) = TEXT.split_at(cut);
            assert_eq!(
                screen(&render(&[head, tail])),
                screen(&whole),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_paragraph_is_shown_row_by_row_wherever_it_is_cut() {
        let text = "Once **upon a time** there were *.rs and `code of **many** words`, 3 - 2 of them, \
                    and 1. they - all # of them - were \u{65e5}\u{672c}\u{8a9e} or **bold over the end of a row, \
                    so that it waits** for the next one.\n\n\
                    - an item that is longer than a row of sixty columns has, and is shown once it is whole\n";
        let whole = render(&[text]);
        for (cut, _) in text.char_indices() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(
                screen(&render(&[head, tail])),
                screen(&whole),
                "cut at {cut}"
            );
        }
        let rows: Vec<_> = whole.lines().map(without_styles).collect();
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{rows:?}");
        let mut markdown = Markdown::new(60);
        let early = markdown
            .push("It was **upon a time** and in `code of **many** words` that they came th");
        assert_eq!(
            without_styles(&early),
            "It was upon a time and in code of **many** words that\nthey came"
        );
    }

    #[test]
    fn words_are_shown_as_they_arrive_and_what_stands_there_stays() {
        for text in [
            "One **two three** four *.rs five `a b` six - 7 eight\n",
            "- an item of **many words**, with *.rs and more than a row of sixty columns in all of it, 12 of them\n",
            "   1. deep **and** long, so that it goes on in a second row behind its number and a third one, too, does it\n",
            "\u{65e5}\u{672c}\u{8a9e} \u{65e5}\u{672c}\u{8a9e} \u{1f980} e\u{301} x\u{200d}y \\*z\n",
            "2 * 3 * 4 and __init__.py and snake_case_name, ~~gone~~ <b> & so on\n",
            "| no table\n> a quote of words\n# a title of words\n    code of words\n",
        ] {
            let whole = render(&[text]);
            let mut markdown = Markdown::new(60);
            let mut shown = String::new();
            for c in text.chars() {
                shown += &markdown.push(&c.to_string());
                let so_far = without_styles(&shown);
                assert!(without_styles(&whole).starts_with(&so_far), "{so_far}");
            }
            shown += &markdown.finish();
            assert_eq!(screen(&shown), screen(&whole));
        }
        let mut markdown = Markdown::new(60);
        let mut shown = |piece: &str| without_styles(&markdown.push(piece));
        assert_eq!(shown("It is"), "It");
        assert_eq!(shown(" **very "), " is");
        assert_eq!(shown("bold** an"), " very bold");
        assert_eq!(shown("\n- one two"), " an\n• one");
        assert_eq!(shown(" three"), " two");
        assert_eq!(markdown.interrupt(), "\n");
        assert_eq!(without_styles(&markdown.push(" x\n")), "three x\n");
        assert_eq!(markdown.interrupt(), "");
    }

    #[test]
    fn a_line_is_shown_as_soon_as_it_is_whole() {
        let mut markdown = Markdown::new(60);
        assert_eq!(markdown.push("first"), "");
        assert_eq!(
            without_styles(&markdown.push(" line\nsecond")),
            "first line\n"
        );
    }
}
