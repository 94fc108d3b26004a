//! Wraps prose at words, to the width of the terminal.

use textwrap::{Options, WordSeparator, WordSplitter, wrap};

/// Columns below which nothing is broken: hardly a word fits.
const COLUMNS_MIN: usize = 20;

/// Breaks lines at words. What continues in the second column of a list stays in it, and what continues beneath a line
/// that begins with blanks begins with them too. A word that is wider than the terminal stays whole.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let ends = text.ends_with('\n');
    let lines: Vec<String> = text
        .lines()
        .map(|line| line_wrapped(line, columns))
        .collect();
    let mut broken = lines.join("\n");
    if ends {
        broken.push('\n');
    }
    broken
}

fn line_wrapped(line: &str, columns: usize) -> String {
    if columns < COLUMNS_MIN || textwrap::core::display_width(line) <= columns {
        return line.to_owned();
    }
    let head = second_column(line, columns);
    let (head, rest) = line.split_at(head);
    let indent = " ".repeat(textwrap::core::display_width(head));
    let options = Options::new(columns)
        .initial_indent(&indent)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    let broken = wrap(rest, options).join("\n");
    match broken.strip_prefix(&indent) {
        Some(first) => format!("{head}{first}"),
        None => broken,
    }
}

/// Returns the column at which the second column of a list, or the text of a line, begins; 0 if that would leave no
/// room.
fn second_column(line: &str, columns: usize) -> usize {
    let begins = line.len() - line.trim_start().len();
    let (_, text) = line.split_at(begins);
    let gap = text.find("  ").map(|at| {
        let (_, rest) = text.split_at(at);
        begins + at + (rest.len() - rest.trim_start().len())
    });
    let fits = |at: &usize| *at <= columns / 2;
    gap.filter(fits).or(Some(begins).filter(fits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_and_columns_stay() {
        let text =
            "note: one two three four five six\n/cmd [NAME]  does one thing and another thing\n";
        assert_eq!(
            wrapped(text, 26),
            "note: one two three four\nfive six\n/cmd [NAME]  does one\n             thing and\n             another thing\n"
        );
        assert_eq!(
            wrapped("  a b c d e f g h i j k l", 20),
            "  a b c d e f g h i\n  j k l"
        );
    }

    #[test]
    fn what_fits_and_long_words_stay_as_they_are() {
        assert_eq!(wrapped("short\n\nlines", 40), "short\n\nlines");
        let path = format!("see {}/x now", "/long".repeat(10));
        assert_eq!(
            wrapped(&path, 30),
            path.replacen(' ', "\n", 1).replacen("/x ", "/x\n", 1)
        );
        assert_eq!(
            wrapped("\u{65e5}\u{672c} ".repeat(6).trim(), 20),
            "\u{65e5}\u{672c} \u{65e5}\u{672c} \u{65e5}\u{672c} \u{65e5}\u{672c}\n\u{65e5}\u{672c} \u{65e5}\u{672c}"
        );
        let narrow = "a line of many words that nobody can read";
        assert_eq!(wrapped(narrow, 5), narrow);
    }
}
