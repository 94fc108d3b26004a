//! Reads text that is nearly JSON: fenced, with single quotes, with trailing commas, cut off.

use crate::repair::{Repair, RepairKind};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The bound on nesting, below that of `serde_json`, so that what is read here can be read again.
const DEPTH_MAX: usize = 100;

/// The fence that models put around JSON.
const FENCE: &str = "```";

/// The words that stand for values, in JSON and in Python.
const WORDS: [&str; 6] = ["true", "false", "null", "True", "False", "None"];

/// Why a text is not JSON, even leniently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextError {
    /// It ends before the value does.
    CutOff,
    /// Something is at a place where it is not allowed.
    At {
        /// The byte offset.
        offset: usize,
        /// Description of the problem.
        what: String,
    },
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("the text ends before the value does"),
            Self::At { offset, what } => write!(f, "{what} at byte {offset}"),
        }
    }
}

/// Reads a text as JSON and nothing else.
pub(crate) fn strict(text: &str) -> Result<Value, TextError> {
    serde_json::from_str(text).map_err(|err: serde_json::Error| {
        if err.is_eof() {
            return TextError::CutOff;
        }
        let full = err.to_string();
        let what = full.split(" at line ").next().unwrap_or(&full).to_owned();
        let offset = byte_offset(text, err.line(), err.column());
        TextError::At { offset, what }
    })
}

/// Reads a text as JSON with the slips that can be undone with certainty, and says which those were.
///
/// Nothing that is missing is ever added: a text that ends early, or holds anything after the value,
/// is an error.
pub(crate) fn lenient(text: &str) -> Result<(Value, Vec<Repair>), TextError> {
    let mut slips = Vec::new();
    let body = unwrap(text, &mut slips);
    if let Ok(value) = serde_json::from_str(body) {
        return Ok((value, slips));
    }
    let base = body.as_ptr().addr() - text.as_ptr().addr();
    let mut parser = Parser {
        text: body,
        at: 0,
        slips,
    };
    let value = parser.document().map_err(|err| shifted(err, base))?;
    Ok((value, parser.slips))
}

fn shifted(err: TextError, base: usize) -> TextError {
    match err {
        TextError::CutOff => TextError::CutOff,
        TextError::At { offset, what } => TextError::At {
            offset: offset + base,
            what,
        },
    }
}

fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    before + column.saturating_sub(1)
}

fn blank(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

/// Takes off blanks and one fence that both opens and closes.
fn unwrap<'a>(text: &'a str, slips: &mut Vec<Repair>) -> &'a str {
    let plain = |char| matches!(char, ' ' | '\t' | '\n' | '\r');
    let trimmed = text.trim_matches(blank);
    if text.trim_matches(plain) != trimmed {
        slips.push(Repair::syntax("blanks", "", RepairKind::Blank));
    }
    let Some(body) = unfenced(trimmed) else {
        return trimmed;
    };
    slips.push(Repair::syntax(FENCE, "", RepairKind::Fence));
    body.trim_matches(blank)
}

fn unfenced(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(FENCE)?.strip_suffix(FENCE)?;
    let (info, body) = inner.split_once('\n')?;
    let is_info = info
        .trim()
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_info.then_some(body)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    slips: Vec<Repair>,
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<Value, TextError> {
        let value = self.value(0)?;
        self.blanks();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.unexpected("something after the end of the value")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, TextError> {
        if depth > DEPTH_MAX {
            return Err(self.unexpected("too many nested values"));
        }
        self.blanks();
        match self.peek().ok_or(TextError::CutOff)? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            '-' | '0'..='9' => self.number(),
            first if first.is_alphabetic() => self.word(),
            _ => Err(self.unexpected("no JSON value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, TextError> {
        self.bump();
        let mut fields = Map::new();
        loop {
            self.blanks();
            if self.eat('}') {
                return Ok(Value::Object(fields));
            }
            let key = self.key()?;
            self.blanks();
            self.expect(':')?;
            let value = self.value(depth + 1)?;
            fields.insert(key, value);
            if self.ends('}')? {
                return Ok(Value::Object(fields));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, TextError> {
        self.bump();
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.eat(']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if self.ends(']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// Passes the comma after an element, or the closing bracket, or a comma before that bracket.
    fn ends(&mut self, close: char) -> Result<bool, TextError> {
        self.blanks();
        if self.eat(close) {
            return Ok(true);
        }
        self.expect(',')?;
        self.blanks();
        if self.eat(close) {
            self.slip(&format!(",{close}"), "", RepairKind::TrailingComma);
            return Ok(true);
        }
        Ok(false)
    }

    fn key(&mut self) -> Result<String, TextError> {
        match self.peek().ok_or(TextError::CutOff)? {
            quote @ ('"' | '\'') => self.string(quote),
            first if first.is_ascii_alphabetic() || first == '_' => {
                let key = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                self.slip(key, &format!("{key:?}"), RepairKind::BareKey);
                Ok(key.to_owned())
            }
            _ => Err(self.unexpected("no key")),
        }
    }

    fn word(&mut self) -> Result<Value, TextError> {
        let start = self.at;
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        let (value, json) = match word {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "null" => return Ok(Value::Null),
            "True" => (Value::Bool(true), "true"),
            "False" => (Value::Bool(false), "false"),
            "None" => (Value::Null, "null"),
            _ if self.peek().is_none() && WORDS.iter().any(|known| known.starts_with(word)) => {
                return Err(TextError::CutOff);
            }
            _ => {
                self.at = start;
                return Err(self.unexpected("a text without quotes"));
            }
        };
        self.slip(word, json, RepairKind::PythonWord);
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, TextError> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        match serde_json::from_str::<Number>(digits) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) if self.peek().is_none() => Err(TextError::CutOff),
            Err(_) => {
                self.at = start;
                Err(self.unexpected("no JSON number"))
            }
        }
    }

    fn string(&mut self, quote: char) -> Result<String, TextError> {
        self.bump();
        if quote == '\'' {
            self.slip("'", "\"", RepairKind::SingleQuotes);
        }
        let mut out = String::new();
        loop {
            match self.bump().ok_or(TextError::CutOff)? {
                end if end == quote => return Ok(out),
                '\\' => out.push(self.escape()?),
                raw @ ('\n' | '\r' | '\t') => {
                    let escaped = raw.escape_default().to_string();
                    self.slip(&raw.to_string(), &escaped, RepairKind::RawControl);
                    out.push(raw);
                }
                control if control < ' ' => {
                    return Err(self.unexpected("a control character in a string before"));
                }
                char => out.push(char),
            }
        }
    }

    fn escape(&mut self) -> Result<char, TextError> {
        match self.bump().ok_or(TextError::CutOff)? {
            same @ ('"' | '\\' | '/' | '\'') => Ok(same),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'u' => self.unicode(),
            _ => Err(self.unexpected("a backslash that is not doubled before")),
        }
    }

    fn unicode(&mut self) -> Result<char, TextError> {
        let first = self.hex()?;
        if let Some(char) = char::from_u32(first) {
            return Ok(char);
        }
        // Half of a pair: the other half must follow.
        if !(self.eat('\\') && self.eat('u')) {
            return Err(self.unexpected("half of a surrogate pair before"));
        }
        let second = self.hex()?;
        char::decode_utf16([first, second].map(|unit| u16::try_from(unit).unwrap_or(0)))
            .next()
            .and_then(Result::ok)
            .ok_or_else(|| self.unexpected("half of a surrogate pair before"))
    }

    fn hex(&mut self) -> Result<u32, TextError> {
        let mut unit = 0;
        for _ in 0..4 {
            let char = self.bump().ok_or(TextError::CutOff)?;
            let digit = char.to_digit(16);
            unit = unit * 16 + digit.ok_or_else(|| self.unexpected("no four hex digits before"))?;
        }
        Ok(unit)
    }

    /// Records a slip, once of each kind.
    fn slip(&mut self, from: &str, to: &str, kind: RepairKind) {
        if self.slips.iter().all(|slip| slip.kind != kind) {
            self.slips.push(Repair::syntax(from, to, kind));
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), TextError> {
        if self.peek().is_none() {
            return Err(TextError::CutOff);
        }
        if self.eat(wanted) {
            return Ok(());
        }
        Err(self.unexpected(&format!("no `{wanted}`")))
    }

    fn blanks(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    fn unexpected(&self, what: &str) -> TextError {
        TextError::At {
            offset: self.at,
            what: what.to_owned(),
        }
    }
}
