//! Search for the end of a JSON value, and arguments that are elements instead.

use super::tags::{TagMatch, any_name, name_attribute, read_tag};
use crate::json::{RawObject, raw_object};
use serde_json::{Map, Value};

/// Elements whose own attribute names the argument.
const GENERIC: [&str; 4] = ["parameter", "param", "argument", "arg"];

/// Finds the end of a JSON value, over any number of pieces.
///
/// Strings in single quotes count as strings, since models write them and argument repair mends
/// them: a bracket or a tag inside is content.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ValueScan {
    depth: u32,
    quote: Option<u8>,
    escaped: bool,
    /// The last byte outside of strings that is not white space.
    before: u8,
}

impl ValueScan {
    /// Reads on and returns how many bytes belong to the value when it closes within `bytes`.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(quote) = self.quote {
                self.string(*byte, quote);
            } else if self.structure(*byte) {
                return Some(at + 1);
            }
        }
        None
    }

    fn string(&mut self, byte: u8, quote: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == quote {
            self.quote = None;
            self.before = quote;
        }
    }

    /// Returns whether the value is closed.
    fn structure(&mut self, byte: u8) -> bool {
        match byte {
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b'"' => self.quote = Some(byte),
            b'\'' if matches!(self.before, b'{' | b'[' | b',' | b':') => self.quote = Some(byte),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            self.before = byte;
        }
        self.depth == 0
    }
}

/// Reads `<key>value</key>` elements as an object of strings; anything else stays as it is.
///
/// Values stay text: whether a number is meant, only the tool's schema can tell.
pub(super) fn of_elements(content: &str) -> String {
    let content = content.trim();
    if content.is_empty() {
        return "{}".to_owned();
    }
    elements(content).map_or_else(|| content.to_owned(), |map| Value::Object(map).to_string())
}

/// Returns whether a `<parameter=..>` is open at the end of a text: a closing tag of something else
/// is content of it.
pub(super) fn is_in_parameter(content: &str) -> bool {
    let opened = content.rfind("<parameter");
    let closed = content.rfind("</parameter");
    opened > closed
}

fn elements(content: &str) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    let mut rest = content;
    while !rest.is_empty() {
        let TagMatch::Yes(tag) = read_tag(rest, &any_name) else {
            return None;
        };
        if tag.closing || tag.empty {
            return None;
        }
        let body = rest.get(tag.len..)?;
        let (value, after) = body.split_once(&format!("</{}", tag.raw_name))?;
        let key = match name_attribute(&tag.attributes) {
            Some(key) if GENERIC.contains(&tag.name.as_str()) => key,
            _ => tag.raw_name,
        };
        map.insert(key, Value::String(lines(value).to_owned()));
        rest = after.split_once('>')?.1.trim_start();
    }
    Some(map)
}

/// The line breaks next to the tags of a long value are not part of it.
fn lines(value: &str) -> &str {
    let value = value.strip_prefix('\n').unwrap_or(value);
    value.strip_suffix('\n').unwrap_or(value)
}

/// Reads `{"name": .., "arguments": ..}`.
pub(super) fn named_body(json: &str) -> Option<(String, String)> {
    let object = raw_object(json)?;
    let name: String =
        serde_json::from_str(field(&object, &["name", "tool", "tool_name"])?).ok()?;
    let arguments = field(&object, &["arguments", "parameters", "args", "input"]);
    Some((name, arguments.unwrap_or("{}").to_owned()))
}

fn field<'a>(object: &RawObject<'a>, names: &[&str]) -> Option<&'a str> {
    let found = |name: &&str| object.0.iter().find(|(key, _)| key == name);
    let (_, value) = names.iter().find_map(found)?;
    Some(value.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_is_found_wherever_it_is_cut() {
        let values = [
            r#"{"a":"}\"]</tool_code>","b":[{}]}"#,
            r"{'a': '}', 'b': [1,]}",
            r#"{"a": "it's"}"#,
        ];
        for value in values {
            let text = format!("{value} tail}}");
            for cut in 0..=text.len() {
                let (head, tail) = text.as_bytes().split_at(cut);
                let mut scan = ValueScan::default();
                let end = scan
                    .feed(head)
                    .or_else(|| scan.feed(tail).map(|end| cut + end));
                assert_eq!(end, Some(value.len()), "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn elements_are_arguments_and_anything_else_is_left_alone() {
        let cases = [
            ("<a>1</a>\n<b c='d'>x y</b>", r#"{"a":"1","b":"x y"}"#),
            ("<parameter=a>\n1\n</parameter>", r#"{"a":"1"}"#),
            ("<parameter name=\"a\">1</parameter>", r#"{"a":"1"}"#),
            ("  ", "{}"),
            ("ls -la", "ls -la"),
            ("<a>1", "<a>1"),
        ];
        for (content, arguments) in cases {
            assert_eq!(of_elements(content), arguments, "{content}");
        }
    }
}
