//! Renders a question about a call on a terminal, so that all of it is visible when it waits for the answer.

use super::{change, columns_max};
use crate::changes::Look;
use rondo_core::shown::{BAR, visible};
use serde_json::Value;

/// Rows below the question: the choices, which may wrap, and what is typed.
const ROWS_BELOW: usize = 4;
/// Rows that a question gets on any terminal.
const ROWS_MIN: usize = 6;
/// Columns below which nothing can be laid out.
const COLUMNS_MIN: usize = 20;
/// What a tab stands for.
const TAB: &str = "    ";
/// Blanks in a row that are shown; of more, it is said how many they are.
const BLANKS_MAX: usize = 40;
/// Begins each further row of a line of a file, where others have a sign.
const CONTINUED: &str = "↳";
/// Empty lines in a row that are shown.
const EMPTY_LINES_MAX: usize = 2;

/// One line of a question, or below a call that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// What it is.
    pub(super) tone: Tone,
    /// The line, without its line break.
    pub(super) text: String,
    /// Lines that it stands for, beside itself.
    pub(super) left_out: usize,
}

/// What a line is; where there are colours, they tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Words.
    Plain,
    /// A line of a file that stays.
    Same,
    /// A line of a file that is new.
    Added,
    /// A line of a file that goes.
    Removed,
    /// What is said of the lines of a file.
    Beside,
}

impl Line {
    /// Builds a line of words.
    pub(super) fn plain(text: String) -> Self {
        Self::toned(Tone::Plain, text)
    }

    /// Builds any other line.
    pub(super) fn toned(tone: Tone, text: String) -> Self {
        Self {
            tone,
            text,
            left_out: 0,
        }
    }

    /// Returns what stands before the rest of a line of a file: it must not look like another line.
    fn continuation(&self) -> Option<&'static str> {
        match self.tone {
            Tone::Plain | Tone::Beside => None,
            Tone::Same | Tone::Added | Tone::Removed => Some(CONTINUED),
        }
    }
}

/// Returns a question as rows that fit the terminal, with a line break behind each; where a look at the
/// call's file found what it changes, that stands in place of the arguments.
pub(crate) fn fitted(
    prompt: &str,
    arguments: &Value,
    look: &Look,
    (rows, columns): (usize, usize),
    has_color: bool,
) -> String {
    let lines = change::asked(prompt, arguments, look);
    painted(&fitted_rows(lines, rows, columns), has_color)
}

/// Returns lines with their colours, where those are wanted, and a line break behind each.
pub(super) fn painted(lines: &[Line], has_color: bool) -> String {
    let mut shown = String::new();
    for Line { tone, text, .. } in lines {
        let style = match tone {
            Tone::Plain | Tone::Same => "",
            Tone::Added => "\x1b[32m",
            Tone::Removed => "\x1b[31m",
            Tone::Beside => "\x1b[2m",
        };
        match style {
            style if has_color && !style.is_empty() => {
                shown.extend([style, text, "\x1b[0m\n"]);
            }
            _ => shown.extend([text, "\n"]),
        }
    }
    shown
}

/// Returns the rows of a question that fit the terminal.
///
/// Hidden characters are spelt out. Blanks and empty lines that would push the rest out of sight are
/// counted instead. Where it is too long still, rows in the middle are left out, and how many; never the
/// beginning, which says what runs, nor the end.
fn fitted_rows(lines: Vec<Line>, rows: usize, columns: usize) -> Vec<Line> {
    let columns = columns.max(COLUMNS_MIN);
    let rows_max = rows.saturating_sub(ROWS_BELOW).max(ROWS_MIN);
    let mut shown = Vec::new();
    for mut line in without_empty_runs(lines) {
        line.text = without_blank_runs(&visible(&line.text).replace('\t', TAB));
        wrap(&line, columns, &mut shown);
    }
    without_middle(&mut shown, rows_max, |count| {
        format!("[{count} rows are left out here]")
    });
    shown
}

/// Leaves out lines of the middle where there are more than so many, and says how many they are.
pub(super) fn without_middle(lines: &mut Vec<Line>, max: usize, say: impl Fn(usize) -> String) {
    if lines.len() <= max {
        return;
    }
    let last = max.saturating_sub(1) / 2;
    let first = max.saturating_sub(1) - last;
    let end = lines.len() - last;
    let gone = lines.get(first..end).unwrap_or_default();
    // What stands for others is no line itself.
    let count = gone.iter().map(|line| line.left_out.max(1)).sum();
    let note = Line {
        left_out: count,
        ..Line::plain(say(count))
    };
    lines.splice(first..end, [note]);
}

fn without_empty_runs(lines: Vec<Line>) -> Vec<Line> {
    let mut kept = Vec::new();
    let mut empty: Vec<Line> = Vec::new();
    let end = Line::plain("end".to_owned());
    for line in lines.into_iter().chain([end]) {
        if line.text.trim().trim_end_matches(BAR.trim()).is_empty() {
            empty.push(line);
            continue;
        }
        match empty.len() {
            0..=EMPTY_LINES_MAX => kept.append(&mut empty),
            count => kept.push(Line::plain(format!("[{count} empty lines]"))),
        }
        empty.clear();
        kept.push(line);
    }
    kept.pop();
    kept
}

fn without_blank_runs(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(' ') {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches(' ');
        let count = from.len() - after.len();
        shown.push_str(before);
        match count {
            0..=BLANKS_MAX => shown.extend(std::iter::repeat_n(' ', count)),
            count => shown.push_str(&format!(" [{count} blanks] ")),
        }
        rest = after;
    }
    shown + rest
}

/// A row that goes on with a block begins as the block does, so that nothing in it looks like a line of its
/// own.
fn wrap(line: &Line, columns: usize, rows: &mut Vec<Line>) {
    let text = &line.text;
    let indent = text.len() - text.trim_start_matches(' ').len();
    let (indent, rest) = text.split_at(indent.min(columns / 2));
    let (bar, rest) = match rest.strip_prefix(BAR) {
        Some(rest) => (BAR, rest),
        None => ("", rest),
    };
    let room = columns.saturating_sub(indent.len() + 2 * bar.chars().count() + 1);
    let continued = match line.continuation() {
        Some(continued) => continued,
        None if bar.is_empty() => "  ",
        None => "",
    };
    let tone = line.tone;
    let (mut row, mut used) = (format!("{indent}{bar}"), 0);
    for c in rest.chars() {
        if used + columns_max(c) > room {
            let next = format!("{indent}{bar}{continued}");
            let text = std::mem::replace(&mut row, next);
            rows.push(Line::toned(tone, text));
            used = continued.chars().map(columns_max).sum();
        }
        used += columns_max(c);
        row.push(c);
    }
    rows.push(Line {
        left_out: line.left_out,
        ..Line::toned(tone, row)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(question: &str, rows: usize, columns: usize) -> String {
        super::fitted(question, &Value::Null, &None, (rows, columns), false)
    }

    #[test]
    fn what_fits_is_shown_as_it_is() {
        let question = "`exec` wants to run in /x\n  command: touch a\nReason: y.";
        assert_eq!(fitted(question, 24, 80), format!("{question}\n"));
    }

    #[test]
    fn the_middle_is_left_out_and_never_the_beginning_or_the_end() {
        let lines: Vec<String> = (0..100).map(|at| format!("  │ line {at}")).collect();
        for rows in [1, 8, 10, 24, 60] {
            let shown = fitted(&format!("first\n{}\nlast", lines.join("\n")), rows, 80);
            assert!(shown.starts_with("first\n  │ line 0\n") && shown.ends_with("\nlast\n"));
            let most = rows.saturating_sub(ROWS_BELOW).max(ROWS_MIN);
            assert_eq!(shown.lines().count(), most);
            let said = format!("\n[{} rows are left out here]\n", 102 - (most - 1));
            assert!(shown.contains(&said), "{shown}");
        }
    }

    #[test]
    fn what_is_left_out_twice_is_counted_once() {
        let mut lines: Vec<_> = (0..9).map(|at| Line::plain(format!("{at}"))).collect();
        lines[4].left_out = 100;
        without_middle(&mut lines, 3, |count| format!("[{count}]"));
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["0", "[106]", "8"]);
        let lines = vec![Line::toned(Tone::Added, "  │ +abcdefghijklmnop".to_owned())];
        let rows = fitted_rows(lines, 24, 20);
        let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["  │ +abcdefghijkl", "  │ ↳mnop"]);
    }

    #[test]
    fn blanks_and_empty_lines_push_nothing_out_of_sight() {
        let question = format!("touch a{}rm b{}rm c\n", "\n".repeat(60), " ".repeat(5_000));
        assert_eq!(
            fitted(&question, 24, 80),
            "touch a\n[59 empty lines]\nrm b [5000 blanks] rm c\n"
        );
        let barred = format!("a\n{}  │ b\n\n\nc", "  │ \n".repeat(9));
        assert_eq!(
            fitted(&barred, 24, 80),
            "a\n[9 empty lines]\n  │ b\n\n\nc\n"
        );
    }

    #[test]
    fn a_long_line_goes_on_behind_its_bar_and_hidden_characters_are_spelt_out() {
        let shown = fitted(&format!("  │ {}Run it? y", "x".repeat(30)), 24, 30);
        assert_eq!(
            shown,
            format!("  │ {}\n  │ {}Run it? y\n", "x".repeat(23), "x".repeat(7))
        );
        assert_eq!(
            fitted("a\u{202e}\u{1b}[2J\tb", 24, 80),
            "a\\u{202e}\\u{1b}[2J    b\n"
        );
        assert_eq!(fitted(&"語".repeat(20), 24, 30).lines().count(), 2);
    }
}
