//! Renders a question about a call on a terminal, so that all of it is visible when it waits for the answer.

use super::{change, columns_max};
use crate::changes::ChangePreview;
use rondo_core::shown::{BAR, command_in_full, command_left_out, visible};
use serde_json::Value;

/// Rows below the question: the choices, which may wrap, and what is typed.
const ROWS_BELOW: usize = 4;
/// Rows that a question gets on any terminal.
const ROWS_MIN: usize = 6;
/// Columns below which nothing can be laid out.
const COLUMNS_MIN: usize = 20;
/// Replacement of a tab.
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
    /// Kind of line.
    pub(super) tone: Tone,
    /// The line, without its line break.
    pub(super) text: String,
    /// Lines that it stands for, beside itself.
    pub(super) left_out: usize,
    /// Characters of the question that it holds or stands for, without those that only lay it out; `None` before it is a
    /// row, unless it stands for others.
    pub(super) chars: Option<usize>,
}

/// A question as it is shown on a terminal.
pub(crate) struct FittedQuestion {
    /// Its rows, each with a line break.
    pub(crate) text: String,
    /// How many of its characters are not among them.
    pub(crate) left_out: usize,
}

/// Kind of line; shown by color if there are colors.
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
    /// Description of the lines of a file.
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
            chars: None,
        }
    }

    /// Returns how many blanks an empty line of a block has behind its bar.
    fn blanks(&self) -> usize {
        let of_block = self.text.split_once(BAR);
        of_block.map_or(0, |(_, blanks)| blanks.chars().count())
    }

    /// Returns the text before the rest of a line of a file: it must not look like another line.
    fn continuation(&self) -> Option<&'static str> {
        match self.tone {
            Tone::Plain | Tone::Beside => None,
            Tone::Same | Tone::Added | Tone::Removed => Some(CONTINUED),
        }
    }
}

/// Returns a question as rows that fit the terminal; if a look at the call's file found what it changes, that is
/// in place of the arguments.
pub(crate) fn fitted(
    prompt: &str,
    arguments: &Value,
    look: &ChangePreview,
    (rows, columns): (usize, usize),
    has_color: bool,
) -> FittedQuestion {
    let lines = change::asked(prompt, arguments, look);
    let (rows, cut) = fitted_rows(lines, rows, columns);
    FittedQuestion {
        text: painted(&rows, has_color),
        left_out: cut + command_left_out(arguments),
    }
}

/// Returns a question as complete rows, with all of the command.
pub(crate) fn in_full(
    prompt: &str,
    arguments: &Value,
    look: &ChangePreview,
    columns: usize,
    has_color: bool,
) -> String {
    let mut lines = change::asked(prompt, arguments, look);
    if command_left_out(arguments) > 0 {
        lines.extend(
            command_in_full(arguments)
                .lines()
                .map(|it| Line::plain(it.to_owned())),
        );
    }
    painted(&rows_of(lines, columns), has_color)
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
/// counted instead. If it is too long still, rows in the middle are left out, and how many; never the
/// beginning, which says what runs, nor the end.
fn fitted_rows(lines: Vec<Line>, rows: usize, columns: usize) -> (Vec<Line>, usize) {
    let rows_max = rows.saturating_sub(ROWS_BELOW).max(ROWS_MIN);
    let mut shown = rows_of(lines, columns);
    let cut = without_middle(&mut shown, rows_max, |count, chars| {
        format!("[{count} rows with {chars} characters are left out here]")
    });
    (shown, cut)
}

fn rows_of(lines: Vec<Line>, columns: usize) -> Vec<Line> {
    let columns = columns.max(COLUMNS_MIN);
    let mut shown = Vec::new();
    for mut line in without_empty_runs(lines) {
        line.text = visible(&line.text);
        wrap(&line, columns, &mut shown);
    }
    shown
}

/// Leaves out lines of the middle if there are more than so many, and says how many they are, and their characters,
/// which are returned as well.
fn without_middle(
    lines: &mut Vec<Line>,
    max: usize,
    say: impl Fn(usize, usize) -> String,
) -> usize {
    if lines.len() <= max {
        return 0;
    }
    let last = max.saturating_sub(1) / 2;
    let first = max.saturating_sub(1) - last;
    let end = lines.len() - last;
    let gone = lines.get(first..end).unwrap_or_default();
    // What stands for others is not a line itself.
    let count = gone.iter().map(|line| line.left_out.max(1)).sum();
    let chars = gone.iter().filter_map(|line| line.chars).sum();
    let note = Line {
        left_out: count,
        ..Line::plain(say(count, chars))
    };
    lines.splice(first..end, [note]);
    chars
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
            count => kept.push(Line {
                chars: Some(empty.iter().map(Line::blanks).sum()),
                ..Line::plain(format!("[{count} empty lines]"))
            }),
        }
        empty.clear();
        kept.push(line);
    }
    kept.pop();
    kept
}

/// Parts a text into pieces as they are shown, each with the number of its characters: single ones, and runs of blanks that
/// are counted instead.
fn pieces(text: &str) -> Vec<(String, usize)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.trim_start_matches([' ', '\t']);
        let run = rest.strip_suffix(after).unwrap_or_default();
        if run.is_empty() {
            pieces.push((first.to_string(), 1));
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let shown = run.replace('\t', TAB);
        match shown.len() {
            0..=BLANKS_MAX => pieces.extend(run.chars().map(|it| match it {
                '\t' => (TAB.to_owned(), 1),
                blank => (blank.to_string(), 1),
            })),
            count => pieces.push((format!(" [{count} blanks] "), run.len())),
        }
        rest = after;
    }
    pieces
}

/// A row that continues with a block begins as the block does, so that nothing in it looks like a line of its
/// own.
fn wrap(line: &Line, columns: usize, rows: &mut Vec<Line>) {
    let text = &line.text;
    let indent = match text.len() - text.trim_start_matches(' ').len() {
        indent @ 0..=BLANKS_MAX => indent.min(columns / 2),
        // They are counted instead.
        _ => 0,
    };
    let (indent, rest) = text.split_at(indent);
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
    let (mut row, mut used, mut chars) = (format!("{indent}{bar}"), 0, 0);
    for (piece, count) in pieces(rest) {
        let mut count = Some(count);
        for c in piece.chars() {
            if used + columns_max(c) > room {
                let next = format!("{indent}{bar}{continued}");
                let text = std::mem::replace(&mut row, next);
                rows.push(Line {
                    chars: Some(std::mem::take(&mut chars)),
                    ..Line::toned(tone, text)
                });
                used = continued.chars().map(columns_max).sum();
            }
            used += columns_max(c);
            chars += count.take().unwrap_or_default();
            row.push(c);
        }
    }
    rows.push(Line {
        left_out: line.left_out,
        chars: line.chars.or(Some(chars)),
        ..Line::toned(tone, row)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(question: &str, rows: usize, columns: usize) -> String {
        super::fitted(question, &Value::Null, &None, (rows, columns), false).text
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
            let gone = 102 - (most - 1);
            let said = format!("\n[{gone} rows with ");
            assert!(shown.contains(&said), "{shown}");
        }
    }

    #[test]
    fn characters_that_are_left_out_are_counted_exactly_and_shown_when_asked_for() {
        let command: String = ('a'..='z').cycle().take(5_000).collect();
        let arguments = serde_json::json!({ "command": command });
        let prompt = format!("run\n{}", rondo_core::shown::call(&arguments));
        let FittedQuestion { text, left_out } =
            super::fitted(&prompt, &arguments, &None, (24, 80), false);
        let letters = |text: &str| -> String {
            let rows = text.lines().filter_map(|it| it.strip_prefix("  │ "));
            rows.collect()
        };
        assert_eq!(letters(&text).len() + left_out, 5_000);
        let note = format!("rows with {left_out} characters are left out here]\n");
        assert!(text.contains(&note), "{text}");
        assert_eq!(
            letters(&in_full(&prompt, &arguments, &None, 80, false)),
            command
        );
        let longer = serde_json::json!({ "command": command.repeat(20) });
        let prompt = format!("run\n{}", rondo_core::shown::call(&longer));
        let shown = in_full(&prompt, &longer, &None, 80, false);
        assert!(letters(&shown).ends_with(&command.repeat(20)));
    }

    #[test]
    fn what_is_left_out_twice_is_counted_once() {
        let mut lines: Vec<_> = (0..9).map(|at| Line::plain(format!("{at}"))).collect();
        lines[4].left_out = 100;
        without_middle(&mut lines, 3, |count, _| format!("[{count}]"));
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["0", "[106]", "8"]);
        let lines = vec![Line::toned(Tone::Added, "  │ +abcdefghijklmnop".to_owned())];
        let rows = fitted_rows(lines, 24, 20).0;
        let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["  │ +abcdefghijkl", "  │ ↳mnop"]);
    }

    #[test]
    fn blanks_and_empty_lines_that_are_left_out_count_as_what_they_are() {
        let lines = ["a", "b", "c", "d", "e"].map(|it| format!("{it}{}{it}\tz", " ".repeat(500)));
        let block = lines.join(&format!("\n{}\n", ["   "; 4].join("\n")));
        let arguments = serde_json::json!({ "command": block });
        let prompt = format!("run\n{}", rondo_core::shown::call(&arguments));
        let FittedQuestion { text, left_out } =
            super::fitted(&prompt, &arguments, &None, (10, 80), false);
        // Shown are the head, `a`, the empty lines before `e`, and `e`.
        let (line, empty) = (504, 4 * 3);
        assert!(text.contains("│ a [500 blanks] a    z\n"), "{text}");
        assert!(text.contains("│ e [500 blanks] e    z\n"), "{text}");
        assert_eq!(left_out, 3 * line + 3 * empty, "{text}");
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
