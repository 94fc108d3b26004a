//! Splits Lua into its words. Whether they make sense is for Lua to say; this is about names.

/// A word of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// From 1.
    pub(super) line: u32,
}

/// Kind of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Name,
    /// A text or a number.
    Literal,
    /// Anything else.
    Symbol,
}

/// Symbols of more than one character, the longest first.
const LONG: [&str; 10] = ["...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>"];

/// Returns the words of a script, without comments.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Lexer<'a> {
    /// Takes as many bytes, which end at a character.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        let lines = taken.bytes().filter(|it| *it == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip();
        let line = self.line;
        let first = self.rest.chars().next()?;
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let (kind, text) = if first.is_ascii_digit() {
            let end = |it: char| !is_part(it) && it != '.';
            let bytes = self.rest.find(end).unwrap_or(self.rest.len());
            (Kind::Literal, self.take(bytes))
        } else if is_part(first) {
            let bytes = self.rest.find(|it| !is_part(it)).unwrap_or(self.rest.len());
            (Kind::Name, self.take(bytes))
        } else if first == '"' || first == '\'' {
            let bytes = quoted(self.rest, first);
            (Kind::Literal, self.take(bytes))
        } else if let Some(bytes) = long_bracket(self.rest) {
            (Kind::Literal, self.take(bytes))
        } else {
            let long = LONG.iter().find(|it| self.rest.starts_with(**it));
            let bytes = long.map_or(first.len_utf8(), |it| it.len());
            (Kind::Symbol, self.take(bytes))
        };
        Some(Token { kind, text, line })
    }

    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            let Some(comment) = self.rest.strip_prefix("--") else {
                return;
            };
            let bytes = match long_bracket(comment) {
                Some(bytes) => bytes,
                None => comment.find('\n').unwrap_or(comment.len()),
            };
            self.take(2 + bytes);
        }
    }
}

/// Returns the bytes of a quoted text; to its end if it has none.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, it) in text.char_indices().skip(1) {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            it if it == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the bytes of a long text, such as `[==[ ... ]==]`, that begins here.
fn long_bracket(text: &str) -> Option<usize> {
    let after = text.strip_prefix('[')?;
    let level = after.len() - after.trim_start_matches('=').len();
    after.get(level..)?.strip_prefix('[')?;
    let end = format!("]{}]", "=".repeat(level));
    Some(text.find(&end).map_or(text.len(), |at| at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_lines_and_comments_are_none() {
        let source = "local a = 'x\\'y' -- b\n--[[ c\nd ]] e[==[ f\n]] ]==] .. 0x1F\n";
        let found: Vec<(&str, u32)> = tokens(source).iter().map(|it| (it.text, it.line)).collect();
        let expected = [
            ("local", 1),
            ("a", 1),
            ("=", 1),
            ("'x\\'y'", 1),
            ("e", 3),
            ("[==[ f\n]] ]==]", 3),
            ("..", 4),
            ("0x1F", 4),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_has_no_end_ends_with_the_script() {
        for source in ["'", "\"\\", "[[", "--[[", "[=", "é", "--"] {
            assert!(tokens(source).len() <= 2, "{source}");
        }
    }
}
