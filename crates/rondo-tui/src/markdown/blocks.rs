//! Lays out Markdown, block by block.

use super::code;
use super::table::Table;
use crate::text::{Piece, Row, Wrap, columns};
use crate::theme::Theme;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};
use std::ops::Range;

/// How deep lists and quotes are indented; what lies deeper is where the last one does.
const DEPTH_MAX: usize = 8;
/// Columns that a text keeps however deep it is.
const TEXT_COLUMNS_MIN: usize = 10;

/// Lays out a text.
pub(super) fn rows(source: &str, width: usize, theme: &Theme) -> Vec<Row> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut layout = Layout::new(width, theme);
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis)
                if names_files(source, &range) =>
            {
                let style = layout.style();
                layout.push("*", style);
            }
            event => layout.event(event),
        }
    }
    layout.end_line();
    layout.rows
}

/// Returns whether stars are those of patterns, as in `*.rs and src/*/mod.rs`, which CommonMark takes for emphasis.
fn names_files(source: &str, range: &Range<usize>) -> bool {
    let text = source.get(range.clone()).unwrap_or_default();
    let (before, after) = (source.get(..range.start), source.get(range.end..));
    let Some(inner) = text.strip_prefix('*').and_then(|it| it.strip_suffix('*')) else {
        return false;
    };
    before.is_some_and(|it| it.ends_with('/'))
        || inner.starts_with(['.', '/'])
        || inner.ends_with('/')
        || after.is_some_and(|it| it.starts_with('/'))
}

struct Layout<'a> {
    theme: &'a Theme,
    width: usize,
    rows: Vec<Row>,
    /// The line that is collected.
    line: Vec<Piece>,
    /// Prefixes of each row, from the outermost.
    indents: Vec<Indent>,
    /// Styles of emphasis, from the outermost.
    styles: Vec<Style>,
    /// The numbers of lists; none for bullets.
    lists: Vec<Option<u64>>,
    code: Option<(String, String)>,
    table: Option<Table>,
    link: Option<String>,
    /// Set if an empty row is due before the next block.
    is_apart: bool,
}

/// Prefix of rows: the first one, and those after it.
struct Indent {
    first: Option<Piece>,
    rest: Piece,
}

impl<'a> Layout<'a> {
    fn new(width: usize, theme: &'a Theme) -> Self {
        Self {
            theme,
            width,
            rows: Vec::new(),
            line: Vec::new(),
            indents: Vec::new(),
            styles: Vec::new(),
            lists: Vec::new(),
            code: None,
            table: None,
            link: None,
            is_apart: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.push(&code, self.theme.code),
            Event::Html(html) => {
                for line in html.lines() {
                    self.push(line, self.style());
                    self.end_line();
                }
            }
            Event::InlineHtml(html) => self.push(&html, self.style()),
            // Models end a line where they mean it, as in verses and addresses.
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.begin_block();
                let width = self.width.saturating_sub(self.indent_columns()).max(1);
                self.push(&"─".repeat(width), self.theme.dim);
                self.end_line();
                self.is_apart = true;
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.push(mark, self.theme.dim);
            }
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.theme.text)
    }

    fn push(&mut self, text: &str, style: Style) {
        if let Some(table) = &mut self.table {
            return table.push(text, style);
        }
        self.line.push(Piece::new(text, style));
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            return code.push_str(text);
        }
        let style = self.style();
        self.push(text, style);
    }

    fn emphasise(&mut self, modifier: Modifier) {
        let style = self.style().add_modifier(modifier);
        self.styles.push(style);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let style = match level {
                    HeadingLevel::H1 => self.theme.accent.add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2 => self.theme.accent,
                    _ => self.theme.text.add_modifier(Modifier::BOLD),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.indent(None, "▎ ");
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match &kind {
                    CodeBlockKind::Fenced(words) => words.split([' ', ',']).next().unwrap_or(""),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((language.to_owned(), String::new()));
            }
            Tag::List(number) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_line();
                }
                self.lists.push(number);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => self.begin_table(alignments),
            Tag::Emphasis => self.emphasise(Modifier::ITALIC),
            Tag::Strong => self.emphasise(Modifier::BOLD),
            Tag::Strikethrough => self.emphasise(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.into_string());
                self.styles.push(self.theme.link);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_line();
                self.is_apart = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
                self.is_apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.indents.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_apart = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.indents.pop();
                self.is_apart = false;
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    table.end_cell();
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// A target that the words do not show is shown behind them: where a link leads is not a secret.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some(target) = self.link.take() else {
            return;
        };
        let last = self.line.last().map_or("", |it| it.text.as_str());
        if !target.is_empty() && last != target && self.table.is_none() {
            let style = self.theme.dim;
            self.push(&format!(" ({target})"), style);
        }
    }

    fn item(&mut self) {
        self.end_line();
        self.is_apart = false;
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        let blank = " ".repeat(columns(&mark));
        self.indent(Some(mark), &blank);
    }

    fn indent(&mut self, first: Option<String>, rest: &str) {
        let style = self.theme.dim;
        let rest = match self.indents.len() < DEPTH_MAX {
            true => rest,
            false => "",
        };
        self.indents.push(Indent {
            first: first.map(|it| Piece::new(it, style)),
            rest: Piece::new(rest, style),
        });
    }

    fn indent_columns(&self) -> usize {
        self.indents.iter().map(|it| columns(&it.rest.text)).sum()
    }

    fn begin_block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.is_apart) && !self.rows.is_empty() {
            let gutter = self.gutter(false);
            self.rows.push(Row {
                gutter,
                ..Row::default()
            });
        }
    }

    /// Returns the text before the next row; marks of items appear once.
    fn gutter(&mut self, takes_marks: bool) -> Vec<Piece> {
        let mut gutter = Vec::new();
        for indent in &mut self.indents {
            let mark = if takes_marks {
                indent.first.take()
            } else {
                None
            };
            gutter.push(mark.unwrap_or_else(|| indent.rest.clone()));
        }
        gutter
    }

    fn wrap(&mut self) -> Wrap {
        let first = self.gutter(true);
        let rest = self.gutter(false);
        let taken: usize = rest.iter().map(|it| columns(&it.text)).sum();
        Wrap {
            width: self.width.max(taken + TEXT_COLUMNS_MIN),
            first,
            rest,
            keeps_blanks: false,
            keeps_words: false,
        }
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let rows = self.wrap().rows(&line);
        self.rows.extend(rows);
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let mut wrap = self.wrap();
        wrap.keeps_blanks = true;
        let bar = Piece::new("  ", self.theme.dim);
        let mut wrap = wrap.behind(bar);
        for line in code::lines(&code, &language, self.theme) {
            self.rows.extend(wrap.rows(&line));
            wrap.first.clone_from(&wrap.rest);
        }
        self.is_apart = true;
    }

    fn begin_table(&mut self, alignments: Vec<Alignment>) {
        self.begin_block();
        self.table = Some(Table::new(alignments));
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let gutter = self.gutter(true);
        let width = self.width.saturating_sub(self.indent_columns());
        for mut row in table.rows(width, self.theme) {
            row.gutter.splice(0..0, gutter.iter().cloned());
            self.rows.push(row);
        }
        self.is_apart = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;

    fn shown(source: &str, width: usize) -> Vec<String> {
        let rows = rows(source, width, &Theme::of(Colours::Dark));
        rows.iter()
            .map(|it| it.whole().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn paragraphs_headings_and_rules() {
        assert_eq!(
            shown("# Title\nWords that are\nlong *here*.\n\n---\nend", 12),
            [
                "Title",
                "",
                "Words that",
                "are",
                "long here.",
                "",
                "────────────",
                "",
                "end"
            ]
        );
    }

    #[test]
    fn lines_end_where_they_were_ended() {
        let verse = "The sea is *deep*,\nthe sky is wide.\n- one\n  two";
        let lines = ["The sea is deep,", "the sky is wide.", "", "• one", "  two"];
        assert_eq!(shown(verse, 40), lines);
    }

    #[test]
    fn lists_nest_and_keep_their_numbers() {
        assert_eq!(
            shown("3. one two three\n4. b\n   - x\n   - y\n\nafter", 11),
            [
                "3. one two",
                "   three",
                "4. b",
                "   • x",
                "   • y",
                "",
                "after"
            ]
        );
        assert_eq!(shown("- [x] a\n- [ ] b", 20), ["• [x] a", "• [ ] b"]);
    }

    #[test]
    fn code_quotes_and_links() {
        assert_eq!(
            shown("> a quote\n\n```sh\nls  -l\n\nend\n```\n", 20),
            ["▎ a quote", "", "  ls  -l", "", "  end"]
        );
        assert_eq!(
            shown("[here](http://x.y) and <http://x.y>", 60),
            ["here (http://x.y) and http://x.y"]
        );
    }

    #[test]
    fn no_width_and_no_depth_is_too_much() {
        let deep = (0..40).map(|at| format!("{}- x", "  ".repeat(at)));
        let deep = deep.collect::<Vec<_>>().join("\n");
        for width in 0..30 {
            shown(&deep, width);
            shown(
                "| a | b |\n|---|---|\n| long words | 日本語 |\n\n> > > q",
                width,
            );
        }
    }
}
