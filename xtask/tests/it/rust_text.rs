//! Rust sources as text, with what is not code blanked out.
//!
//! A full parser would slow every build for rules that are about words. Blanking keeps offsets, so
//! that a finding still has its line.
#![expect(
    clippy::indexing_slicing,
    reason = "offsets come from the same text; a wrong one fails the test that uses it"
)]

use std::ops::Range;

/// Replaces comments by spaces.
pub(crate) fn without_comments(source: &str) -> String {
    blank(source, &spans(source, |kind| kind == Kind::Comment))
}

/// Replaces comments, strings and character literals by spaces.
pub(crate) fn code_only(source: &str) -> String {
    blank(source, &spans(source, |_| true))
}

/// Replaces every item under `#[cfg(test)]` by spaces; `code` is [`code_only`] of the same source.
pub(crate) fn without_tests(text: &str, code: &str) -> String {
    let mut tests = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(test)]") {
        let start = from + found;
        from = item_end(code, start);
        tests.push(start..from);
    }
    blank(text, &tests)
}

/// Returns the line of an offset, from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Returns the offsets at which the word occurs by itself.
pub(crate) fn find_words(text: &str, word: &str) -> Vec<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let bounded = |outside: Option<char>, edge: Option<char>| {
        !(outside.is_some_and(is_part) && edge.is_some_and(is_part))
    };
    text.match_indices(word)
        .filter(|(at, _)| {
            bounded(text[..*at].chars().next_back(), word.chars().next())
                && bounded(
                    text[at + word.len()..].chars().next(),
                    word.chars().next_back(),
                )
        })
        .map(|(at, _)| at)
        .collect()
}

/// Returns the name of the function that begins last before the offset.
pub(crate) fn function_before(code: &str, offset: usize) -> Option<&str> {
    let at = *find_words(&code[..offset], "fn").last()?;
    let rest = code[at + 2..].trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(&rest[..end])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    Literal,
}

fn blank(text: &str, spans: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for span in spans {
        for byte in &mut bytes[span.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("whole characters are blanked")
}

fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_u32;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn spans(source: &str, wanted: impl Fn(Kind) -> bool) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match token_at(bytes, at) {
            Some((kind, end)) => {
                if wanted(kind) {
                    found.push(at..end);
                }
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

fn token_at(bytes: &[u8], at: usize) -> Option<(Kind, usize)> {
    let rest = &bytes[at..];
    let starts_word = at == 0 || !is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|byte| *byte == b'\n');
        return Some((
            Kind::Comment,
            length.map_or(bytes.len(), |length| at + length),
        ));
    }
    if rest.starts_with(b"/*") {
        return Some((Kind::Comment, at + block_comment(rest)));
    }
    if starts_word && let Some(length) = raw_string(rest) {
        return Some((Kind::Literal, at + length));
    }
    match rest.first()? {
        b'"' => Some((Kind::Literal, at + quoted(rest, b'"')?)),
        b'\'' => Some((Kind::Literal, at + character(rest)?)),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = [&b"br"[..], b"cr", b"r"]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix))?
        .len();
    let hashes = rest[prefix..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let body = &rest[open + 1..];
    let length = body
        .windows(close.len())
        .position(|window| window == close)?;
    Some(open + 1 + length + close.len())
}

fn quoted(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'\\' => at += 2,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// A quote that does not close after one character begins a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return quoted(rest, b'\'');
    }
    let width = match rest.get(1)? {
        byte if byte.is_ascii() => 1,
        byte if byte >> 5 == 0b110 => 2,
        byte if byte >> 4 == 0b1110 => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(2 + width)
}

#[test]
fn comments_and_literals_are_blanked_and_code_stays() {
    let source = "a /* x /* y */ */ b // c\n\"d\\\"\" 'e' r#\"f\"g\"# 'static '\\'' 'é' h";
    let code = code_only(source);
    assert_eq!(code.len(), source.len());
    let words: Vec<&str> = code.split_whitespace().collect();
    assert_eq!(words, ["a", "b", "'static", "h"]);
    assert!(
        without_comments(source).contains("f\"g") && !without_comments(source).contains("// c")
    );
}

#[test]
fn test_items_are_blanked_to_their_closing_brace() {
    let source = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { \"}\"; } }\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}";
    let left = without_tests(source, &code_only(source));
    let words: Vec<&str> = left.split_whitespace().collect();
    assert_eq!(
        words,
        ["fn", "a()", "{}", "fn", "c()", "{}", "fn", "e()", "{}"]
    );
}

#[test]
fn words_are_found_whole_and_functions_by_name() {
    assert_eq!(find_words("await awaits x.await _await", "await"), [0, 15]);
    let code = "fn one() {} fn two_from_env() { here }";
    assert_eq!(
        function_before(code, code.find("here").unwrap()),
        Some("two_from_env")
    );
}
