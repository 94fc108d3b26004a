//! Markdown as lines of a terminal, written while the text arrives. Lines are only ever added.
//!
//! Words of prose and of list items are written as they arrive, once nothing that follows can change how they look.
//! Other lines are written when they are whole, and tables when they end.

use super::{blocks, stream};
use crate::options::Colours;
use crate::text::printed;
use crate::theme::Theme;
use rondo_runtime::sanitize::plain;

/// Columns beyond which prose is hard to read.
const COLUMNS_MAX: usize = 120;
/// Columns below which nothing can be laid out.
const COLUMNS_MIN: usize = 20;
/// Characters that may open a mark within a line.
const MARKS: [char; 6] = ['*', '_', '`', '~', '[', '<'];

/// Writes one text.
pub struct MarkdownWriter {
    theme: Theme,
    columns: usize,
    /// The source of the block that is not finished.
    rest: String,
    /// How many bytes of it are on the terminal.
    begun: usize,
    /// Displayed text without styles.
    shown: String,
    has_whole_rows: bool,
    /// Set if an empty row is due before the next block.
    is_apart: bool,
}

impl MarkdownWriter {
    /// Begins a text for a terminal of so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self {
            theme: Theme::of(Colours::Sixteen),
            columns: columns.clamp(COLUMNS_MIN, COLUMNS_MAX),
            rest: String::new(),
            begun: 0,
            shown: String::new(),
            has_whole_rows: false,
            is_apart: false,
        }
    }

    /// Takes the next piece and returns what can be written by now: finished blocks, whole lines, and whole words of prose.
    pub fn push(&mut self, piece: &str) -> String {
        self.rest.push_str(piece);
        let mut out = String::new();
        let end = stream::finished(&self.rest);
        if end > 0 {
            let after = self.rest.split_off(end);
            let whole = std::mem::replace(&mut self.rest, after);
            self.end_block(&whole, &mut out);
            // Code that is too long is written in parts.
            if let Some(fence) = stream::open_fence(&whole) {
                self.rest.insert_str(0, &format!("{fence}\n"));
                self.is_apart = false;
            }
        }
        let settled = settled(&self.rest);
        if settled > self.begun
            && let Some(source) = self.rest.get(..settled)
        {
            let text = self.laid_out(source);
            // A row that may still grow waits, if words do.
            let text = match (self.has_whole_rows, text.rfind('\n')) {
                (false, _) => text.as_str(),
                (true, Some(end)) => text.get(..=end).unwrap_or_default(),
                (true, None) => "",
            };
            if self.add(text, &mut out) {
                self.begun = settled;
            }
        }
        out
    }

    /// Holds words back until their row is full, so that the line below it is free; or lets them come by themselves.
    pub fn set_whole_rows(&mut self, has_whole_rows: bool) {
        self.has_whole_rows = has_whole_rows;
    }

    /// Ends the row that is unfinished, so that something else can be written below it. The rest of its block begins
    /// again.
    pub fn interrupt(&mut self) -> &'static str {
        if self.shown.is_empty() || self.shown.ends_with('\n') {
            return "";
        }
        let rest = self.rest.get(self.begun..).unwrap_or_default();
        self.rest = rest.trim_start_matches(' ').to_owned();
        (self.begun, self.is_apart) = (0, false);
        self.shown.clear();
        "\n"
    }

    /// Ends the text and returns the rest of it.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        let whole = std::mem::take(&mut self.rest);
        self.end_block(&whole, &mut out);
        self.is_apart = false;
        out
    }

    fn laid_out(&self, source: &str) -> String {
        let rows = blocks::rows(source, self.columns, &self.theme);
        let lines: Vec<String> = rows.iter().map(printed::line).collect();
        lines.join("\n")
    }

    fn end_block(&mut self, source: &str, out: &mut String) {
        let text = self.laid_out(source);
        let bare = plain(&text);
        // Words of the block behind it may be there too.
        let behind = self.shown.strip_prefix(&bare);
        if let Some(after) = behind.filter(|it| !it.is_empty() && !bare.is_empty()) {
            let next = after.trim_start_matches('\n').to_owned();
            self.is_apart = next.is_empty() && after.len() < 2;
            self.begun = self.begun.saturating_sub(source.len());
            self.shown = next;
            return;
        }
        if !self.add(&text, out) {
            // It turned out to be something else: it is written once more, below.
            out.push('\n');
            out.push_str(&text);
        }
        if !bare.is_empty() {
            out.push('\n');
            self.is_apart = true;
        }
        self.begun = 0;
        self.shown.clear();
    }

    /// Adds the rest of a block's text; returns `false` if what is there is not its beginning.
    fn add(&mut self, text: &str, out: &mut String) -> bool {
        let Some(more) = behind(text, &self.shown) else {
            return false;
        };
        if !more.is_empty() && self.shown.is_empty() && std::mem::take(&mut self.is_apart) {
            out.push('\n');
        }
        out.push_str(more);
        self.shown.push_str(&plain(more));
        true
    }
}

/// Returns the rest of the styled text behind the part that is there already; `None` if it begins otherwise.
fn behind<'a>(styled: &'a str, shown: &str) -> Option<&'a str> {
    let mut rest = styled;
    for expected in shown.chars() {
        while let Some(style) = rest.strip_prefix("\x1b[") {
            let end = style.find(|c: char| c.is_ascii_alphabetic())?;
            rest = style.get(end + 1..)?;
        }
        rest = rest.strip_prefix(expected)?;
    }
    Some(rest)
}

/// Returns how many bytes of a block look the same whatever follows.
fn settled(block: &str) -> usize {
    let whole = block.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = block.split_at(whole);
    if stream::open_fence(block).is_some() {
        return whole;
    }
    // The rows of a table depend on one another, and any line may turn out to be its head.
    let paragraph = before.rfind("\n\n").map_or(0, |at| at + 2);
    let text = block.get(paragraph..).unwrap_or_default();
    let end = match text.find('|') {
        Some(at) => text
            .get(..at)
            .and_then(|it| it.rfind('\n'))
            .map_or(0, |at| at + 1),
        None => match is_prose(line) {
            true => text.len(),
            false => whole - paragraph,
        },
    };
    let end = last_word(text.get(..end).unwrap_or_default());
    let words = text.get(..end).unwrap_or_default();
    let line = words.rfind('\n').map_or(0, |at| at + 1);
    let is_marker = words
        .get(line..)
        .is_some_and(|it| after_marker(it) == Some(""));
    // The mark of an item alone would be text, or make a heading of the line before it.
    let end = if is_marker {
        line.saturating_sub(1)
    } else {
        end
    };
    paragraph + end
}

/// Returns the text behind the mark of a list item; `None` if a line has none.
fn after_marker(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let after = match text.strip_prefix(['-', '*', '+']) {
        Some(item) => Some(item),
        None => {
            let item = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_numbered = item.len() < text.len();
            item.strip_prefix(['.', ')']).filter(|_| is_numbered)
        }
    };
    after.filter(|it| it.is_empty() || it.starts_with(' '))
}

/// Returns whether the words of a line that is not whole are those of a paragraph or of a list item: nothing before them
/// decides what they are.
fn is_prose(line: &str) -> bool {
    let text = line.trim_start();
    if line.starts_with("    ") || line.starts_with('\t') {
        return false;
    }
    match after_marker(line) {
        Some(item) => item
            .strip_prefix(' ')
            .is_some_and(|text| text.starts_with(|c: char| c.is_alphabetic() || "_`~".contains(c))),
        None => text.starts_with(|c: char| c.is_alphabetic() || MARKS.contains(&c)),
    }
}

/// Returns the end of the last word that is followed by a blank or a line end, with no open mark.
fn last_word(text: &str) -> usize {
    let (mut end, mut open) = (0, Vec::new());
    let (mut before, mut chars) = (' ', text.char_indices().peekable());
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |it| it.1);
        match c {
            '\\' => drop(chars.next()),
            // Within code nothing else is a mark.
            '`' if before != '`' => match open.last() {
                Some('`') => drop(open.pop()),
                _ => open.push('`'),
            },
            _ if open.last() == Some(&'`') && c != '\n' => {}
            '*' | '_' | '~' if before != c => match open.last() {
                Some(last) if *last == c && !before.is_whitespace() => drop(open.pop()),
                _ if next.is_whitespace() || (c == '_' && before.is_alphanumeric()) => {}
                _ => open.push(c),
            },
            '[' | '<' => open.push(c),
            '>' if open.last() == Some(&'<') => drop(open.pop()),
            ')' if open.last() == Some(&'[') => drop(open.pop()),
            // Brackets without a target are text.
            ']' if open.last() == Some(&'[') && !matches!(next, '(' | '[') => drop(open.pop()),
            ' ' | '\n' => {
                // No mark goes beyond an item of a list.
                if c == '\n' && begins_item(text.get(at + 1..).unwrap_or_default()) {
                    open.clear();
                }
                if open.is_empty() && !before.is_whitespace() {
                    end = at;
                }
            }
            _ => {}
        }
        before = c;
    }
    end
}

fn begins_item(line: &str) -> bool {
    line.trim_start()
        .starts_with(|c: char| matches!(c, '-' | '*' | '+') || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n\n```rust\nlet x = \"**not bold**\";\n# no title\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend";

    fn written(pieces: &[&str]) -> String {
        let mut text = MarkdownWriter::new(60);
        let mut shown: String = pieces.iter().map(|piece| text.push(piece)).collect();
        shown += &text.finish();
        shown
    }

    #[test]
    fn marks_become_styles_and_code_stays_as_it_is() {
        let shown = written(&[TEXT]);
        let expected = "Title\n\nSome bold and code.\n\n• one\n• two\n\n  let x = \"**not bold**\";\n  # no title\n\na   │ b\n────┼────\n1   │ 2\n\nend\n";
        assert_eq!(plain(&shown), expected);
        assert!(shown.contains("\x1b[1mbold\x1b[0m"), "{shown:?}");
    }

    #[test]
    fn no_character_of_a_text_that_is_no_mark_is_lost() {
        for text in [
            "The files match *.rs and *.toml and src/*/mod.rs; 2 * 3 * 4 = 24.",
            "*.rs, src/*/a and */b",
            "a ` b, ~~ c, ** d, 5*, __init__.py, **a, *.",
            "| *.rs | 2 * 3 |\n|---|---|\n| a*b | c |\n",
        ] {
            let shown = plain(&written(&[text]));
            let stars = |text: &str| text.matches(['*', '`', '~']).count();
            assert_eq!(stars(&shown), stars(text), "{shown}");
        }
    }

    #[test]
    fn the_pieces_in_which_a_text_arrives_make_no_difference() {
        let long = "Once **upon a time** there were *.rs and `code of **many** words`, 3 - 2 of them, and 1. they - all # of them - were \u{65e5}\u{672c}\u{8a9e} or **bold over the end of a row, so that it waits** for the next one.\n\n- an item that is longer than a row of sixty columns has, and is shown once it is whole\n   - a deeper one\n\n```x``` is **it**\n1. deep **and** long, so that it goes on in a second row behind its number\n\n> a quote\n\n    code of words\n";
        for text in [TEXT, long] {
            let whole = plain(&written(&[text]));
            assert!(
                whole.lines().all(|row| row.chars().count() <= 60),
                "{whole}"
            );
            for (cut, _) in text.char_indices() {
                let (head, tail) = text.split_at(cut);
                assert_eq!(plain(&written(&[head, tail])), whole, "cut at {cut}");
            }
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(plain(&written(&letters)), whole);
        }
    }

    #[test]
    fn words_are_written_as_they_arrive_and_a_row_can_be_ended() {
        let mut text = MarkdownWriter::new(60);
        let mut shown = |piece: &str| plain(&text.push(piece));
        assert_eq!(shown("It is"), "It");
        assert_eq!(shown(" **very "), " is");
        assert_eq!(shown("bold** an"), " very bold");
        assert_eq!(shown("\n- one two"), " an\n\n• one");
        assert_eq!(shown(" three"), " two");
        assert_eq!(text.interrupt(), "\n");
        assert_eq!(plain(&text.push(" x\n")), "three x");
        assert_eq!(plain(&text.finish()), "\n");
        assert_eq!(text.interrupt(), "");
    }

    #[test]
    fn words_can_wait_for_their_row() {
        let mut text = MarkdownWriter::new(20);
        text.set_whole_rows(true);
        assert_eq!(text.push("One two three four "), "");
        assert_eq!(plain(&text.push("five six ")), "One two three four\n");
        assert_eq!(text.interrupt(), "");
        assert_eq!(plain(&text.finish()), "five six\n");
    }

    #[test]
    fn long_code_stays_code() {
        let line = "let **x** = 1;\n";
        let code = format!("```rust\n{}```\n", line.repeat(3000));
        let shown = plain(&written(&[&code]));
        assert_eq!(shown, format!("  {line}").repeat(3000));
    }
}
