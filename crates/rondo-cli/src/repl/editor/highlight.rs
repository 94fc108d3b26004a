//! Highlights the line being edited.

use super::shared::Shared;
use crate::repl::mode::{Line, Mode};
use reedline::{Color, Highlighter, StyledText};
use rondo_tui::prompt::slash;

/// A longer line is painted as it is: colours would not help.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Words that Python keeps for itself.
const PYTHON_WORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Colors a line by the mode it will go to (agent, shell, Python or slash command), and caches the result.
pub(super) struct Paint {
    shared: Shared,
    color: bool,
}

impl Paint {
    pub(super) fn new(shared: Shared, color: bool) -> Self {
        Self { shared, color }
    }
}

impl Highlighter for Paint {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.shared.painted(line);
        let mut text = StyledText::new();
        if !self.color || line.len() > LINE_BYTES_MAX {
            text.push((Color::Default.normal(), line.to_owned()));
            return text;
        }
        let mode = self.shared.mode();
        match mode.parse_line(line, slash::is_name) {
            Line::Python(_) => python(line, &mut text),
            Line::Run { .. } => first_word(line, Color::Green, &mut text),
            Line::Slash { .. } => first_word(line, Color::Magenta, &mut text),
            Line::Ask(_) if mode != Mode::Agent => first_word(line, Color::Cyan, &mut text),
            Line::Ask(_) | Line::Empty => attachments(line, &mut text),
        }
        text
    }
}

fn first_word(line: &str, color: Color, text: &mut StyledText) {
    let begin = line.len() - line.trim_start().len();
    let rest = line.get(begin..).unwrap_or_default();
    let end = begin + rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (word, rest) = line.split_at(end);
    text.push((color.normal(), word.to_owned()));
    text.push((Color::Default.normal(), rest.to_owned()));
}

fn attachments(line: &str, text: &mut StyledText) {
    for word in line.split_inclusive(char::is_whitespace) {
        let color = match word.starts_with('@') {
            true => Color::Blue,
            false => Color::Default,
        };
        text.push((color.normal(), word.to_owned()));
    }
}

fn python(line: &str, text: &mut StyledText) {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = match is_inner(first) {
            true => rest.find(|c| !is_inner(c)).unwrap_or(rest.len()),
            false => rest.find(is_inner).unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(end);
        let color = match PYTHON_WORDS.contains(&piece) {
            true => Color::Yellow,
            false => Color::Default,
        };
        text.push((color.normal(), piece.to_owned()));
        rest = after;
    }
}
