//! Markdown to text with entities.

use super::table::Table;
use super::{Entity, FormattedText, units};
use frankenstein::types::MessageEntityType as Kind;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Schemes of links that can be followed in Telegram.
const SCHEMES: [&str; 4] = ["http://", "https://", "mailto:", "tg://"];
/// The bound on the name of a language of code.
const LANGUAGE_CHARS_MAX: usize = 32;

/// Reads Markdown as models write it. Elements without a counterpart become text: tables are set in columns, images are
/// links, and HTML is shown as it is written.
#[must_use]
pub fn formatted(markdown: &str) -> FormattedText {
    let shown: String = markdown.chars().filter(|it| is_shown(*it)).collect();
    let mut writer = Writer::default();
    for event in Parser::new_ext(&shown, options()) {
        writer.event(event);
    }
    writer.finish()
}

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

fn is_shown(it: char) -> bool {
    !it.is_control() || it == '\n' || it == '\t'
}

#[derive(Default)]
struct Writer {
    out: FormattedText,
    /// The length of the text in UTF-16 units.
    length: usize,
    /// Line ends that are written before the next text.
    gap: usize,
    /// The entities that began, and whether they are written at their end.
    open: Vec<OpenEntity>,
    /// The lists around, with the number of the next item.
    lists: Vec<Option<u64>>,
    quotes: usize,
    table: Option<Table>,
}

struct OpenEntity {
    kind: Kind,
    begin: usize,
    detail: Option<String>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push(&text),
            Event::Code(code) => {
                self.begin(Kind::Code, None);
                self.push(&code);
                self.close(Kind::Code);
            }
            Event::Html(html) | Event::InlineHtml(html) => match is_line_break(&html) {
                true => self.push("\n"),
                false => self.push(&html),
            },
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::Rule => {
                self.push("\u{2014}\u{2014}\u{2014}");
                self.gap = 2;
            }
            Event::TaskListMarker(done) => self.push(if done { "\u{2611} " } else { "\u{2610} " }),
            // Not among the options.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } | Tag::Strong => self.begin(Kind::Bold, None),
            Tag::Emphasis => self.begin(Kind::Italic, None),
            Tag::Strikethrough => self.begin(Kind::Strikethrough, None),
            Tag::BlockQuote(_) => {
                self.quotes += 1;
                // Quotes cannot be within each other.
                if self.quotes == 1 {
                    self.begin(Kind::Blockquote, None);
                }
            }
            Tag::CodeBlock(kind) => self.begin(Kind::Pre, language(&kind)),
            Tag::Link { dest_url, .. } => self.begin(Kind::TextLink, Some(dest_url.to_string())),
            Tag::Image { dest_url, .. } => {
                self.begin(Kind::TextLink, Some(dest_url.to_string()));
                self.push("\u{1f5bc} ");
            }
            Tag::List(first) => {
                self.gap = self.gap.max(usize::from(!self.lists.is_empty()));
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::TableHead | Tag::TableRow => self.in_table(Table::begin_row),
            Tag::TableCell => self.in_table(Table::begin_cell),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.gap = 2,
            TagEnd::Heading(_) => {
                self.close(Kind::Bold);
                self.gap = 2;
            }
            TagEnd::Strong => self.close(Kind::Bold),
            TagEnd::Emphasis => self.close(Kind::Italic),
            TagEnd::Strikethrough => self.close(Kind::Strikethrough),
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                if self.quotes == 0 {
                    self.close(Kind::Blockquote);
                }
                self.gap = 2;
            }
            TagEnd::CodeBlock => {
                self.trim_line_end();
                self.close(Kind::Pre);
                self.gap = 2;
            }
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = if self.lists.is_empty() { 2 } else { 1 };
            }
            TagEnd::Item => self.gap = self.gap.max(1),
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.gap = self.gap.max(1);
        let indent = "   ".repeat(self.lists.len().saturating_sub(1));
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{indent}{}. ", number.saturating_sub(1))
            }
            _ => format!("{indent}\u{2022} "),
        };
        self.push(&marker);
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        match table.in_columns() {
            Some(text) => {
                self.begin(Kind::Pre, None);
                self.push(&text);
                self.close(Kind::Pre);
            }
            None => self.push(&table.as_list()),
        }
        self.gap = 2;
    }

    /// Writes text, after the line ends that are due.
    fn push(&mut self, text: &str) {
        if let Some(table) = &mut self.table {
            return table.push(text);
        }
        self.begin_line();
        self.out.text.push_str(text);
        self.length += units(text);
    }

    fn begin_line(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if self.length > 0 {
            self.out.text.extend(std::iter::repeat_n('\n', gap));
            self.length += gap;
        }
    }

    fn begin(&mut self, kind: Kind, detail: Option<String>) {
        if self.table.is_none() {
            self.begin_line();
            self.open.push(OpenEntity {
                kind,
                begin: self.length,
                detail,
            });
        }
    }

    fn close(&mut self, kind: Kind) {
        let Some(at) = self.open.iter().rposition(|it| it.kind == kind) else {
            return;
        };
        let open = self.open.remove(at);
        if open.begin < self.length {
            self.out.entities.push(Entity {
                kind,
                at: open.begin..self.length,
                detail: open.detail,
            });
        }
    }

    /// Ends a link. One that cannot be followed is written out.
    fn close_link(&mut self) {
        let Some(at) = self.open.iter().rposition(|it| it.kind == Kind::TextLink) else {
            return;
        };
        let target = self.open.get(at).and_then(|it| it.detail.clone());
        let target = target.unwrap_or_default();
        let lower = target.to_ascii_lowercase();
        if SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) {
            return self.close(Kind::TextLink);
        }
        self.open.remove(at);
        if !target.is_empty() {
            self.push(&format!(" ({target})"));
        }
    }

    fn trim_line_end(&mut self) {
        if self.out.text.ends_with('\n')
            && self.open.last().is_some_and(|it| it.begin < self.length)
        {
            self.out.text.pop();
            self.length -= 1;
        }
    }

    fn finish(mut self) -> FormattedText {
        self.out
            .entities
            .sort_by_key(|it| (it.at.start, std::cmp::Reverse(it.at.end)));
        self.out
    }
}

fn is_line_break(html: &str) -> bool {
    let html = html.trim().to_ascii_lowercase();
    matches!(html.as_str(), "<br>" | "<br/>" | "<br />")
}

fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else {
        return None;
    };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let word: String = word.chars().take(LANGUAGE_CHARS_MAX).collect();
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests;
