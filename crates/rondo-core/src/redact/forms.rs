//! The encodings in which a secret is searched for.

use super::Secrets;
use data_encoding::{BASE64_NOPAD, HEXLOWER, HEXUPPER};
use std::fmt::Write as _;

/// Longer values are looked for in parts of this length, in bytes: it bounds what is held back.
pub(super) const PART_BYTES: usize = 1 << 10;

/// Characters besides letters and digits that encoders of addresses and forms leave unchanged: RFC 3986's unreserved
/// characters, Python's `quote`, JavaScript's `encodeURIComponent` and forms.
const LEFT_IN_ADDRESSES: [&[u8]; 4] = [b"-._~", b"-._~/", b"-._~!'()*", b"*-._"];
/// Characters that encoders of JSON write as `\uXXXX` beside those that they must, and `true` for text beyond ASCII
/// too:
/// nothing, Python, Go and .NET.
const LEFT_OUT_OF_JSON: [(&str, bool); 4] =
    [("", false), ("", true), ("<>&", false), ("<>&'+`\"", true)];

pub(super) fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        // What is left at the end is never too short to be looked for.
        let length = match rest.len() {
            0 => return None,
            length if length < PART_BYTES + Secrets::BYTES_MIN => length,
            _ => PART_BYTES,
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        Some(part)
    })
}

/// Returns the part as [`super::view::View`] has it.
pub(super) fn plain(part: &[u8]) -> Vec<u8> {
    let is_shown = |byte: &u8| !super::view::is_line_end(*byte);
    part.iter().copied().filter(is_shown).collect()
}

/// Returns its other forms; some may be the same.
pub(super) fn encoded(part: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let hex = [HEXLOWER.encode(part), HEXUPPER.encode(part)];
    let base64 = (0..3).flat_map(|before| {
        let standard = inner_base64(part, before);
        let url = standard.replace('+', "-").replace('/', "_");
        [standard, url]
    });
    let strings = hex.into_iter().chain(base64.collect::<Vec<_>>());
    let strings = strings.chain(in_addresses(part)).chain(in_json(part));
    strings.map(String::into_bytes)
}

/// Returns those digits of the value, behind so many other bytes, that stand for nothing else.
fn inner_base64(part: &[u8], before: usize) -> String {
    let mut whole = vec![0; before];
    whole.extend_from_slice(part);
    let digits = BASE64_NOPAD.encode(&whole);
    let (first, end) = ((before * 8).div_ceil(6), whole.len() * 8 / 6);
    digits.get(first..end).unwrap_or_default().to_owned()
}

/// Returns the value as encoders put it into addresses and forms.
fn in_addresses(part: &[u8]) -> Vec<String> {
    let is_left = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    if part.iter().all(is_left) {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for left in LEFT_IN_ADDRESSES {
        for space in ["%20", "+"] {
            let upper =
                percent_encoded(part, left, space, |form, byte| write!(form, "%{byte:02X}"));
            let lower =
                percent_encoded(part, left, space, |form, byte| write!(form, "%{byte:02x}"));
            forms.extend([upper, lower]);
        }
    }
    forms
}

fn percent_encoded(
    part: &[u8],
    left: &[u8],
    space: &str,
    encode: impl Fn(&mut String, u8) -> std::fmt::Result,
) -> String {
    let mut form = String::new();
    for byte in part {
        match byte {
            b' ' => form.push_str(space),
            byte if byte.is_ascii_alphanumeric() || left.contains(byte) => {
                form.push(char::from(*byte));
            }
            // Writing to a string does not fail.
            byte => drop(encode(&mut form, *byte)),
        }
    }
    form
}

/// Returns the value as encoders put it into strings of JSON, without the quotes.
fn in_json(part: &[u8]) -> Vec<String> {
    let needs_none = |byte: &u8| byte.is_ascii_graphic() && !br#"\"/<>&'+`"#.contains(byte);
    let text = match std::str::from_utf8(part) {
        Ok(text) if !part.iter().all(needs_none) => text,
        _ => return Vec::new(),
    };
    let mut forms = Vec::new();
    for (left_out, is_ascii) in LEFT_OUT_OF_JSON {
        for slash in ["/", "\\/"] {
            let is_left = |c: char| !left_out.contains(c) && (c.is_ascii() || !is_ascii);
            let upper = escaped(text, slash, is_left, |form, unit| {
                write!(form, "\\u{unit:04X}")
            });
            let lower = escaped(text, slash, is_left, |form, unit| {
                write!(form, "\\u{unit:04x}")
            });
            forms.extend([upper, lower]);
        }
    }
    forms
}

fn escaped(
    text: &str,
    slash: &str,
    is_left: impl Fn(char) -> bool,
    encode: impl Fn(&mut String, u16) -> std::fmt::Result,
) -> String {
    let mut form = String::new();
    for c in text.chars() {
        match c {
            c if c >= ' ' && !is_left(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string does not fail.
                    let _ = encode(&mut form, *unit);
                }
            }
            '/' => form.push_str(slash),
            '"' => form.push_str("\\\""),
            '\\' => form.push_str("\\\\"),
            '\n' => form.push_str("\\n"),
            '\r' => form.push_str("\\r"),
            '\t' => form.push_str("\\t"),
            '\u{8}' => form.push_str("\\b"),
            '\u{c}' => form.push_str("\\f"),
            c if c < ' ' => {
                let _ = encode(&mut form, u16::try_from(u32::from(c)).unwrap_or_default());
            }
            c => form.push(c),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(part: &str) -> Vec<String> {
        let forms = encoded(part.as_bytes()).map(|form| String::from_utf8(form).unwrap());
        forms.collect()
    }

    #[test]
    fn forms_are_those_of_the_encoders_that_are_common() {
        let value = "k~y/ \"<+'é\u{1f511}\\\u{1}";
        let known = [
            // Python: urllib.parse.quote, quote(safe=""), quote_plus and json.dumps.
            "k~y/%20%22%3C%2B%27%C3%A9%F0%9F%94%91%5C%01",
            "k~y%2F%20%22%3C%2B%27%C3%A9%F0%9F%94%91%5C%01",
            "k~y%2F+%22%3C%2B%27%C3%A9%F0%9F%94%91%5C%01",
            "k~y/ \\\"<+'\\u00e9\\ud83d\\udd11\\\\\\u0001",
            // JavaScript: encodeURIComponent, URLSearchParams and JSON.stringify.
            "k~y%2F%20%22%3C%2B'%C3%A9%F0%9F%94%91%5C%01",
            "k%7Ey%2F+%22%3C%2B%27%C3%A9%F0%9F%94%91%5C%01",
            "k~y/ \\\"<+'é\u{1f511}\\\\\\u0001",
            // Go: encoding/json.
            "k~y/ \\\"\\u003c+'é\u{1f511}\\\\\\u0001",
            // PHP: json_encode.
            "k~y\\/ \\\"<+'\\u00e9\\ud83d\\udd11\\\\\\u0001",
            // .NET: System.Text.Json.
            "k~y/ \\u0022\\u003C\\u002B\\u0027\\u00E9\\uD83D\\uDD11\\\\\\u0001",
        ];
        let forms = all(value);
        for form in known {
            assert!(forms.iter().any(|it| it == form), "{form} in {forms:#?}");
        }
    }

    #[test]
    fn a_key_of_letters_digits_and_dashes_has_no_more_forms_than_hex_and_base64() {
        assert_eq!(all("sk-proj_0123.abc").len(), 8);
    }
}
