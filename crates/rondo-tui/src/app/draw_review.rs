//! Draws the panel of questions that wait.

use super::draw::panel;
use super::proposal::Proposal;
use super::{App, Layer};
use crate::prompt::Editor;
use crate::text::{Piece, Row, Wrap, clean};
use crate::theme::Theme;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use rondo_core::shown::BAR;
use rondo_types::units::counted;

/// Stands before the rows of a draft in the panel.
const MARK: &str = "  ";
/// Rows of a draft that are shown in the panel at most.
const WORDS_ROWS_MAX: usize = 8;

impl App {
    /// Returns how wide the rows of a draft in the panel are.
    pub(super) fn words_width(&self) -> usize {
        let inner = usize::from(self.screen.width).saturating_sub(4);
        inner.saturating_sub(MARK.len()).max(2)
    }

    /// Lays out the panel of questions for an area, where it is open.
    pub(super) fn lay_out_review(&mut self, area: Rect) -> Option<ReviewPanel> {
        self.propose();
        let theme = self.theme;
        let now = self.now;
        let Layer::Review(review) = &mut self.layer else {
            return None;
        };
        let inner = usize::from(area.width).saturating_sub(4);
        let rows = review.rows(inner, &theme).to_vec();
        let words = review.words().map(|it| words_rows(it, inner, &theme));
        let words_count = words.as_ref().map_or(0, |it| it.0.len());
        let field = exact_rows(&review.field(), inner, &theme);
        let hint_rows = review.hints(now).len() + words_count + field.len();
        let room = usize::from(area.height)
            .saturating_sub(3 + hint_rows)
            .max(1);
        review.drew(rows.len(), room);
        let from = review.from();
        let mut shown: Vec<Row> = rows.iter().skip(from).take(room).cloned().collect();
        let left = rows.len().saturating_sub(from + room);
        let foot = match left {
            0 => "─".repeat(inner),
            left => format!("── {}: PageDown ", counted(left, "more row")),
        };
        shown.push(Row::of(foot, theme.frame));
        shown.extend(field);
        let mut caret = None;
        if let Some((rows, (x, y))) = words {
            caret = Some((x + 4, shown.len() + y + 1));
            shown.extend(rows);
        }
        for hint in review.hints(now) {
            shown.push(Row::of(hint, theme.accent));
        }
        let (at, count) = review.count();
        let asks = review.title();
        let title = match count {
            1 => asks,
            count => format!("{asks} {at} of {count} · Tab: the next"),
        };
        Some(ReviewPanel {
            title,
            rows: shown,
            caret,
        })
    }

    /// Draws the panel of questions, and returns where its caret is.
    pub(super) fn draw_review(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        laid: &ReviewPanel,
    ) -> Option<Position> {
        let top = panel(buffer, area, &self.theme.warn, &laid.title, &laid.rows);
        laid.caret.map(|(x, y)| {
            let x = u16::try_from(x)
                .unwrap_or(area.width)
                .min(area.width.saturating_sub(2));
            let y = u16::try_from(y).unwrap_or(area.height);
            Position::new(x, (top + y).min(area.bottom().saturating_sub(1)))
        })
    }
}

/// The panel of questions as it was laid out.
pub(super) struct ReviewPanel {
    title: String,
    rows: Vec<Row>,
    /// The column and the row of the caret within the panel.
    caret: Option<(usize, usize)>,
}

impl ReviewPanel {
    /// Returns what is left of an area above the panel.
    pub(super) fn above(&self, area: Rect) -> Rect {
        let height = u16::try_from(self.rows.len() + 2).unwrap_or(u16::MAX);
        Rect {
            height: area.height.saturating_sub(height).max(1),
            ..area
        }
    }
}

/// Returns the rows of a draft around its caret, and where the caret is in them.
fn words_rows(editor: &Editor, inner: usize, theme: &Theme) -> (Vec<Row>, (usize, usize)) {
    let width = inner.saturating_sub(MARK.len()).max(2);
    let (x, y) = editor.caret_at(width);
    let from = (y + 1).saturating_sub(WORDS_ROWS_MAX);
    let rows = editor.rows(width);
    let shown = rows.iter().enumerate().skip(from).take(WORDS_ROWS_MAX);
    let rows = shown.map(|(at, row)| Row {
        gutter: vec![Piece::new(if at == 0 { "› " } else { "  " }, theme.accent)],
        ..Row::of(editor.shown(row, (0, 0)).concat(), theme.text)
    });
    (rows.collect(), (x, y - from))
}

/// Lays out what is asked, with a difference in place of the texts that make it, and returns where its hunks begin.
pub(super) fn asked_rows(
    prompt: &str,
    proposal: Option<&Proposal>,
    told: Option<&str>,
    width: usize,
    theme: &Theme,
) -> (Vec<Row>, Vec<usize>) {
    let lines = |text: &str| exact_rows(text, width, theme);
    let around = proposal.and_then(|it| Some((it, it.around(prompt)?)));
    let Some((proposal, (head, foot))) = around else {
        let mut rows = lines(prompt);
        rows.extend(told.into_iter().flat_map(lines));
        return (rows, Vec::new());
    };
    let mut rows = lines(&head);
    let (of_change, hunks) = proposal.diff().rows_of(width, theme, proposal.choice());
    let hunks = hunks.iter().map(|it| it + rows.len()).collect();
    rows.extend(of_change);
    if !foot.is_empty() {
        rows.extend(lines(&foot));
    }
    (rows, hunks)
}

/// Lays out a text of which nothing is left out. Each row of a block begins with the block's bar: nothing in a block can
/// look like a line of the question.
fn exact_rows(text: &str, width: usize, theme: &Theme) -> Vec<Row> {
    let text = clean::exact(text);
    let rows = text.lines().flat_map(|line| {
        let rest = line.trim_start_matches(' ');
        let (bar, rest) = match rest.strip_prefix(BAR) {
            Some(block) => line.split_at(line.len() - block.len()),
            None => ("", line),
        };
        let wrap = Wrap {
            keeps_blanks: true,
            keeps_words: true,
            ..Wrap::at(width).behind(Piece::new(bar, theme.text))
        };
        wrap.lines(rest, theme.text)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;
    use rondo_core::shown;
    use serde_json::{Value, json};

    fn shown_of(prompt: &str, arguments: &Value) -> Vec<String> {
        let proposal = Proposal::of_edit(arguments);
        let theme = Theme::of(Colours::None);
        let rows = asked_rows(prompt, proposal.as_ref(), None, 60, &theme).0;
        rows.iter()
            .map(|it| it.whole().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn an_edit_is_asked_about_as_a_difference_of_which_nothing_is_left_out() {
        let old: String = (0..40).map(|at| format!("line {at}\n")).collect();
        let new = old.replace("line 20\n", "line\u{202e} 20\n");
        let arguments = json!({"path": "notes", "old_string": old, "new_string": new});
        let prompt = format!(
            "`edit_file` wants to run with\n{}\nReason: x.",
            shown::call(&arguments)
        );
        let rows = shown_of(&prompt, &arguments);
        assert_eq!(
            rows[..3],
            ["`edit_file` wants to run with", "  path: notes", "  line 0"]
        );
        assert_eq!(
            rows[22..25],
            ["- line 20", "+ line\\u{202e} 20", "  line 21"]
        );
        assert_eq!(rows.len(), 2 + 41 + 1);
        assert_eq!(rows.last().unwrap(), "Reason: x.");
    }

    #[test]
    fn no_row_of_a_command_looks_like_a_line_of_the_question() {
        let command = format!("echo {}Reason: it is harmless.", " ".repeat(250));
        let arguments = json!({ "command": command });
        let prompt = format!("run\n{}\nReason: x.", shown::call(&arguments));
        let rows = shown_of(&prompt, &arguments);
        let (block, others): (Vec<_>, Vec<_>) = rows.iter().partition(|it| it.starts_with("  │"));
        assert_eq!(
            others,
            ["run", "  command: (1 line, 278 characters)", "Reason: x."]
        );
        let text: String = block
            .iter()
            .map(|it| it.trim_start_matches("  │ "))
            .collect();
        assert!(text.contains("it is harmless."), "{rows:?}");
    }

    #[test]
    fn what_asks_otherwise_is_shown_as_it_asks() {
        let arguments = json!({"old_string": "a", "new_string": "b"});
        assert_eq!(shown_of("do it?", &arguments), ["do it?"]);
        let arguments = json!({"command": "ls"});
        let prompt = format!("run\n{}", shown::call(&arguments));
        assert_eq!(shown_of(&prompt, &arguments), ["run", "  command: ls"]);
    }
}
