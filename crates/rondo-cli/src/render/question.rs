//! A question about a call, on a terminal: all of it can be read when the answer is waited for.

use super::columns_max;
use rondo_core::shown::{BAR, visible};

/// Rows below the question: the choice, which may wrap, and what is typed.
const ROWS_BELOW: usize = 4;
/// Rows that a question gets on any terminal.
const ROWS_MIN: usize = 6;
/// Columns below which nothing can be laid out.
const COLUMNS_MIN: usize = 20;
/// What a tab stands for.
const TAB: &str = "    ";
/// Blanks in a row that are shown; of more, it is said how many they are.
const BLANKS_MAX: usize = 40;
/// Empty lines in a row that are shown.
const EMPTY_LINES_MAX: usize = 2;

/// Returns a question as rows that fit the terminal, with a line break behind each.
///
/// Hidden characters are spelt out. Blanks and empty lines that would push the rest out of sight are
/// counted instead. Where it is too long still, rows in the middle are left out, and how many; never the
/// beginning, which says what runs, nor the end.
pub(crate) fn fitted(question: &str, rows: usize, columns: usize) -> String {
    let columns = columns.max(COLUMNS_MIN);
    let rows_max = rows.saturating_sub(ROWS_BELOW).max(ROWS_MIN);
    let text = visible(question).replace('\t', TAB);
    let mut shown = Vec::new();
    for line in without_empty_runs(&text) {
        wrap(&without_blank_runs(&line), columns, &mut shown);
    }
    let count = shown.len();
    if count > rows_max {
        let last = (rows_max - 1) / 2;
        let first = rows_max - 1 - last;
        let note = format!("[{} rows are left out here]", count - first - last);
        shown.splice(first..count - last, [note]);
    }
    shown
        .into_iter()
        .flat_map(|row| [row, "\n".to_owned()])
        .collect()
}

fn without_empty_runs(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut empty: Vec<&str> = Vec::new();
    for line in text.lines().chain(["end"]) {
        if line.trim().trim_end_matches(BAR.trim()).is_empty() {
            empty.push(line);
            continue;
        }
        match empty.len() {
            0..=EMPTY_LINES_MAX => lines.extend(empty.iter().map(|line| (*line).to_owned())),
            count => lines.push(format!("[{count} empty lines]")),
        }
        empty.clear();
        lines.push(line.to_owned());
    }
    lines.pop();
    lines
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
fn wrap(line: &str, columns: usize, rows: &mut Vec<String>) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (indent, rest) = line.split_at(indent.min(columns / 2));
    let (bar, rest) = match rest.strip_prefix(BAR) {
        Some(rest) => (BAR, rest),
        None => ("", rest),
    };
    let room = columns.saturating_sub(indent.len() + 2 * bar.chars().count() + 1);
    let continued = if bar.is_empty() { "  " } else { "" };
    let (mut row, mut used) = (format!("{indent}{bar}"), 0);
    for c in rest.chars() {
        if used + columns_max(c) > room {
            let next = format!("{indent}{bar}{continued}");
            rows.push(std::mem::replace(&mut row, next));
            used = continued.len();
        }
        used += columns_max(c);
        row.push(c);
    }
    rows.push(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_shown_as_it_is() {
        let question = "`exec` wants to run in /x\n  command: touch a\nIt is asked because y.";
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
