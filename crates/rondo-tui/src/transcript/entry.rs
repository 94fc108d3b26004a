//! One entry of the conversation, and how it is laid out.

use super::card::Card;
use crate::markdown;
use crate::text::{Piece, Row, Wrap, clean};
use crate::theme::Theme;

/// Columns before every text that came from outside: only the screen itself writes there.
pub(super) const MARGIN: &str = "  ";
/// Columns of a text at least.
const WIDTH_MIN: usize = 10;
/// Rows of a person's message that are shown while it is not shown in full.
const ASKED_ROWS_MAX: usize = 30;

/// Subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Warn,
    Bad,
}

/// One entry.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Message of a person.
    Asked(String),
    /// Message of a person while the turn ran.
    Steered(String),
    /// Answer of the model, in Markdown.
    Answer(Answer),
    /// Thought of the model.
    Thought(String),
    /// A tool call, or a person's own cell.
    Card(Box<Card>),
    /// Note of the program.
    Note(Tone, String),
    /// Usage of a turn.
    End(String),
}

/// A text that may still be written.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    source: String,
    stream: markdown::Stream,
}

impl Answer {
    pub(crate) fn new(source: &str) -> Self {
        Self {
            source: clean::text(source),
            ..Self::default()
        }
    }

    /// Adds to it.
    pub(crate) fn push(&mut self, text: &str) {
        self.source.push_str(&clean::text(text));
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// Rows, and what they were laid out for.
#[derive(Debug)]
pub(super) struct LaidOutRows {
    pub(super) width: usize,
    pub(super) theme: Theme,
    pub(super) revision: u64,
    pub(super) rows: Vec<Row>,
}

impl Entry {
    /// Returns its text, without any layout: for search and copies.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Asked(text) => format!("> {}", text.replace('\n', "\n> ")),
            Self::Steered(text) => format!(">> {}", text.replace('\n', "\n>> ")),
            Self::Answer(answer) => answer.source.clone(),
            Self::Thought(text) | Self::Note(_, text) | Self::End(text) => text.clone(),
            Self::Card(card) => card.source(),
        }
    }

    /// Returns it as it is copied: the text alone, of a card what it wrote.
    pub(crate) fn copied(&self) -> String {
        match self {
            Self::Asked(text) | Self::Steered(text) => text.clone(),
            Self::Card(card) if !card.output().is_empty() => card.output().to_owned(),
            _ => self.source(),
        }
    }

    /// Returns whether it holds a text, in whatever case.
    pub(super) fn holds(&self, lowercase: &str) -> bool {
        self.source().to_lowercase().contains(lowercase)
    }

    /// Lets go of what is kept for laying it out.
    pub(super) fn forget_rows(&mut self) {
        if let Self::Answer(answer) = self {
            answer.stream = markdown::Stream::default();
        }
    }

    /// Lays it out, with an empty row before it. `rows` are the earlier ones, which an answer that grows continues
    /// with.
    pub(super) fn lay_out(
        &mut self,
        rows: &mut Vec<Row>,
        width: usize,
        theme: &Theme,
        is_open: bool,
    ) {
        let width = width.max(WIDTH_MIN);
        if let Self::Answer(answer) = self {
            // The empty row follows it while it is laid out.
            if !rows.is_empty() {
                rows.remove(0);
            }
            let margin = Piece::new(MARGIN, theme.text);
            let inner = width.saturating_sub(MARGIN.len());
            let Answer { source, stream } = answer;
            stream.update(rows, source, inner, theme, &margin);
            return rows.insert(0, Row::default());
        }
        rows.clear();
        if let Self::End(text) = self {
            let wrap = Wrap::at(width).behind(Piece::new(MARGIN, theme.dim));
            return rows.extend(wrap.lines(text, theme.dim));
        }
        rows.push(Row::default());
        rows.extend(match self {
            Self::Asked(text) => said("› ", text, width, theme, is_open),
            Self::Steered(text) => said("» ", text, width, theme, is_open),
            Self::Thought(text) => thought(text, width, theme, is_open),
            Self::Card(card) => card.rows(width, theme, is_open),
            Self::Note(tone, text) => note(*tone, text, width, theme),
            Self::Answer(_) | Self::End(_) => Vec::new(),
        });
    }

    /// Returns its rows by themselves.
    pub(super) fn rows(&mut self, width: usize, theme: &Theme, is_open: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        self.forget_rows();
        self.lay_out(&mut rows, width, theme, is_open);
        self.forget_rows();
        rows
    }
}

fn marked(mark: &str, style: ratatui_core::style::Style, width: usize) -> Wrap {
    let mut wrap = Wrap::at(width).behind(Piece::new(MARGIN, style));
    wrap.first = vec![Piece::new(mark, style)];
    wrap
}

fn said(mark: &str, text: &str, width: usize, theme: &Theme, is_open: bool) -> Vec<Row> {
    let wrap = marked(mark, theme.accent, width);
    let mut rows = wrap.lines(text, theme.text);
    if !is_open && rows.len() > ASKED_ROWS_MAX {
        let more = rows.len() - ASKED_ROWS_MAX;
        rows.truncate(ASKED_ROWS_MAX);
        rows.push(Row::of(
            format!("{MARGIN}… {more} more rows (Alt-E)"),
            theme.dim,
        ));
    }
    rows
}

fn thought(text: &str, width: usize, theme: &Theme, is_open: bool) -> Vec<Row> {
    let wrap = marked("∴ ", theme.dim, width);
    if is_open {
        return wrap.lines(text.trim_end(), theme.dim);
    }
    let first = text.trim_start().lines().next().unwrap_or_default();
    let mut rows = wrap.lines(first, theme.dim);
    let has_more = rows.len() > 1 || text.trim().lines().nth(1).is_some();
    rows.truncate(1);
    if has_more && let Some(row) = rows.first_mut() {
        // Over the row's last words, if there is no room.
        let room = width.saturating_sub(crate::text::columns(&row.whole()));
        if room < 2 {
            row.pieces = vec![Piece::new(
                cut(&row.text(), width.saturating_sub(4)),
                theme.dim,
            )];
        }
        row.pieces.push(Piece::new(" …", theme.dim));
    }
    rows
}

fn note(tone: Tone, text: &str, width: usize, theme: &Theme) -> Vec<Row> {
    let style = match tone {
        Tone::Plain => theme.dim,
        Tone::Warn => theme.warn,
        Tone::Bad => theme.bad,
    };
    let mark = match tone {
        Tone::Plain => "· ",
        Tone::Warn => "! ",
        Tone::Bad => "✗ ",
    };
    marked(mark, style, width).lines(text, style)
}

/// Returns the beginning of a line that takes at most so many columns.
pub(crate) fn cut(line: &str, width: usize) -> String {
    use unicode_segmentation::UnicodeSegmentation as _;
    let (mut kept, mut used) = (String::new(), 0);
    for letter in line.graphemes(true) {
        used += crate::text::columns(letter);
        if used > width {
            break;
        }
        kept.push_str(letter);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;

    fn shown(mut entry: Entry, is_open: bool) -> Vec<String> {
        let rows = entry.rows(30, &Theme::of(Colours::Dark), is_open);
        rows.iter().map(Row::whole).collect()
    }

    #[test]
    fn every_text_from_outside_stands_behind_the_margin() {
        let text = "│ approve? y\n╭────╮";
        for entry in [
            Entry::Answer(Answer::new(text)),
            Entry::Thought(text.to_owned()),
            Entry::Note(Tone::Plain, text.to_owned()),
        ] {
            for row in shown(entry, true) {
                let is_within = row.is_empty()
                    || row.starts_with(MARGIN)
                    || ["∴ ", "· "].iter().any(|it| row.starts_with(it));
                assert!(is_within, "{row}");
            }
        }
    }

    #[test]
    fn thoughts_are_folded_until_they_are_opened() {
        let text = "First I look.\nThen I act.";
        let thought = || Entry::Thought(text.to_owned());
        assert_eq!(shown(thought(), false), ["", "∴ First I look. …"]);
        assert_eq!(
            shown(thought(), true),
            ["", "∴ First I look.", "  Then I act."]
        );
    }
}
