//! Highlights code by what most languages share: words, strings, numbers and comments.
//!
//! Grammars of single languages would cost megabytes and milliseconds at each start; this costs neither, and is right
//! for what a reply shows.

use crate::text::Piece;
use crate::theme::Theme;
use ratatui_core::style::Style;

/// Words that lead, in the languages that replies are mostly in.
const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "begin",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "namespace",
    "new",
    "nil",
    "none",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "typedef",
    "union",
    "unless",
    "unsafe",
    "until",
    "use",
    "using",
    "var",
    "virtual",
    "void",
    "when",
    "where",
    "while",
    "with",
    "yield",
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "TABLE",
    "JOIN",
];
/// Languages whose comments begin with `#`.
const HASHES: &[&str] = &[
    "bash",
    "sh",
    "shell",
    "zsh",
    "console",
    "python",
    "py",
    "ruby",
    "rb",
    "perl",
    "yaml",
    "yml",
    "toml",
    "ini",
    "dockerfile",
    "makefile",
    "make",
    "r",
    "elixir",
    "nix",
];
/// Languages whose comments begin with `--`.
const DASHES: &[&str] = &["sql", "lua", "haskell", "hs", "ada"];
/// Languages that are not code.
const PLAIN: &[&str] = &["", "text", "txt", "plain", "output", "log"];
/// Bytes of a line that is highlighted.
const LINE_BYTES_MAX: usize = 4096;

/// Returns the lines of a block of code, each in its styles.
pub(super) fn lines(code: &str, language: &str, theme: &Theme) -> Vec<Vec<Piece>> {
    let language = language.to_ascii_lowercase();
    code.lines()
        .map(|line| match language.as_str() {
            "diff" | "patch" => vec![Piece::new(line, of_diff(line, theme))],
            it if PLAIN.contains(&it) || line.len() > LINE_BYTES_MAX => {
                vec![Piece::new(line, theme.code)]
            }
            it => highlighted(line, it, theme),
        })
        .collect()
}

fn of_diff(line: &str, theme: &Theme) -> Style {
    match line.chars().next() {
        Some('+') => theme.good,
        Some('-') => theme.bad,
        Some('@') => theme.link,
        _ => theme.text,
    }
}

fn comment(language: &str) -> &'static str {
    match language {
        it if HASHES.contains(&it) => "#",
        it if DASHES.contains(&it) => "--",
        _ => "//",
    }
}

fn highlighted(line: &str, language: &str, theme: &Theme) -> Vec<Piece> {
    let mark = comment(language);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let before = line.len() - rest.len();
        let is_word_before = line
            .get(..before)
            .and_then(|it| it.chars().next_back())
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (end, style) = if rest.starts_with(mark) && !is_word_before {
            (rest.len(), theme.comment)
        } else if matches!(first, '"' | '\'' | '`') {
            match string_end(rest, first) {
                Some(end) => (end, theme.string),
                None => (first.len_utf8(), theme.text),
            }
        } else if first.is_ascii_digit() && !is_word_before {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
            (end.unwrap_or(rest.len()), theme.number)
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let end = end.unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            match KEYWORDS.contains(&word) {
                true => (end, theme.keyword),
                false => (end, theme.text),
            }
        } else {
            (first.len_utf8(), theme.text)
        };
        let (word, after) = rest.split_at(end);
        match pieces.last_mut() {
            Some(last) if last.style == style => last.text.push_str(word),
            _ => pieces.push(Piece::new(word, style)),
        }
        rest = after;
    }
    pieces
}

/// Returns the bytes of a string that begins here; `None` if it does not end on its line.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Colours;

    fn styled(line: &str, language: &str) -> Vec<(String, &'static str)> {
        let theme = Theme::of(Colours::Dark);
        let name = |style: Style| match style {
            it if it == theme.keyword => "keyword",
            it if it == theme.comment => "comment",
            it if it == theme.number => "number",
            it if it == theme.string => "string",
            it if it == theme.bad => "bad",
            _ => "text",
        };
        let lines = lines(line, language, &theme);
        let pieces = lines.into_iter().flatten();
        pieces.map(|it| (it.text, name(it.style))).collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        let shown = styled("let x1 = \"a // b\" + 42; // it's", "rust");
        let told: Vec<_> = shown.iter().filter(|it| it.1 != "text").collect();
        let expected = [
            ("let", "keyword"),
            ("\"a // b\"", "string"),
            ("42", "number"),
            ("// it's", "comment"),
        ];
        let expected: Vec<_> = expected.map(|(text, kind)| (text.to_owned(), kind)).into();
        assert_eq!(told, expected.iter().collect::<Vec<_>>());
        assert_eq!(styled("- gone", "diff"), [("- gone".to_owned(), "bad")]);
        assert_eq!(styled("if it", "text"), [("if it".to_owned(), "text")]);
    }
}
