//! Paths to stored values, which can be inspected without running code.
//!
//! It is read here and not by Python's own parser, which warns of odd constants by a function that
//! the user's code may have replaced.

use serde_json::{Value, json};
use std::iter::Peekable;
use std::str::Chars;

/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 4 << 10;
/// The most attributes and items of a path.
const STEPS_MAX: usize = 64;
/// Message about all other expressions.
const REFUSED: &str = "this runs no code and needs no approval: give a name with \
     its attributes and constant items, such as `a.b[0]['key']`; `eval_expr` evaluates any expression";

/// Reads `name`, `name.attribute`, `name['key']`, `name[-1]`, `name[1:5]`, and constants.
///
/// Returns the steps as `[kind, what]`.
pub(crate) fn read(expr: &str) -> Result<Value, String> {
    let mut reading = Reading {
        rest: expr.chars().peekable(),
    };
    let is_short = expr.len() <= PATH_BYTES_MAX;
    let steps = is_short.then(|| reading.path()).flatten();
    steps.map(Value::Array).ok_or_else(|| REFUSED.to_owned())
}

struct Reading<'a> {
    rest: Peekable<Chars<'a>>,
}

/// Parsers return `None` for unknown forms.
impl Reading<'_> {
    fn path(&mut self) -> Option<Vec<Value>> {
        let mut steps = vec![self.start()?];
        while let Some(c) = self.next_after_space() {
            steps.push(match c {
                '.' => {
                    self.skip_space();
                    json!(["attribute", self.name()?])
                }
                '[' => self.item()?,
                _ => return None,
            });
            if steps.len() > STEPS_MAX {
                return None;
            }
        }
        Some(steps)
    }

    fn start(&mut self) -> Option<Value> {
        self.skip_space();
        if !self.rest.peek().is_some_and(|c| begins_name(*c)) {
            return Some(json!(["constant", self.constant()?]));
        }
        let name = self.name()?;
        Some(match named_constant(&name) {
            Some(constant) => json!(["constant", constant]),
            None => json!(["name", name]),
        })
    }

    /// Content of square brackets, and the closing one.
    fn item(&mut self) -> Option<Value> {
        let mut parts = vec![self.index_unless(&[':', ']'])?];
        loop {
            match self.next_after_space()? {
                ']' => break,
                ':' if parts.len() < 3 => parts.push(self.index_unless(&[':', ']'])?),
                _ => return None,
            }
        }
        match parts.as_slice() {
            [None] => None,
            [Some(index)] => Some(json!(["item", index])),
            bounds => {
                let is_bound = |it: &Option<Value>| it.as_ref().is_none_or(Value::is_i64);
                let bounds: Vec<_> = bounds.iter().map(Option::as_ref).collect();
                let all = parts.iter().all(is_bound);
                all.then(|| json!(["slice", bounds]))
            }
        }
    }

    /// Reads a constant unless one of these comes first.
    #[expect(
        clippy::option_option,
        reason = "not understood is not the same as left out"
    )]
    fn index_unless(&mut self, ends: &[char]) -> Option<Option<Value>> {
        self.skip_space();
        let next = self.rest.peek()?;
        if ends.contains(next) {
            return Some(None);
        }
        if begins_name(*next) {
            return named_constant(&self.name()?).map(Some);
        }
        self.constant().map(Some)
    }

    fn constant(&mut self) -> Option<Value> {
        match self.rest.peek()? {
            '\'' | '"' => {
                let quote = self.rest.next()?;
                self.text(quote)
            }
            _ => self.number(),
        }
    }

    /// Text without escapes, and no more than one line.
    fn text(&mut self, quote: char) -> Option<Value> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                c if c == quote => break,
                '\\' | '\n' | '\r' | '\0' => return None,
                c => text.push(c),
            }
        }
        // Three quotes begin another kind of text, and a neighbor is joined to it.
        let is_alone = !matches!(self.rest.peek(), Some('\'' | '"'));
        is_alone.then(|| Value::from(text))
    }

    fn number(&mut self) -> Option<Value> {
        let mut digits = String::new();
        if let Some(sign) = self.rest.next_if_eq(&'-') {
            digits.push(sign);
        }
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let ends = !self
            .rest
            .peek()
            .is_some_and(|c| begins_name(*c) || *c == '.');
        let is_plain = digits.trim_start_matches('-') == "0"
            || !digits.trim_start_matches('-').starts_with('0');
        let number: i64 = digits.parse().ok()?;
        (ends && is_plain).then(|| Value::from(number))
    }

    fn name(&mut self) -> Option<String> {
        let first = self.rest.next_if(|c| begins_name(*c))?;
        let mut name = String::from(first);
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
        }
        Some(name)
    }

    fn next_after_space(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.next()
    }

    fn skip_space(&mut self) {
        while self
            .rest
            .next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
            .is_some()
        {}
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn named_constant(name: &str) -> Option<Value> {
    match name {
        "None" => Some(Value::Null),
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_attributes_constant_items_and_constants_are_paths() {
        for (expr, steps) in [
            ("x", json!([["name", "x"]])),
            (
                " gr\u{f6}\u{df}e . b\n",
                json!([["name", "gr\u{f6}\u{df}e"], ["attribute", "b"]]),
            ),
            (
                "a['k'][\"it's\"][-1]",
                json!([["name", "a"], ["item", "k"], ["item", "it's"], ["item", -1]]),
            ),
            (
                "a[None][True]",
                json!([["name", "a"], ["item", null], ["item", true]]),
            ),
            ("a[1:5]", json!([["name", "a"], ["slice", [1, 5]]])),
            ("a[:-2]", json!([["name", "a"], ["slice", [null, -2]]])),
            ("a[::2]", json!([["name", "a"], ["slice", [null, null, 2]]])),
            ("5", json!([["constant", 5]])),
            ("'text'", json!([["constant", "text"]])),
            ("None", json!([["constant", null]])),
        ] {
            assert_eq!(read(expr), Ok(steps), "{expr}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for expr in [
            "",
            "f()",
            "a + b",
            "-a",
            "a.b.",
            "a..b",
            ".a",
            "a[b]",
            "a[b.c]",
            "a[]",
            "a[1",
            "a]",
            "a[1,2]",
            "a['k'",
            "a[1:2:3:4]",
            "a[f()]",
            "[x for x in y]",
            "[x for a.b in y]",
            "[0 for a[0] in y]",
            "(x)",
            "lambda: 5",
            "await f",
            "not a",
            "(y := 5)",
            "f'{f()}'",
            "f'x'",
            "a if b else c",
            "*a",
            "x = 5",
            "x; y",
            "'a' 'b'",
            "'''a'''",
            "'\\n'",
            "1.5",
            "01",
            "1_0",
            "0x1",
            "1for",
            "--1",
            "-",
            "a 'b'",
            "a b",
            "9999999999999999999999",
            "a['k':'l']",
            "a[None:]",
            "x #",
            "`x`",
        ] {
            assert_eq!(read(expr), Err(REFUSED.to_owned()), "{expr}");
        }
    }

    #[test]
    fn a_path_is_bounded_in_length_and_steps() {
        for (steps, is_read) in [(STEPS_MAX, true), (STEPS_MAX + 1, false)] {
            let expr = format!("a{}", ".b".repeat(steps - 1));
            assert_eq!(read(&expr).is_ok(), is_read, "{steps}");
        }
        for (length, is_read) in [(PATH_BYTES_MAX, true), (PATH_BYTES_MAX + 1, false)] {
            assert_eq!(read(&"a".repeat(length)).is_ok(), is_read, "{length}");
        }
    }
}
